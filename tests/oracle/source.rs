//! A page source that remembers every block, so that the model knows where each slab lies.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sheaves::{Heap, PageSource};

/// Bytes of a page.
pub(crate) const PAGE: usize = 1 << 16;

/// What new blocks are filled with.
const FRESH: u8 = 0xA5;

/// Blocks of [`Heap`], filled before they are given out, as long as there are pages left.
#[derive(Debug, Default)]
pub(crate) struct Source(Mutex<Log>);

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every block that was ever given out, in order: where it starts.
    pub(crate) made: Vec<usize>,
    /// The blocks that are out.
    pub(crate) out: Vec<(usize, Layout)>,
    /// Pages that may be out at once, if that is bounded.
    pub(crate) bound: Option<usize>,
}

impl Log {
    /// Pages of the blocks that are out.
    pub(crate) fn pages(&self) -> usize {
        self.out
            .iter()
            .map(|(_, layout)| layout.size() / PAGE)
            .sum()
    }
}

impl Source {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: every block comes from `Heap` and goes back to it with the layout that it came with; it is written to
// before it is given out, and not after.
unsafe impl PageSource for Source {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut log = self.log();
        let wanted = log.pages() + layout.size() / PAGE;
        if log.bound.is_some_and(|bound| wanted > bound) {
            return None;
        }
        let pages = Heap.alloc_pages(layout)?;
        // SAFETY: the block is this long, and nobody else knows of it yet.
        unsafe { pages.write_bytes(FRESH, layout.size()) };
        let start = pages.addr().get();
        log.made.push(start);
        log.out.push((start, layout));
        Some(pages)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        let start = pages.addr().get();
        let mut log = self.log();
        let known = log.out.iter().position(|block| *block == (start, layout));
        let Some(at) = known else {
            drop(log);
            panic!("{layout:?} at {start:#x} came back to the source that never gave it");
        };
        log.out.swap_remove(at);
        drop(log);
        // SAFETY: the block came from `Heap` with this layout, and the caller gives it back.
        unsafe { Heap.free_pages(pages, layout) };
    }
}
