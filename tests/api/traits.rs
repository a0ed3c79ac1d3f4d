//! The allocator traits of other versions, seen as the one that the tests use.
#![cfg(any(feature = "allocator-api2-04", core_allocator))]

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;

/// Each method goes to the method of the same name.
macro_rules! seen_as_v02 {
    ($name:ident, $($path:ident)::+) => {
        /// An allocator of another trait.
        pub(crate) struct $name<A>(pub(crate) A);

        // SAFETY: as the allocator within.
        unsafe impl<A: $($path)::+::Allocator> Allocator for $name<A> {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                self.0.allocate(layout).map_err(|_| allocator_api2::alloc::AllocError)
            }

            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                self.0.allocate_zeroed(layout).map_err(|_| allocator_api2::alloc::AllocError)
            }

            unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
                // SAFETY: passed on.
                unsafe { self.0.deallocate(start, layout) }
            }

            unsafe fn grow(&self, start: NonNull<u8>, old: Layout, new: Layout)
                -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                // SAFETY: passed on.
                unsafe { self.0.grow(start, old, new) }.map_err(|_| allocator_api2::alloc::AllocError)
            }

            unsafe fn grow_zeroed(&self, start: NonNull<u8>, old: Layout, new: Layout)
                -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                // SAFETY: passed on.
                unsafe { self.0.grow_zeroed(start, old, new) }.map_err(|_| allocator_api2::alloc::AllocError)
            }

            unsafe fn shrink(&self, start: NonNull<u8>, old: Layout, new: Layout)
                -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
                // SAFETY: passed on.
                unsafe { self.0.shrink(start, old, new) }.map_err(|_| allocator_api2::alloc::AllocError)
            }
        }
    };
}

#[cfg(feature = "allocator-api2-04")]
seen_as_v02!(V04, allocator_api2_04::alloc);
#[cfg(core_allocator)]
seen_as_v02!(Core, core::alloc);
