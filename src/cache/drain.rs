//! Taking slots back from every thread: shrink, flush, thread exit and the close.
#![forbid(unsafe_code)]

use super::Cache;
use super::limit::Moving;
use crate::hook::counter::{Counter, Stats};
use crate::local::{self, Drain};
use crate::node::Drained;
use crate::registry::{self, CacheOps, HeldLock};
use crate::sheaf::Sheaf;

impl Cache {
    /// Moves every slot that sits in a thread's sheaf or in the barn to its slab.
    ///
    /// The threads are not asked and need not run. Slots under way elsewhere are not found.
    pub(super) fn drain(&self) {
        let mut drained = Drained::default();
        let own = local::find(self.id);
        let locals = self.locals.lock();
        if let Some(drain) = Drain::begin(&locals.list, own.as_ref().map(local::Mine::local)) {
            drain.drain(|slots| self.node.drain(slots, &mut drained, &self.counters));
        }
        self.tightness.wait_for_leavers();
        drop(locals);
        // Empty slabs go back here, after the locks.
        self.settle(drained);
        let mut moving = self.moving();
        while let Some(mut sheaf) = self.barn.get_full() {
            moving.take_up(sheaf.len());
            moving.flush(&mut sheaf);
            self.put_away_array(Some(sheaf));
        }
    }

    /// Moves what the running thread has parked to slabs.
    pub(crate) fn flush_thread(&self) {
        let Some(mine) = local::find(self.id) else {
            return;
        };
        let mut moving = self.moving();
        let sheaves = {
            let Some(mut held) = mine.hold() else { return };
            if held.is_closed() {
                return;
            }
            [held.take_main(), held.spare().take()]
        };
        for mut sheaf in sheaves.into_iter().flatten() {
            moving.take_up(sheaf.len());
            moving.flush(&mut sheaf);
            self.put_away_array(Some(sheaf));
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
        // Needs no memory: a pool can be ended when there is none.
        let go_home = |mut sheaf: Sheaf, moving: &mut Moving<'_>| {
            moving.put_home(sheaf.drain());
            self.counters.add(Counter::SheafFree, 1);
        };
        let own = local::find(self.id);
        let mut locals = self.locals.lock();
        locals.closed = true;
        // Begun under the lock, where no search waits: what the threads had parked is in hand until it is home.
        let mut moving = self.moving();
        if let Some(drain) = Drain::begin(&locals.list, own.as_ref().map(local::Mine::local)) {
            drain.kill(|sheaf| go_home(sheaf, &mut moving));
        }
        let list = core::mem::take(&mut locals.list);
        drop(locals);
        drop(list);
        self.barn.close();
        while let Some(sheaf) = self.barn.get_full() {
            go_home(sheaf, &mut moving);
        }
        while let Some(empty) = self.barn.get_empty() {
            drop(empty);
            self.counters.add(Counter::SheafFree, 1);
        }
        let _surplus = self.node.retire(&self.counters);
        // Left before anything can come home last, and taken back if everything is home already.
        self.leave_to_slots();
        if !self.node.orphan() {
            self.take_from_slots();
        }
        // Calls the source, which may panic: last of all.
        drop(moving);
    }

    /// Live slots and blocks, and slots in prefilled sheaves.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let prefilled = self.ledger.total();
        self.drain();
        let node = self.node.counts();
        (node.out.saturating_sub(prefilled) + node.blocks, prefilled)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        registry::unregister(self.id);
        drop(self.node.retire(&self.counters));
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

    fn thread_exit(&self, local: usize, kill: &mut dyn FnMut() -> [Option<Sheaf>; 2]) {
        let mut moving = self.leaving();
        for sheaf in kill().into_iter().flatten() {
            moving.take_up(sheaf.len());
            self.put_away(Some(sheaf), &mut moving);
        }
        // The list is locked by who waits for movers.
        drop(moving);
        self.forget_local(local);
    }

    fn hold_locks(&self) -> Vec<HeldLock<'_>> {
        let locals = self.locals.lock();
        let list = locals.list.clone();
        let mut locks: Vec<HeldLock<'_>> = vec![Box::new(locals)];
        locks.extend(
            list.into_iter()
                .map(|local| Box::new(local::hold_lock(local)) as HeldLock<'_>),
        );
        locks.push(Box::new(self.ledger.hold()));
        locks.push(Box::new(self.barn.hold()));
        locks.push(Box::new(self.node.hold_lock()));
        locks
    }

    fn forget_movers(&self) {
        self.tightness.forget_movers();
    }

    fn take_over_after_fork(&self) {
        #[cfg(unix)]
        self.take_over();
    }
}
