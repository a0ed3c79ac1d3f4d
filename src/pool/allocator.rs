//! Pools as allocators of collections.
//!
//! One object of the pool's type comes from a slot; every other layout gets whole pages, counted to the pool
//! as a block. A block is freed by its address, not by its layout: where a block starts, the page map says
//! that no slot does. So a block or a slot may be shrunk in place to any smaller layout, and shrinking never
//! fails. Slices are exactly as long as asked: containers that take up an excess would later free with a
//! layout that they never asked for.
//!
//! The contract is that of core's newest text: zero-sized requests are dangling and store nothing, growing
//! with zeros clears everything past the old size, and nothing unwinds, not even if the page source panics.

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use super::Pool;
use super::boxed::release;
use crate::base::error::AllocErrorKind;
use crate::cache;
use crate::hook::report::ReportKind;
use crate::page::page_map;

impl<T> Pool<T> {
    /// Whether a layout is served from a slot.
    #[inline(always)]
    fn is_slot(&self, layout: Layout) -> bool {
        // The type's own alignment is known here, more would need a look at the configuration.
        layout.size() == size_of::<T>() && layout.align() <= align_of::<T>()
    }

    #[inline(always)]
    pub(super) fn raw_allocate(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        if layout.size() == 0 {
            return Some(NonNull::slice_from_raw_parts(dangling(layout), 0));
        }
        let start = if self.is_slot(layout) {
            match cache::pop(self.handle().id()) {
                Some(slot) => slot.into_ptr(),
                None => self.slot_cold()?,
            }
        } else {
            self.block(layout)?
        };
        Some(NonNull::slice_from_raw_parts(start, layout.size()))
    }

    #[cold]
    #[inline(never)]
    fn slot_cold(&self) -> Option<NonNull<u8>> {
        let cache = self.handle().cache();
        let slot = no_unwind(|| cache.alloc_cold()).unwrap_or(Err(AllocErrorKind::OutOfMemory));
        slot.ok().map(crate::slab::Slot::into_ptr)
    }

    #[inline(never)]
    fn block(&self, layout: Layout) -> Option<NonNull<u8>> {
        let cache = self.handle().cache();
        if cache.config().strict_layout() {
            return None;
        }
        no_unwind(|| cache.alloc_block(layout)).flatten()
    }

    pub(super) fn raw_allocate_zeroed(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        let slice = self.raw_allocate(layout)?;
        // Slots and pages may come dirty.
        // SAFETY: the memory was just allocated, and is this long.
        unsafe { ptr::write_bytes(slice.cast::<u8>().as_ptr(), 0, slice.len()) };
        Some(slice)
    }

    /// # Safety
    ///
    /// As `Allocator::deallocate`.
    #[inline(always)]
    pub(super) unsafe fn raw_deallocate(&self, start: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        if page_map::get(start.addr().get()).raw() == self.handle().id() {
            // SAFETY: slots of this pool start on the page, and the caller gives up the one at `start`.
            let slot = unsafe { crate::slab::Slot::from_ptr(start) };
            if let Err(slot) = cache::push(self.handle().id(), slot) {
                free_slot_cold(slot.into_ptr());
            }
            return;
        }
        // SAFETY: passed on.
        unsafe { self.free_block(start) }
    }

    /// # Safety
    ///
    /// As `Allocator::deallocate`.
    #[inline(never)]
    unsafe fn free_block(&self, start: NonNull<u8>) {
        let cache = self.handle().cache();
        if !cache.is_block(start) {
            let entry = page_map::get(start.addr().get());
            let kind = if entry.id() == 0 {
                ReportKind::NoPool
            } else {
                ReportKind::WrongPool
            };
            no_unwind(|| cache.report_misuse(kind, start.addr().get()));
            return;
        }
        // SAFETY: the caller gives up a block of this pool.
        no_unwind(|| unsafe { cache.free_block(start) });
    }

    /// Bytes that may be used at `start`, a slot or block of this pool.
    ///
    /// # Safety
    ///
    /// `start` is currently allocated.
    unsafe fn capacity_at(&self, start: NonNull<u8>) -> usize {
        let cache = self.handle().cache();
        if cache.is_block(start) {
            // SAFETY: passed on.
            unsafe { cache.block_capacity(start) }
        } else {
            size_of::<T>()
        }
    }

