//! Slots set aside for code that must not block.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::boxed::drop_object;
use super::{Pool, PoolBox};
use crate::base::error::{AllocError, Exhausted};
use crate::cache::Lent;
use crate::slab::Slot;

/// A sheaf borrowed from a pool, with slots that nobody else can take.
///
/// [`Pool::prefill`] may block; what follows does not. Whatever happens elsewhere, memory out, the limit
/// reached by others, the pool's handles dropped, a prefilled sheaf of `n` gives `n` slots.
///
/// # Real time
///
/// [`alloc`](Self::alloc), [`alloc_with`](Self::alloc_with) and [`free`](Self::free) take no lock, make no
/// system call, touch no allocator and fault no page, all but what the object's own constructor and
/// destructor do. They may be used in a signal handler, on a sheaf that nothing else is using. Borrowing,
/// [`refill`](Self::refill) and giving back may block.
///
/// # Examples
///
/// ```
/// # use sheaves::Pool;
/// # struct Node(u64);
/// let pool = Pool::new("tree_node");
/// let mut sheaf = pool.prefill(3)?; // may block
/// let mut nodes: Vec<_> = (0..3).map(|key| sheaf.alloc(Node(key)).unwrap()).collect(); // does not
/// assert!(sheaf.free(nodes.remove(0)).is_ok()); // nor does this
/// sheaf.refill(2)?; // may block
/// assert!(sheaf.len() >= 2 && sheaf.capacity() >= sheaf.len());
/// sheaf.give_back(); // what was not used goes back whole, as by a drop
/// # drop(nodes);
/// # Ok::<(), sheaves::AllocError>(())
/// ```
#[doc(alias = "slab_sheaf")]
#[must_use = "dropping the sheaf gives its slots back"]
pub struct PrefilledSheaf<T> {
    lent: Lent,
    /// Takes values of `T` and holds none.
    _type: PhantomData<fn(T) -> T>,
}

impl<T> Pool<T> {
    /// Borrows a sheaf with at least `n` slots, maybe more. If `n` exceeds the pool's sheaf capacity the sheaf
    /// is made for the occasion and holds exactly `n`.
    ///
    /// May take locks, call the page source, and fault memory in.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`]; then nothing was taken.
    #[doc(alias = "kmem_cache_prefill_sheaf")]
    #[inline]
    pub fn prefill(&self, n: usize) -> Result<PrefilledSheaf<T>, AllocError> {
        match self.handle().lend(n) {
            Ok(lent) => Ok(PrefilledSheaf {
                lent,
                _type: PhantomData,
            }),
            Err(kind) => Err(AllocError::new(kind, self.handle().cache().name())),
        }
    }
}

