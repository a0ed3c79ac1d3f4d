//! What a node's lock guards.
#![forbid(unsafe_code)]

use super::tenancy::Tenancy;
use super::want::{Shortage, Supply, Tight, Want};
use crate::slab::{Blueprint, SlabSet, Slot, Taken};

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) slabs: SlabSet,
    /// Live blocks of the allocator traits, and their pages.
    pub(super) blocks: usize,
    pub(super) block_pages: usize,
    /// The pool has no handle left, so empty slabs are not kept.
    pub(super) retired: bool,
    pub(super) tenancy: Tenancy,
    /// The pool is at its limit, and its threads park nothing.
    pub(super) tight: Option<Tight>,
}

impl Inner {
    pub(super) fn new(blueprint: &Blueprint) -> Self {
        Self {
            slabs: SlabSet::new(blueprint),
            blocks: 0,
            block_pages: 0,
            retired: false,
            tenancy: Tenancy::default(),
            tight: None,
        }
    }

    pub(super) fn take(
        &mut self,
        limit: usize,
        want: Want,
        supply: &Supply,
        sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let allowed = limit.saturating_sub(self.slabs.out());
        if allowed < want.min {
            return Err(Shortage::Limit);
        }
        // At its limit a pool parks nothing.
        let max = if self.tight.is_some() {
            want.min
        } else {
            want.max.min(allowed)
        };
        let free = self.slabs.slots() - self.slabs.out();
        if free < want.min || (free < max && !supply.scraps) {
            return Err(Shortage::Slabs {
                missing: want.min.saturating_sub(free),
            });
        }
        Ok(self.slabs.take(max.min(free), sink))
    }

    /// Counts slots that came home at the limit; whether the pool is far enough below it to park slots again.
    pub(super) fn is_calm(&mut self, came_home: usize) -> bool {
        let out = self.slabs.out();
        self.tight
            .as_mut()
            .is_some_and(|tight| tight.is_calm(came_home, out))
    }

    pub(super) fn in_use(&self) -> bool {
        self.slabs.out() > 0 || self.blocks > 0
    }

    /// Whether the last thing that kept an orphaned cache has just come home; true once.
    pub(super) fn ended(&mut self) -> bool {
        let in_use = self.in_use();
        self.tenancy.ends(in_use)
    }
}
