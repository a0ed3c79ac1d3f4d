//! Which runs are known to be resident, so that a sheaf can be lent that faults no page.
//!
//! A count of those that are not spares the look at every slot while there are none, and a sheaf remembers that its
//! slots have been seen to.
#![forbid(unsafe_code)]

use super::Nodes;
use super::common::Common;
use crate::base::layout::{Geometry, PAGE_SIZE};
use crate::sheaf::Sheaf;
use crate::slab::{Taken, populate_run_of};
use crate::sync::Ordering;

impl Common {
    /// Counts runs that were set up, with their node's lock held: whoever gets a slot of theirs sees the count.
    pub(super) fn count_bare(&self, taken: Taken) {
        if taken.set_up > 0 {
            // Relaxed: a count, and the lock orders it for all who get slots.
            self.bare.fetch_add(taken.set_up, Ordering::Relaxed);
        }
    }

    /// Counts runs out that are gone, or resident.
    pub(super) fn count_warm(&self, runs: usize) {
        // Relaxed: see `count_bare`.
        self.bare.fetch_sub(runs, Ordering::Relaxed);
    }
}

impl Nodes {
    /// Makes the slots of a sheaf resident.
    #[inline]
    pub(crate) fn warm_up(&self, sheaf: &mut Sheaf, geometry: &Geometry) {
        // Relaxed: see `count_bare`.
        if !sheaf.is_resident() && self.common.bare.load(Ordering::Relaxed) != 0 {
            self.warm_up_slots(sheaf, geometry);
        }
    }

    #[cold]
    fn warm_up_slots(&self, sheaf: &mut Sheaf, geometry: &Geometry) {
        let (mut warmed, mut resident) = (0, 0);
        for slot in sheaf.iter() {
            // Neighbours are of one run as a rule, whose header need be read once.
            let page = slot.addr() / PAGE_SIZE;
            if page == resident {
                continue;
            }
            if let Some(now) = populate_run_of(slot, geometry) {
                warmed += usize::from(now);
                resident = page;
            }
        }
        sheaf.set_resident();
        self.common.count_warm(warmed);
    }
}
