//! The gauges: every slot counted in the place where it is.
#![forbid(unsafe_code)]

use super::Cache;
use crate::hook::counter::Stats;

impl Cache {
    /// What each node has: slots, those of them that are free in slabs, slabs, and slots in its barn.
    pub(crate) fn stats_of_nodes(&self) -> impl Iterator<Item = [usize; 4]> {
        let barns = self.barns.iter().map(|barn| barn.counts().2);
        self.nodes
            .counts_each()
            .zip(barns)
            .map(|(node, barn)| [node.slots, node.slots - node.out, node.slabs, barn])
    }

    /// A snapshot; exact while no other thread is inside a call.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        let locals = self.locals.lock();
        self.counters.read(&mut stats);
        let cached: usize = locals.list.iter().map(|local| local.cached()).sum();
        let threads = locals.list.len();
        for local in &locals.list {
            local.counters.read(&mut stats);
        }
        #[cfg(feature = "rcu")]
        let retired = self.retired(&locals.list);
        #[cfg(not(feature = "rcu"))]
        let retired = 0;
        drop(locals);
        let barn = self.barns.slots();
        let prefilled = self.ledger.total();
        let transit = self.tightness.transit();
        let node = self.nodes.counts();
        let live = node
            .out
            .saturating_sub(cached + barn + prefilled + retired + transit);
        stats.live = live as u64;
        stats.prefilled = prefilled as u64;
        stats.retired = retired as u64;
        #[cfg(feature = "rcu")]
        {
            stats.batch_sizes = self.batch_sizes.read();
        }
        stats.cached = cached as u64;
        stats.barn = barn as u64;
        stats.transit = transit as u64;
        stats.free = (node.slots - node.out) as u64;
        stats.slots = node.slots as u64;
        stats.slabs = node.slabs as u64;
        stats.blocks = node.blocks as u64;
        stats.bytes = node.bytes as u64;
        stats.block_bytes = node.block_bytes as u64;
        stats.locals = threads as u64;
        self.classes.count_in(&mut stats);
        stats
    }
}
