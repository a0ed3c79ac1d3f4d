//! Retired slots that are marked in their pages.
#![forbid(unsafe_code)]

use super::{Drained, Nodes};
use crate::slab::Slot;

impl Nodes {
    /// Marks slots, those of a node in one hold of its lock, with the grace period that `stamp` names; `note` gets how
    /// many, and the grace period. Both run under the lock, once for each node at least.
    pub(crate) fn mark_retired(
        &self,
        slots: impl Iterator<Item = Slot>,
        drained: &mut Drained,
        stamp: impl Fn() -> u64,
        note: impl Fn(usize, u64),
    ) {
        self.each_home(slots, |node, slots| {
            let mut inner = node.inner.lock();
            let (stamp, mut count) = (stamp(), 0);
            for slot in slots {
                let addr = slot.addr();
                match inner.slabs.mark_retired(slot, stamp) {
                    Ok(()) => count += 1,
                    Err(misfit) => {
                        drained.note(misfit, addr);
                    }
                }
            }
            note(count, stamp);
        });
    }

    /// Takes up to `n` marked slots whose grace period `is_over`; `note` gets how many of a node. All run under the
    /// lock of that.
    pub(crate) fn take_retired(
        &self,
        n: usize,
        is_over: impl Fn(u64) -> bool,
        mut sink: impl FnMut(Slot),
        note: impl Fn(usize),
    ) {
        let mut left = n;
        for node in self.iter() {
            let mut inner = node.inner.lock();
            let taken = inner.slabs.take_retired(left, &is_over, &mut sink);
            note(taken);
            left -= taken;
        }
    }
}
