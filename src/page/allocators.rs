//! Pages from an allocator of the allocator traits.
//!
//! The traits of different versions are different traits, and one newtype for all of them would need
//! implementations that overlap; so each has a newtype of its own, with the version in its name.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::PageSource;

macro_rules! source_of {
    ($(#[$doc:meta])* $name:ident, $($path:ident)::+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name<A>(A);

        impl<A> $name<A>
        where
            A: $($path)::+::Allocator + Send + Sync + 'static,
        {
            /// Draws pages from `allocator`.
            pub const fn new(allocator: A) -> Self {
                Self(allocator)
            }

            /// The allocator.
            pub const fn allocator(&self) -> &A {
                &self.0
            }
        }

        // SAFETY: blocks are currently allocated blocks of an allocator that is kept until they were freed. It
        // gives at least the size asked for, at the alignment asked for, and moving it invalidates nothing.
        unsafe impl<A> PageSource for $name<A>
        where
            A: $($path)::+::Allocator + Send + Sync + 'static,
        {
            fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
                self.0.allocate(layout).ok().map(NonNull::cast)
            }

            unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
                // SAFETY: the block is currently allocated, with a layout that fits.
                unsafe { self.0.deallocate(pages, layout) };
            }

            unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
                // The allocator knows best how to do it, and copies if it must.
                let moved = if new.size() >= old.size() {
                    // SAFETY: the block is currently allocated, `old` fits it, and `new` is no smaller.
                    unsafe { self.0.grow(pages, old, new) }
                } else {
                    // SAFETY: as above, and `new` is smaller.
                    unsafe { self.0.shrink(pages, old, new) }
                };
                moved.ok().map(NonNull::cast)
            }
        }
    };
}

#[cfg(feature = "allocator-api2-02")]
source_of! {
    /// Pages from an allocator of allocator-api2 0.2.
    ///
    /// What it frees goes back to the allocator at once. Real time: as the allocator.
    ///
    /// ```
    /// use allocator_api2::alloc::Global;
    /// use sheaves::{AllocatorV02, Pool};
    ///
    /// let pool: Pool<u64> = Pool::builder("on_global").source(AllocatorV02::new(Global)).build()?;
    /// assert_eq!(*pool.alloc(7), 7);
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
    AllocatorV02, allocator_api2::alloc
}

#[cfg(feature = "allocator-api2-04")]
source_of! {
    /// Pages from an allocator of allocator-api2 0.4.
    ///
    /// What it frees goes back to the allocator at once. Real time: as the allocator.
    AllocatorV04, allocator_api2_04::alloc
}
