//! Pages from the global allocator. The only file that names its functions.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the door to raw memory that the lint points to"
)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{Hint, PageSource, populate};

/// Pages from the global allocator: the default where there is no [`Mmap`](crate::Mmap).
///
/// Useful under tools that watch the global allocator, or with an allocator that is good at large blocks.
/// Freed slabs go back to it at once; nothing is kept, so `trim` has nothing to do. Asked to populate it makes
/// the pages resident; huge pages are the allocator's business.
///
/// Real time: as the global allocator.
///
/// # Examples
///
/// ```
/// use core::alloc::Layout;
/// use sheaves::{Heap, PageSource};
///
/// let layout = Layout::from_size_align(1 << 16, 1 << 16)?;
/// let page = Heap.alloc_pages(layout).expect("64 KiB are there");
/// // SAFETY: `page` is a block of `Heap` with this layout, and nothing uses it any more.
/// unsafe { Heap.free_pages(page, layout) };
/// # Ok::<(), core::alloc::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

// SAFETY: blocks are allocations of the global allocator, whose contract has all that is asked: size,
// alignment, no overlap, valid on all threads until deallocated. `Heap` has no state that could move.
unsafe impl PageSource for Heap {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        debug_assert!(layout.size() != 0, "a block has at least one page");
        // SAFETY: the size is not zero, as the trait says of the layout.
        NonNull::new(unsafe { alloc::alloc::alloc(layout) })
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from `alloc` with this layout, as the caller promises; `remap`, which could
        // have changed it, never succeeds here.
        unsafe { alloc::alloc::dealloc(pages.as_ptr(), layout) };
    }

    fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
        let pages = self.alloc_pages(layout)?;
        if hint.is_populate() {
            // SAFETY: the block is this long, and nobody else knows of it yet.
            unsafe { populate(pages, layout.size()) };
        }
        Some(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::layout::PAGE_SIZE;

    #[test]
    fn blocks_are_aligned_and_writable() {
        for pages in [1, 2, 3, 32] {
            for hint in [Hint::NONE, Hint::NONE.populate().huge()] {
                let layout = Layout::from_size_align(pages * PAGE_SIZE, PAGE_SIZE).unwrap();
                let block = Heap.alloc_pages_hinted(layout, hint).unwrap();
                assert_eq!(block.addr().get() % PAGE_SIZE, 0);
                // SAFETY: the block is this long and ours.
                unsafe { block.write_bytes(0xA5, layout.size()) };
                // SAFETY: a block of `Heap` with its layout.
                unsafe { Heap.free_pages(block, layout) };
            }
        }
    }
}