    /// # Safety
    ///
    /// As `Allocator::grow`; with `zeroed`, as `Allocator::grow_zeroed`.
    pub(super) unsafe fn raw_grow(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
        zeroed: bool,
    ) -> Option<NonNull<[u8]>> {
        debug_assert!(new.size() >= old.size());
        // SAFETY: passed on.
        let grown = match unsafe { self.resize_in_place(start, old, new) } {
            Some(slice) => slice,
            // SAFETY: passed on.
            None => unsafe { self.relocate(start, old, new) }?,
        };
        if zeroed {
            // SAFETY: the memory is `new.size()` bytes long, which is at least `old.size()`.
            let tail = unsafe { grown.cast::<u8>().add(old.size()) };
            // SAFETY: as above; the caller's bytes lie before the tail.
            unsafe { ptr::write_bytes(tail.as_ptr(), 0, new.size() - old.size()) };
        }
        Some(grown)
    }

    /// # Safety
    ///
    /// As `Allocator::shrink`.
    pub(super) unsafe fn raw_shrink(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<[u8]>> {
        debug_assert!(new.size() <= old.size());
        if new.size() == 0 {
            // SAFETY: the caller gives the memory up; a container that shrinks to nothing frees nothing.
            unsafe { self.raw_deallocate(start, old) };
            return Some(NonNull::slice_from_raw_parts(dangling(new), 0));
        }
        // SAFETY: passed on.
        match unsafe { self.resize_in_place(start, old, new) } {
            Some(slice) => Some(slice),
            // Only an alignment that the old place does not have moves what is shrunk.
            // SAFETY: passed on.
            None => unsafe { self.relocate(start, old, new) },
        }
    }

    /// The same place with another size, if it is large enough and aligned.
    ///
    /// # Safety
    ///
    /// `start` is currently allocated with a layout that `old` fits.
    unsafe fn resize_in_place(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<[u8]>> {
        if old.size() == 0 || start.addr().get() % new.align() != 0 {
            return None;
        }
        // SAFETY: `old` has a size, so `start` is memory of this pool.
        let fits = new.size() <= unsafe { self.capacity_at(start) };
        fits.then(|| NonNull::slice_from_raw_parts(start, new.size()))
    }

    /// Another place, with the contents copied.
    ///
    /// # Safety
    ///
    /// As `Allocator::grow` or `Allocator::shrink`.
    unsafe fn relocate(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<[u8]>> {
        let slice = self.raw_allocate(new)?;
        let size = old.size().min(new.size());
        // SAFETY: both are at least `size` bytes long, and the new place was just allocated.
        unsafe { ptr::copy_nonoverlapping(start.as_ptr(), slice.cast::<u8>().as_ptr(), size) };
        // SAFETY: the caller gives the old place up.
        unsafe { self.raw_deallocate(start, old) };
        Some(slice)
    }
}

/// A pointer with the alignment of a layout and no memory behind it.
fn dangling(layout: Layout) -> NonNull<u8> {
    NonNull::new(ptr::without_provenance_mut(layout.align())).unwrap_or(NonNull::dangling())
}

#[cold]
#[inline(never)]
fn free_slot_cold(start: NonNull<u8>) {
    // SAFETY: the caller gave the slot up, and it was not freed.
    no_unwind(|| unsafe { release(start) });
}

/// Runs what may call a user's page source or hook, and stops a panic: allocators must not unwind.
fn no_unwind<R>(f: impl FnOnce() -> R) -> Option<R> {
    let payload = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    // The destructor of a payload may panic too; what it panics with is beyond help.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        #[expect(clippy::mem_forget, reason = "its destructor may panic for ever")]
        core::mem::forget(payload);
    }
    None
}

/// Implements an `Allocator` trait for a type by the functions above.
macro_rules! impl_allocator {
    ($($path:ident)::+) => {
        // SAFETY: memory stays valid until it is given back, whatever happens to the handle: slots and blocks
        // that are out keep their cache. Handles of one pool are equivalent. The methods do as the trait asks,
        // see the module.
        unsafe impl<T> $($path)::+::Allocator for Pool<T> {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                self.raw_allocate(layout).ok_or($($path)::+::AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                self.raw_allocate_zeroed(layout).ok_or($($path)::+::AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
                // SAFETY: passed on.
                unsafe { self.raw_deallocate(start, layout) };
            }

            unsafe fn grow(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                // SAFETY: passed on.
                unsafe { self.raw_grow(start, old, new, false) }.ok_or($($path)::+::AllocError)
            }

            unsafe fn grow_zeroed(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                // SAFETY: passed on.
                unsafe { self.raw_grow(start, old, new, true) }.ok_or($($path)::+::AllocError)
            }

            unsafe fn shrink(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                // SAFETY: passed on.
                unsafe { self.raw_shrink(start, old, new) }.ok_or($($path)::+::AllocError)
            }
        }
    };
}

#[cfg(feature = "allocator-api2-02")]
impl_allocator!(allocator_api2::alloc);
