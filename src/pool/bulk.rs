//! Many objects at once.

use core::mem::MaybeUninit;

use super::boxed::drop_object;
use super::{Pool, PoolBox};
use crate::base::error::{AllocError, AllocErrorKind};
use crate::cache::{BATCH, Batch, Sink, SizeKey, free_batch, free_slow};
use crate::hook::shadow;
use crate::slab::Slot;

impl<T> Pool<T> {
    /// Allocates `n` slots and adds them to `boxes`, or none.
    ///
    /// Takes what the running thread and the barn have at hand, then the rest from slabs in one go.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`, also if `boxes` cannot grow, and `LimitReached`; `boxes` is as it was.
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool: Pool<u64> = Pool::new("numbers");
    /// let mut boxes = Vec::new();
    /// pool.try_alloc_uninit_bulk(100, &mut boxes)?;
    /// let numbers = (0..).zip(boxes).map(|(i, uninit)| PoolBox::write(uninit, i));
    /// PoolBox::free_bulk(numbers);
    /// # Ok::<(), sheaves::AllocError>(())
    /// ```
    #[doc(alias = "kmem_cache_alloc_bulk")]
    pub fn try_alloc_uninit_bulk(
        &self,
        n: usize,
        boxes: &mut Vec<PoolBox<MaybeUninit<T>>>,
    ) -> Result<(), AllocError> {
        let cache = self.handle().cache();
        if boxes.try_reserve(n).is_err() {
            return Err(AllocError::new(AllocErrorKind::OutOfMemory, cache.name()));
        }
        let result = cache.alloc_bulk(n, &mut Boxes(boxes));
        result.map_err(|kind| AllocError::new(kind, cache.name()))
    }
}

/// Boxes of slots that a bulk allocation gave.
struct Boxes<'a, T>(&'a mut Vec<PoolBox<MaybeUninit<T>>>);

impl<T> Sink for Boxes<'_, T> {
    #[inline]
    fn put(&mut self, slot: Slot) {
        self.0.push(PoolBox::from_slot(slot));
    }

    fn take_back(&mut self) -> Option<Slot> {
        let start = PoolBox::into_start(self.0.pop()?);
        shadow::close_value(start);
        // SAFETY: the box was taken apart, so its slot is given up; nothing was written to it.
        Some(unsafe { Slot::from_ptr(start.cast()) })
    }
}

impl<T> PoolBox<T> {
    /// Frees every box that the iterator gives.
    ///
    /// The objects are dropped one by one; their slots are collected, and go back a batch at a time: to the
    /// running thread's sheaves, to the barn, and what is left to slabs in one go; in a pool with a limit one by
    /// one, since the iterator may want to allocate. If an object's destructor or the iterator panics, what was
    /// given so far is freed.
    #[doc(alias = "kmem_cache_free_bulk")]
    pub fn free_bulk(boxes: impl IntoIterator<Item = Self>) {
        let mut collected = Collected {
            key: Pool::<T>::KEY,
            id: 0,
            most: 0,
            batch: Batch::new(),
        };
        for boxed in boxes {
            let id = boxed.cache_id();
            if collected.batch.len() >= collected.most || collected.id != id {
                collected.flush();
                collected.id = id;
                collected.most = if boxed.is_limited() { 1 } else { BATCH };
            }
            let start = PoolBox::into_start(boxed);
            // Entered first: if the destructor unwinds the slot is in the batch.
            // SAFETY: the box was taken apart, so its slot is given up; the batch is not freed before the
            // object is gone.
            collected
                .batch
                .push(unsafe { Slot::from_ptr(start.cast::<u8>()) });
            // SAFETY: the box was taken apart, so its object is used by nobody else.
            unsafe { drop_object(start) };
            shadow::close_value(start);
            if collected.most == 1 {
                collected.flush();
            }
        }
    }
}

/// Slots of one pool whose objects are gone.
struct Collected {
    key: SizeKey,
    id: u32,
    /// Slots to collect at most.
    most: usize,
    batch: Batch,
}

impl Collected {
    fn flush(&mut self) {
        match self.batch.len() {
            0 => {}
            1 => {
                if let Some(slot) = self.batch.pop() {
                    free_slow(self.key, slot);
                }
            }
            _ => free_batch(&mut self.batch),
        }
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.flush();
    }
}
