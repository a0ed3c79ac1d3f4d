//! Slabs before they enter a set, and after they left it.
//!
//! Both steps may call the system or a user's page source, so they stand outside the node's lock: pages are
//! *entered* in the page map before they become a slab, and empty slabs leave as a *surplus*.

use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use super::header::{Slab, slab_layout};
use crate::base::list::List;
use crate::page::{Entry, Pages, Source, page_map};

/// Pages of the size of a slab that the page map names as a cache's.
#[derive(Debug)]
pub(crate) struct Entered {
    pages: Pages,
    id: u32,
    order: u8,
}

impl Entered {
    /// Enters pages in the page map, which may need memory; `None` if there is none, or the pages lie beyond
    /// the map's reach. They are given back then, so this is called under no lock.
    pub(crate) fn new(pages: Pages, id: u32, order: u8) -> Option<Self> {
        debug_assert_eq!(pages.layout(), slab_layout(order));
        let addr = pages.start().addr().get();
        // Heads are named as their runs are set up.
        page_map::set_range(addr, 1 << order, |_| Entry::tail(id)).ok()?;
        Some(Self { pages, id, order })
    }

    pub(super) fn into_parts(self) -> (Pages, u32, u8) {
        (self.pages, self.id, self.order)
    }
}

/// Empty slabs on their way back to the page source.
///
/// Dropping it calls the source, which is a user's code: never under a lock.
#[derive(Debug)]
pub(crate) struct Surplus {
    slabs: List<Slab>,
    source: Source,
}

impl Surplus {
    pub(crate) fn new(source: &Source) -> Self {
        Self {
            slabs: List::new(),
            source: source.clone(),
        }
    }

    pub(crate) fn push(&mut self, slab: Slab) {
        self.slabs.push_front(slab);
    }
}

impl Drop for Surplus {
    fn drop(&mut self) {
        let mut panic = None;
        while let Some(slab) = self.slabs.pop_front() {
            // SAFETY: slabs get here from `SlabSet::pop_empty`, so all slots are free and the page map
            // has forgotten them; a cache has one source, the one that this was made with.
            let pages = unsafe { slab.into_pages(&self.source) };
            // A source that panics has taken the pages; it gets the others too.
            panic = catch_unwind(AssertUnwindSafe(|| drop(pages)))
                .err()
                .or(panic);
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }
}
