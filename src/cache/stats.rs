//! The gauges: every slot counted in the place where it is.
#![forbid(unsafe_code)]

use super::Cache;
use crate::hook::counter::Stats;

impl Cache {
    /// A snapshot; exact while no other thread is inside a call.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.counters.read(&mut stats);
        let locals = self.locals.lock();
        let cached: usize = locals.list.iter().map(|local| local.cached()).sum();
        let threads = locals.list.len();
        #[cfg(feature = "op-counters")]
        {
            let sum = |gone: usize, of: fn(&crate::local::Local) -> usize| {
                (gone + locals.list.iter().map(|local| of(local)).sum::<usize>()) as u64
            };
            stats.alloc_fastpath += sum(locals.gone[0], |local| local.ops.alloc.get());
            stats.free_fastpath += sum(locals.gone[1], |local| local.ops.free.get());
        }
        drop(locals);
        let (_, _, barn) = self.barn.counts();
        let prefilled = self.ledger.total();
        let transit = self.tightness.transit();
        let node = self.node.counts();
        let live = node.out.saturating_sub(cached + barn + prefilled + transit);
        stats.live = live as u64;
        stats.prefilled = prefilled as u64;
        stats.cached = cached as u64;
        stats.barn = barn as u64;
        stats.transit = transit as u64;
        stats.free = (node.slots - node.out) as u64;
        stats.slots = node.slots as u64;
        stats.slabs = node.slabs as u64;
        stats.blocks = node.blocks as u64;
        stats.bytes = node.bytes as u64;
        stats.locals = threads as u64;
        stats
    }
}
