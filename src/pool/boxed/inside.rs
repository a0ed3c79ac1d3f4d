//! What the rest of the pool's face asks of a box: whose slot it is, and the slot without the box.

use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

use super::PoolBox;
use crate::base::error::AllocError;
use crate::cache::{self, cache_of, free_slow};
use crate::hook::shadow;
use crate::page::page_map;
use crate::pool::Pool;
use crate::pool::alloc::refuse;
use crate::slab::Slot;

/// Frees the slot that starts at `start`.
///
/// # Safety
///
/// The caller owns the slot, which is out, and gives it up. No object is left in it.
#[inline(always)]
pub(in crate::pool) unsafe fn release<T>(start: NonNull<T>) {
    shadow::close_value(start);
    // SAFETY: passed on.
    unsafe { release_open(start) };
}

/// As [`release`], of a slot that readers may see while it is free.
///
/// # Safety
///
/// As for [`release`].
#[inline(always)]
pub(in crate::pool) unsafe fn release_open<T>(start: NonNull<T>) {
    // SAFETY: the slot's slab stands, since the slot is out.
    let entry = unsafe { page_map::get_flat(start.addr().get()) };
    // SAFETY: passed on.
    let slot = unsafe { Slot::from_ptr(start.cast()) };
    let key = Pool::<T>::KEY;
    if let Err(slot) = cache::push(key, entry.raw(), slot) {
        free_slow(key, slot);
    }
}

impl<T> PoolBox<T> {
    /// The cache's id, or the mark of an address in no pool.
    #[inline]
    pub(in crate::pool) fn cache_id(&self) -> u32 {
        // SAFETY: the slot is out, so its slab stands.
        unsafe { page_map::get_known(self.start.addr().get()) }.raw()
    }

    /// Whether the object lives in the pool of this id.
    #[inline]
    pub(in crate::pool) fn is_of(&self, id: u32) -> bool {
        #[cold]
        fn is_of_slowly<T>(boxed: &PoolBox<T>, id: u32) -> bool {
            boxed.cache_id() == id
        }
        // SAFETY: the slot is out, so its slab stands.
        let entry = unsafe { page_map::get_flat(self.start.addr().get()) };
        entry.raw() == id || is_of_slowly(self, id)
    }

    /// Whether the pool has a limit.
    pub(in crate::pool) fn is_limited(&self) -> bool {
        cache_of(&self.as_slot()).config().limit().is_some()
    }

    /// The token of the slot, to ask the layers below about it. It is not given away: the box keeps the
    /// slot.
    pub(super) fn as_slot(&self) -> ManuallyDrop<Slot> {
        // SAFETY: the box owns the slot, which is out (invariant 1); this second token is only borrowed.
        ManuallyDrop::new(unsafe { Slot::from_ptr(self.start.cast()) })
    }

    /// Takes the object out of the box's hands: its slot, with the object still in it.
    #[inline]
    pub(in crate::pool) fn into_start(boxed: Self) -> NonNull<T> {
        ManuallyDrop::new(boxed).start
    }

    /// An uninitialised box in the same pool.
    pub(in crate::pool) fn sibling(&self) -> PoolBox<MaybeUninit<T>> {
        let id = self.cache_id();
        let slot = cache::pop(Pool::<T>::KEY, id).map_or_else(
            || {
                let own = self.as_slot();
                let cache = cache_of(&own);
                cache
                    .alloc_cold(Pool::<T>::KEY)
                    .map_err(|kind| AllocError::new(kind, cache.name()))
            },
            Ok,
        );
        slot.map_or_else(|error| refuse::<T>(&error), PoolBox::from_slot)
    }
}

/// The object of a slot that is being freed in a batch is dropped by this, which frees nothing.
///
/// # Safety
///
/// `start` came from [`PoolBox::into_start`], and its object is not used after this.
pub(in crate::pool) unsafe fn drop_object<T>(start: NonNull<T>) {
    if mem::needs_drop::<T>() {
        // SAFETY: by the caller's word.
        unsafe { ptr::drop_in_place(start.as_ptr()) };
    }
}
