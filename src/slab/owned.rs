//! The handle of a slab.

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::NonNull;

use super::comers::Blueprint;
use super::header::{SlabFixed, SlabHeader, SlabState, fixed};
use crate::base::layout::{MAX_ORDER, RUN_HEADER, bitmap_words};
use crate::base::list::{Linked, Links};
use crate::hook::shadow;
use crate::page::{self, Pages, Source, page_map};

/// A slab that is in no list.
///
/// # Invariants
///
/// 1. The pointer is the start of a standing slab, with the provenance of all its pages, and this handle
///    owns it together with the tokens of its slots that are out.
#[derive(Debug)]
pub(crate) struct Slab(NonNull<SlabHeader>);

// SAFETY: the handle owns the slab (invariant 1); memory may be owned by any thread.
unsafe impl Send for Slab {}

// SAFETY: (1) the handle is given up for the pointer, and a slab's memory stays in place until the handle is
// turned into pages. (2) the links are a field of that header, which nothing else touches.
unsafe impl Linked for Slab {
    type Node = SlabHeader;

    fn into_node(self) -> NonNull<SlabHeader> {
        self.0
    }

    unsafe fn from_node(node: NonNull<SlabHeader>) -> Self {
        Self(node)
    }

    unsafe fn links(node: NonNull<SlabHeader>) -> NonNull<Links<SlabHeader>> {
        // SAFETY: the node is a standing slab, so its field lies within the same allocation.
        unsafe { node.byte_add(offset_of!(SlabHeader, links)) }.cast()
    }
}

impl Slab {
    /// Sets up a slab in pages whose contents are of no interest. Its runs are set up when first used.
    pub(super) fn new(pages: Pages, blueprint: &Blueprint, order: u8) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "bounded by `Geometry::MAX_SLOTS`"
        )]
        let fixed = SlabFixed {
            owner: blueprint.owner.0,
            id: blueprint.id,
            total: blueprint.geometry.slots_of(order) as u32,
            runs: blueprint.geometry.runs_of(order) as u32,
            order,
            home: blueprint.home,
        };
        let (start, layout) = pages.into_raw();
        debug_assert_eq!(layout, slab_layout(order));
        // Tokens are made again from addresses, see `Slot::from_ptr`.
        let _ = start.as_ptr().expose_provenance();
        let slab = start.cast::<SlabHeader>();
        let state = SlabState {
            out: 0,
            ready: 0,
            run_hint: 0,
            low: 0,
            high: 0,
            colour: 0,
            list: 0,
        };
        let new = SlabHeader::new(slab, fixed, state);
        // SAFETY: the pages are owned, so their first bytes may be written; page-aligned.
        unsafe { slab.write(new) };
        if shadow::WATCHED {
            // All but the header and the first run's bitmaps, until runs are set up and slots are handed out.
            let words = bitmap_words(blueprint.geometry.run_slots);
            let used = RUN_HEADER + 2 * words * 8;
            // SAFETY: the bitmap ends within the first page.
            let rest = unsafe { start.add(used) };
            shadow::close(rest, layout.size() - used);
            // SAFETY: the header ends before the bitmap.
            let slack = unsafe { slab.add(1) }.cast();
            shadow::close(slack, RUN_HEADER - size_of::<SlabHeader>());
        }
        Self(slab)
    }

    /// The pages of a slab of which no slot is out.
    ///
    /// # Safety
    ///
    /// The pages came from `source`, every slot is free, and the page map does not name them any more.
    pub(super) unsafe fn into_pages(self, source: &Source) -> Pages {
        let order = fixed(self.0).order;
        shadow::open(self.0.cast(), slab_layout(order).size());
        // SAFETY: the block was given up in `new`, and is taken back once since `self` is consumed; the
        // same source by the caller's word.
        unsafe { Pages::from_raw(self.0.cast(), slab_layout(order), source) }
    }

    /// Slots of the slab.
    pub(super) fn slots(&self) -> usize {
        fixed(self.0).total as usize
    }

    /// Has the page map forget the slab.
    pub(super) fn leave_map(&self) {
        page_map::clear_range(self.0.addr().get(), 1 << fixed(self.0).order);
    }

    pub(super) fn node(&self) -> NonNull<SlabHeader> {
        self.0
    }
}

/// The layout of a slab's pages.
pub(crate) fn slab_layout(order: u8) -> Layout {
    debug_assert!(order <= MAX_ORDER);
    page::pages_layout(1 << order).expect("orders are at most MAX_ORDER")
}