impl<T> PrefilledSheaf<T> {
    /// Moves `value` into a slot of the sheaf.
    ///
    /// # Errors
    ///
    /// [`Exhausted`], with the value in it, if no slot is left. The pool is not asked for more.
    #[inline]
    #[doc(alias = "kmem_cache_alloc_from_sheaf")]
    pub fn alloc(&mut self, value: T) -> Result<PoolBox<T>, Exhausted<T>> {
        match self.lent.pop() {
            Some(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), value)),
            None => match self.slot_checked() {
                Some(slot) => Ok(PoolBox::write(slot, value)),
                None => Err(Exhausted::new(value)),
            },
        }
    }

    /// Calls `make` and moves its value into a slot of the sheaf. If `make` panics its slot goes back to the
    /// pool.
    ///
    /// # Errors
    ///
    /// [`Exhausted`], with `make` in it uncalled, if no slot is left.
    #[inline]
    pub fn alloc_with<F: FnOnce() -> T>(&mut self, make: F) -> Result<PoolBox<T>, Exhausted<F>> {
        match self.lent.pop() {
            Some(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), make())),
            None => match self.slot_checked() {
                Some(slot) => Ok(PoolBox::write(slot, make())),
                None => Err(Exhausted::new(make)),
            },
        }
    }

    /// Drops the object of `boxed` and puts its slot into this sheaf, from which it can be allocated again.
    ///
    /// A plain drop of a box may take a lock; this does not.
    ///
    /// # Errors
    ///
    /// The box comes back untouched if the sheaf has no room, or the box is another pool's.
    #[inline]
    pub fn free(&mut self, boxed: PoolBox<T>) -> Result<(), PoolBox<T>> {
        /// Puts the slot in, also if the destructor unwinds.
        struct Put<'a>(&'a mut Lent, Option<Slot>);
        impl Drop for Put<'_> {
            #[inline]
            fn drop(&mut self) {
                let Some(slot) = self.1.take() else { return };
                self.0.clear(&slot);
                let pushed = self.0.push(slot);
                debug_assert!(pushed.is_ok(), "there was room, and the sheaf is borrowed");
            }
        }
        if !self.lent.has_room() || !boxed.is_of(self.lent.handle().id()) {
            return self.free_checked(boxed);
        }
        let start = PoolBox::into_start(boxed);
        // SAFETY: the box was taken apart, so its slot is given up; it is put in when its object is gone.
        let slot = unsafe { Slot::from_ptr(start.cast::<u8>()) };
        let _put = Put(&mut self.lent, Some(slot));
        // SAFETY: the box was taken apart, so its object is used by nobody else.
        unsafe { drop_object(start) };
        Ok(())
    }

    /// A slot of a debugged pool; in others nothing is left to try.
    #[cold]
    #[inline(never)]
    fn slot_checked(&mut self) -> Option<PoolBox<MaybeUninit<T>>> {
        self.lent.pop_checked().map(PoolBox::from_slot)
    }

    /// As [`PrefilledSheaf::free`], in a debugged pool; in others nothing is left to try.
    #[cold]
    #[inline(never)]
    fn free_checked(&mut self, boxed: PoolBox<T>) -> Result<(), PoolBox<T>> {
        /// Puts the slot in, also if the destructor unwinds.
        struct Put<'a>(&'a mut Lent, Option<Slot>);
        impl Drop for Put<'_> {
            fn drop(&mut self) {
                if let Some(slot) = self.1.take() {
                    self.0.push_checked(slot);
                }
            }
        }
        if !self.lent.has_room_checked() || !boxed.is_of(self.lent.handle().id()) {
            return Err(boxed);
        }
        let start = PoolBox::into_start(boxed);
        // SAFETY: the box was taken apart, so its slot is given up; it is put in when its object is gone.
        let slot = unsafe { Slot::from_ptr(start.cast::<u8>()) };
        let _put = Put(&mut self.lent, Some(slot));
        // SAFETY: the box was taken apart, so its object is used by nobody else.
        unsafe { drop_object(start) };
        Ok(())
    }

    /// Slots left.
    #[inline]
    #[doc(alias = "kmem_cache_sheaf_size")]
    pub fn len(&self) -> usize {
        self.lent.len()
    }

    /// Whether no slot is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots that the sheaf has room for.
    pub fn capacity(&self) -> usize {
        self.lent.capacity()
    }

    /// Sees to it that at least `n` slots are in the sheaf. May block as [`Pool::prefill`] does. Under a limit
    /// only `n - len` more slots are needed.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`]. The sheaf stays usable and keeps what it had, and what could be got.
    #[doc(alias = "kmem_cache_refill_sheaf")]
    pub fn refill(&mut self, n: usize) -> Result<(), AllocError> {
        let result = self.lent.refill(n);
        result.map_err(|kind| AllocError::new(kind, self.lent.handle().cache().name()))
    }

    /// Gives what is left back to the pool, as a drop does.
    #[doc(alias = "kmem_cache_return_sheaf")]
    pub fn give_back(self) {
        drop(self);
    }
}

impl<T> fmt::Debug for PrefilledSheaf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefilledSheaf")
            .field("pool", self.lent.handle().cache().name())
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish()
    }
}
