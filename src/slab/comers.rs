//! Slabs before they enter a set, and after they left it.
//!
//! Both steps may call the system or a user's page source, so they stand outside the node's lock: slabs come in
//! as *fresh* ones, entered in the page map, and empty ones leave as a *surplus*, which it has forgotten.

use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use super::owned::{Slab, slab_layout};
use super::set::OwnerPtr;
use crate::base::flags::DebugFlags;
use crate::base::layout::Geometry;
use crate::base::list::List;
use crate::page::{Entry, Hint, Pages, Source, page_map};

/// Whose slabs are to be made, and how they are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blueprint {
    pub(crate) geometry: Geometry,
    pub(crate) id: u32,
    pub(crate) owner: OwnerPtr,
    /// The node whose they are to be.
    pub(crate) home: u8,
    /// See [`Nature`](super::Nature).
    pub(crate) stable: bool,
    pub(crate) debug: DebugFlags,
}

/// New slabs on their way into a set. Dropped, they go back to the source.
///
/// Making one calls the page source, which is a user's code, and the page map, which may call the system:
/// never under a lock. Many are gathered before any is brought in, so that nobody can take them away, or give
/// them back as empty, before the one who needs them all takes its slots.
#[derive(Debug)]
pub(crate) struct Fresh {
    slabs: List<Slab>,
    slots: usize,
    source: Source,
}

impl Fresh {
    pub(crate) fn new(source: &Source) -> Self {
        Self {
            slabs: List::new(),
            slots: 0,
            source: source.clone(),
        }
    }

    /// Slots of the slabs.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Makes one more slab; whether there was memory for it.
    pub(crate) fn make(&mut self, blueprint: &Blueprint, order: u8, hint: Hint) -> bool {
        let Some(pages) = Pages::alloc(&self.source, slab_layout(order), hint) else {
            return false;
        };
        // Heads are named as their runs are set up.
        let addr = pages.start().addr().get();
        let entry = Entry::tail(blueprint.id);
        if page_map::set_range(addr, 1 << order, |_| entry).is_err() {
            return false;
        }
        let slab = Slab::new(pages, blueprint, order);
        self.slots += slab.slots();
        self.slabs.push_front(slab);
        true
    }

    pub(super) fn pop(&mut self) -> Option<Slab> {
        let slab = self.slabs.pop_front()?;
        self.slots -= slab.slots();
        Some(slab)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let mut surplus = Surplus::new(&self.source);
        while let Some(slab) = self.pop() {
            slab.leave_map();
            surplus.push(slab);
        }
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
        // A second panic during the first would end the process.
        if let Some(payload) = panic.filter(|_| !std::thread::panicking()) {
            resume_unwind(payload);
        }
    }
}
