//! A block of pages that is owned.

use core::alloc::Layout;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use super::{Hint, PageSource};
use crate::base::layout::PAGE_SIZE;
use crate::sync::Arc;

/// A block of pages from a source, given back when dropped.
///
/// Dropping it calls the source, which is a user's code: never under a lock.
///
/// # Invariants
///
/// 1. `start` and `layout` are a block that `source` allocated and that nobody else gives back.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    layout: Layout,
    source: Source,
}

/// A shared page source.
#[derive(Clone)]
pub(crate) struct Source(pub(crate) Arc<dyn PageSource>);

// A panic of a source is expected: its contract says what must hold after it.
impl UnwindSafe for Source {}
impl RefUnwindSafe for Source {}

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Source")
    }
}

// SAFETY: the block is owned (invariant 1), and sources are `Send` and `Sync`.
unsafe impl Send for Pages {}

/// The layout of a block of this many pages, aligned to a page.
pub(crate) fn pages_layout(pages: usize) -> Option<Layout> {
    let size = pages.checked_mul(PAGE_SIZE)?;
    Layout::from_size_align(size, PAGE_SIZE).ok()
}

impl Pages {
    /// Asks the source for a block; `None` if it has none.
    ///
    /// Calls a user's code.
    pub(crate) fn alloc(source: &Source, layout: Layout, hint: Hint) -> Option<Self> {
        let start = source.0.alloc_pages_hinted(layout, hint)?;
        debug_assert!(
            start.addr().get() % layout.align() == 0,
            "the page source misaligned a block"
        );
        Some(Self {
            start,
            layout,
            source: source.clone(),
        })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives up ownership; [`Pages::from_raw`] takes it back.
    pub(crate) fn into_raw(self) -> (NonNull<u8>, Layout) {
        let this = core::mem::ManuallyDrop::new(self);
        // The clone of the source must be dropped although the block must not.
        // SAFETY: `this` is never used again, so its source is read out once.
        drop(unsafe { core::ptr::read(&raw const this.source) });
        (this.start, this.layout)
    }

    /// Takes ownership of a block.
    ///
    /// # Safety
    ///
    /// The block was given up by [`Pages::into_raw`] of a block of the same source, and is taken back once.
    pub(crate) unsafe fn from_raw(start: NonNull<u8>, layout: Layout, source: &Source) -> Self {
        Self {
            start,
            layout,
            source: source.clone(),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the block came from this source with this layout, and is given back once (invariant 1).
        unsafe { self.source.0.free_pages(self.start, self.layout) }
    }
}
