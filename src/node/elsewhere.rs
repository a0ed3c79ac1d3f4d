//! Slots of other nodes, for whom their own has too few.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use super::common::Look;
use super::{MAX_NODES, Node, Nodes, Shortage, Supply, Want};
use crate::slab::{Slot, Taken};

impl Nodes {
    /// Takes slots of other nodes, since their own is short of them.
    #[cold]
    pub(super) fn take_elsewhere(
        &self,
        want: Want,
        supply: &Supply,
        shortage: Shortage,
        mut sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        if supply.scraps {
            // The source was asked.
            return self.take_everywhere(want, supply, sink);
        }
        // A new slab at home is better than strange slots, unless these would lie about.
        let surplus = |node: &Node| {
            let has_reserve = self.iter().any(|node| node.reserve > 0);
            node.try_take(&self.common, want, !has_reserve, &mut sink)
        };
        let is_short = !matches!(shortage, Shortage::Slabs { missing: 0 });
        let taken = is_short.then(|| self.away_from(supply.home).find_map(surplus));
        taken.flatten().ok_or(shortage)
    }

    /// Takes what all nodes together have.
    fn take_everywhere(
        &self,
        want: Want,
        supply: &Supply,
        mut sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let locks = self.iter().map(|node| node.inner.lock());
        let mut all: ArrayVec<_, MAX_NODES> = locks.collect();
        let n = self.common.grant(Look {
            want,
            scraps: true,
            slots: all.iter().map(|inner| inner.slabs.slots()).sum(),
            out: all.iter().map(|inner| inner.slabs.out()).sum(),
            tight: all.iter().any(|inner| inner.tight.is_some()),
        })?;
        let mut taken = Taken::default();
        let (before, from_home) = all.split_at_mut(supply.home);
        for inner in from_home.iter_mut().chain(before) {
            let part = inner.take_out(n - taken.count, &self.common, &mut sink);
            taken.count += part.count;
            taken.set_up += part.set_up;
        }
        self.common.count_bare(taken);
        Ok(taken)
    }

    /// All nodes but one, from the next on.
    pub(super) fn away_from(&self, home: usize) -> impl Iterator<Item = &Node> {
        self.iter().skip(home + 1).chain(self.iter().take(home))
    }
}
