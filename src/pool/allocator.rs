//! Pools as allocators of collections.
//!
//! One object of the pool's type comes from a slot; what else is small from a slot of one of the caches beside
//! the pool's own, its [classes](crate::base::class); every other layout gets whole pages. All but the first are
//! counted to the pool as blocks. A block is freed by its address, not by its layout: the page map tells which
//! cache's slots start on its page, and that none do where it is whole pages. So a block or a slot may be shrunk
//! in place to any smaller layout, and shrinking never fails. The layout only says where to look first. Slices
//! are exactly as long as asked: containers that take up an excess would later free with a layout that they never
//! asked for.
//!
//! Whole pages grow and shrink by the page source where it can do that, in place or by moving page tables.
//!
//! The contract is that of core's newest text: zero-sized requests are dangling and store nothing, growing
//! with zeros clears everything past the old size, and nothing unwinds, not even if the page source panics.

mod traits;

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use super::Pool;
use crate::base::class::Class;
use crate::base::layout::PAGE_SIZE;
use crate::cache::{self, SizeKey, free_slow};
use crate::hook::report::ReportKind;
use crate::hook::shadow;
use crate::page::{Entry, page_map};
use crate::slab::Slot;

pub use traits::PoolOf;

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
            match cache::pop(Self::KEY, self.handle().id()) {
                Some(slot) => slot.into_ptr(),
                None => self.slot_cold()?,
            }
        } else if let Some(class) = Class::of(Layout::new::<T>(), layout) {
            match cache::pop(Self::key_of(class), self.handle().cache().class_id(class)) {
                Some(slot) => slot.into_ptr(),
                None => self.class_cold(class)?,
            }
        } else {
            self.block(layout)?
        };
        if shadow::WATCHED {
            // SAFETY: just allocated.
            shadow::open(start, unsafe { self.handle().cache().capacity_at(start) });
        }
        Some(NonNull::slice_from_raw_parts(start, layout.size()))
    }

    #[cold]
    #[inline(never)]
    fn slot_cold(&self) -> Option<NonNull<u8>> {
        let cache = self.handle().cache();
        let slot = no_unwind(|| cache.alloc_cold(Self::KEY));
        slot?.ok().map(Slot::into_ptr)
    }

    #[cold]
    #[inline(never)]
    fn class_cold(&self, class: Class) -> Option<NonNull<u8>> {
        let cache = self.handle().cache();
        if cache.config().strict_layout() {
            return None;
        }
        let (key, object) = (Self::key_of(class), Layout::new::<T>());
        let slot = no_unwind(|| cache.alloc_of_class(class, key, object));
        slot?.ok().map(Slot::into_ptr)
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
        let Some((id, key)) = self.place_of(start, layout) else {
            // SAFETY: passed on.
            return unsafe { self.free_by_address(start) };
        };
        if shadow::WATCHED {
            // SAFETY: allocated until now.
            shadow::close(start, unsafe { self.handle().cache().capacity_at(start) });
        }
        // SAFETY: slots of this pool, or of a class of it, start on the page, and the caller gives up the one at
        // `start`.
        let slot = unsafe { Slot::from_ptr(start) };
        if let Err(slot) = cache::push(key, id, slot) {
            free_slot_cold(key, slot);
        }
    }

    /// Where a thread remembers its sheaves of a class.
    #[inline(always)]
    const fn key_of(class: Class) -> SizeKey {
        SizeKey::of(class.slot(Layout::new::<T>()).0)
    }

    /// Whose slot is at `start`, by the page map, if it is of the cache that serves its layout.
    #[inline(always)]
    fn place_of(&self, start: NonNull<u8>, layout: Layout) -> Option<(u32, SizeKey)> {
        let entry = page_map::get(start.addr().get()).raw();
        if entry == self.handle().id() {
            return Some((entry, Self::KEY));
        }
        if self.is_slot(layout) {
            return None;
        }
        let class = Class::of(Layout::new::<T>(), layout)?;
        let id = self.handle().cache().class_id(class);
        // 0 is no cache's, but stands in the page map for all that is not a pool's.
        (id != 0 && id == entry).then(|| (id, Self::key_of(class)))
    }

    /// Frees what was shrunk in place, or is whole pages.
    ///
    /// # Safety
    ///
    /// As `Allocator::deallocate`.
    #[inline(never)]
    unsafe fn free_by_address(&self, start: NonNull<u8>) {
        let cache = self.handle().cache();
        let entry = page_map::get(start.addr().get());
        if cache.class_at(entry).is_some() {
            if shadow::WATCHED {
                // SAFETY: allocated until now.
                shadow::close(start, unsafe { cache.capacity_at(start) });
            }
            // SAFETY: such a slot is at `start`, and the caller gives it up.
            return free_slot_cold(Self::KEY, unsafe { Slot::from_ptr(start) });
        }
        // SAFETY: the caller gives up a block of this pool, if it is one.
        let freed = no_unwind(|| unsafe { cache.free_block(start) });
        if freed == Some(false) {
            let kind = if entry == Entry::NONE {
                ReportKind::NoPool
            } else if entry == Entry::tail(self.handle().id()) {
                ReportKind::Interior
            } else {
                ReportKind::WrongPool
            };
            no_unwind(|| cache.report_misuse(kind, start.addr().get()));
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
            None => match unsafe { self.remap(start, old, new) } {
                Some(slice) => slice,
                // SAFETY: passed on.
                None => unsafe { self.relocate(start, old, new) }?,
            },
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
        if old.size() - new.size() >= PAGE_SIZE {
            // What cannot be given back stays in place.
            // SAFETY: passed on.
            if let Some(slice) = unsafe { self.remap(start, old, new) } {
                return Some(slice);
            }
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
        let capacity = unsafe { self.handle().cache().capacity_at(start) };
        let fits = new.size() <= capacity;
        fits.then(|| NonNull::slice_from_raw_parts(start, new.size()))
    }

    /// Whole pages made larger or smaller by the page source, if it can.
    ///
    /// # Safety
    ///
    /// As `Allocator::grow` or `Allocator::shrink`.
    unsafe fn remap(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<[u8]>> {
        if old.size() == 0 {
            return None;
        }
        let cache = self.handle().cache();
        // SAFETY: `old` has a size, so `start` is memory of this pool, and the caller's alone.
        let start = no_unwind(|| unsafe { cache.remap_block(start, new) }).flatten()?;
        Some(NonNull::slice_from_raw_parts(start, new.size()))
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
fn free_slot_cold(class: SizeKey, slot: Slot) {
    no_unwind(|| free_slow(class, slot));
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
