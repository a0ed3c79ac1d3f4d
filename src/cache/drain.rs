//! Taking slots back from every thread: shrink, flush, the search at a limit, and the close.
#![forbid(unsafe_code)]

use super::Cache;
use crate::hook::counter::{Counter, Stats};
use crate::local::{self, Drain};
use crate::node::Drained;
use crate::registry::{self, CacheOps};
use crate::sheaf::Sheaf;

impl Cache {
    /// Moves every slot that sits in a thread's sheaf or in the barn to its slab; how many there were.
    ///
    /// The threads are not asked and need not run. Slots under way elsewhere are not found.
    pub(super) fn drain(&self) -> usize {
        let mut moved = 0;
        let mut drained = Drained::default();
        let own = local::find(self.id);
        let locals = self.locals.lock();
        if let Some(drain) = Drain::begin(&locals.list, own.as_ref().map(|own| own.local())) {
            drain.drain(|slots| {
                let counted = slots.inspect(|_| moved += 1);
                self.node.drain(counted, &mut drained, &self.counters);
            });
        }
        drop(locals);
        // Empty slabs go back here, after the locks.
        self.settle(drained);
        moved + self.drain_barn()
    }

    fn drain_barn(&self) -> usize {
        let mut moved = 0;
        while let Some(mut sheaf) = self.barn.get_full() {
            moved += sheaf.len();
            self.flush(&mut sheaf);
            self.put_away_array(sheaf);
        }
        moved
    }

    /// Looks for slots that are parked somewhere, since the limit is reached; whether there were any.
    #[cold]
    pub(super) fn search(&self) -> bool {
        self.counters.add(Counter::LimitSearch, 1);
        self.drain() > 0
    }

    /// Moves what the running thread has parked to slabs.
    pub(crate) fn flush_thread(&self) {
        let Some(mine) = local::find(self.id) else { return };
        let sheaves = {
            let Some(mut held) = mine.hold() else { return };
            if held.is_dead() {
                return;
            }
            [held.take_main(), held.spare().take()]
        };
        for mut sheaf in sheaves.into_iter().flatten() {
            self.flush(&mut sheaf);
            self.put_away_array(sheaf);
        }
    }

    /// Gives back every empty slab but the reserve, wherever its slots were parked; the bytes given back.
    pub(crate) fn shrink(&self) -> usize {
        let before = self.node.counts().bytes;
        self.drain();
        while let Some(empty) = self.barn.get_empty() {
            drop(empty);
            self.counters.add(Counter::SheafFree, 1);
        }
        drop(self.node.shrink(&self.counters));
        self.node.source().0.trim();
        before.saturating_sub(self.node.counts().bytes)
    }

    /// The last handle is gone: no thread keeps sheaves any more, and what is out ends the cache when it
    /// comes home. Waits for nobody but threads in the middle of one operation.
    pub(super) fn close(&self) {
        let mut sheaves = Vec::new();
        let own = local::find(self.id);
        let mut locals = self.locals.lock();
        locals.closed = true;
        if let Some(drain) = Drain::begin(&locals.list, own.as_ref().map(|own| own.local())) {
            drain.kill(|sheaf| sheaves.push(sheaf));
        }
        let list = core::mem::take(&mut locals.list);
        drop(locals);
        drop(list);
        self.barn.close();
        sheaves.extend(core::iter::from_fn(|| self.barn.get_full()));
        // Left before anything can come home last, and taken back here if everything is home already.
        self.leave_to_slots();
        for mut sheaf in sheaves {
            self.flush(&mut sheaf);
            self.put_away_array(sheaf);
        }
        while self.barn.get_empty().is_some() {}
        if !self.node.orphan() {
            self.take_from_slots();
        }
        drop(self.node.shrink(&self.counters));
    }

    /// Whether anything is out, with every sheaf drained: slots and blocks, and those in prefilled sheaves.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        self.drain();
        let stats = self.stats();
        let live = stats.live + stats.blocks;
        (usize::try_from(live).unwrap_or(usize::MAX), usize::try_from(stats.prefilled).unwrap_or(usize::MAX))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        registry::unregister(self.id);
        drop(self.node.shrink(&self.counters));
    }
}

impl CacheOps for Cache {
    fn config(&self) -> &crate::base::config::Config {
        Self::config(self)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn shrink(&self) -> usize {
        Self::shrink(self)
    }

    fn thread_exit(&self, local: usize, held: [Option<Sheaf>; 2]) {
        for sheaf in held {
            self.put_away(sheaf);
        }
        self.forget_local(local);
    }
}
