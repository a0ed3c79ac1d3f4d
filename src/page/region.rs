//! Pages from a piece of memory that the user gives.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::PageSource;
use super::free_list::FreeList;
use crate::base::layout::PAGE_SIZE;
use crate::sync::Lock;

/// Pages from one piece of memory: a static, a mapping, what a boot loader or another runtime left.
///
/// Whole pages of 64 KiB, aligned to as much, are cut out of it, lowest first; what is before and behind them is
/// not used. Freed pages are joined to their neighbours and used again. When the piece is used up a pool has no
/// more memory: a bound that nothing can exceed.
///
/// # Real time
///
/// Takes a lock and a step for each free run of pages. No system call.
///
/// ```
/// use core::mem::MaybeUninit;
/// use sheaves::{Pool, Region};
///
/// let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
/// let pool: Pool<u64> = Pool::builder("fixed").source(Region::new(memory)).build()?;
/// assert_eq!(*pool.alloc(7), 7);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
pub struct Region {
    free: Lock<FreeList>,
    pages: usize,
}

impl Region {
    /// A source of the whole pages in `memory`; perhaps there are none.
    pub fn new(memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let len = memory.len();
        let start = NonNull::from(memory).cast::<u8>();
        let lead = start.as_ptr().align_offset(PAGE_SIZE);
        let pages = len.saturating_sub(lead) / PAGE_SIZE;
        let mut free = FreeList::new();
        if pages > 0 {
            // SAFETY: there is a page behind the lead, so it lies within the slice.
            let first = unsafe { start.add(lead) };
            // SAFETY: the pages lie within the slice, which was borrowed for ever and is given up.
            unsafe { free.put(first, pages * PAGE_SIZE) };
        }
        Self {
            free: Lock::new(free),
            pages,
        }
    }

    /// Bytes of the pages in it, used and free.
    pub fn bytes(&self) -> usize {
        self.pages * PAGE_SIZE
    }
}

// SAFETY: blocks are pages of a slice that was borrowed for ever, taken off the list of free ones while they are
// blocks; so nobody else uses them, and they do not overlap. The list stays with the slice, not with the value.
unsafe impl PageSource for Region {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.free.lock().take(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up a block, which is pages of the one slice.
        unsafe { self.free.lock().put(pages, layout.size()) };
    }
}

impl core::fmt::Debug for Region {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Region")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
