//! What a node's lock guards.
#![forbid(unsafe_code)]

use super::common::{Common, Look};
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
        common: &Common,
        want: Want,
        supply: &Supply,
        sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let n = common.grant(Look {
            want,
            scraps: supply.scraps,
            slots: self.slabs.slots(),
            out: self.slabs.out(),
            tight: self.tight.is_some(),
        })?;
        Ok(self.take_out(n, common, sink))
    }

    /// Takes up to `n` slots that were granted.
    pub(super) fn take_out(&mut self, n: usize, common: &Common, sink: impl FnMut(Slot)) -> Taken {
        let taken = self.slabs.take(n, sink);
        if taken.count > 0 {
            self.tenancy.took(&common.leases);
        }
        taken
    }

    /// Counts slots that came home; whether the pool is far enough below its limit to park slots again.
    pub(super) fn came_home(&mut self, came_home: usize, common: &Common) -> bool {
        common.came_home(came_home);
        let out = common.out(self.slabs.out());
        self.tight
            .is_some_and(|tight| tight.is_calm(common.count_since_tight(came_home), out))
    }

    pub(super) fn in_use(&self) -> bool {
        self.slabs.out() > 0 || self.blocks > 0
    }

    /// Whether the last thing that kept an orphaned cache has just come home; true once.
    pub(super) fn ended(&mut self, common: &Common) -> bool {
        let in_use = self.in_use();
        self.tenancy.ends(in_use, &common.leases)
    }
}
