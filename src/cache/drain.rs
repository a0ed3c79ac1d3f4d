//! Taking slots back from every thread: shrink, flush, thread exit and the close.
#![forbid(unsafe_code)]

use super::Cache;
use super::limit::Moving;
use crate::hook::counter::{Counter, Stats};
use crate::hook::event;
use crate::hook::leaks::Leaks;
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
            drain.drain(|slots| self.nodes.drain(slots, &mut drained, &self.counters));
        }
        self.tightness.wait_for_leavers();
        drop(locals);
        // Empty slabs go back here, after the locks.
        self.settle(drained);
        let mut moving = self.moving();
        for mut sheaf in self.barns.take_full() {
            moving.take_up(sheaf.len());
            moving.flush(&mut sheaf);
            self.put_away_array(Some(sheaf));
        }
    }

    /// Moves what the running thread has parked to slabs.
    pub(crate) fn flush_thread(&self) {
        self.classes.iter().for_each(|class| class.flush_thread());
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

    /// Gives back every empty slab but the reserve, wherever its slots were parked, and what the source keeps;
    /// the bytes given back.
    pub(crate) fn shrink(&self) -> usize {
        let of_classes: usize = self.classes.iter().map(|class| class.shrink_slabs()).sum();
        let bytes = of_classes + self.shrink_slabs();
        self.nodes.source().0.trim();
        event::shrunk(self.name(), bytes);
        bytes
    }

    fn shrink_slabs(&self) -> usize {
        let before = self.nodes.counts().bytes;
        self.drain();
        for empty in self.barns.take_empty() {
            drop(empty);
            self.counters.add(Counter::SheafFree, 1);
        }
        self.part_with(self.nodes.shrink(&self.counters));
        before.saturating_sub(self.nodes.counts().bytes)
    }

    /// The last handle is gone: no thread keeps sheaves any more, and what is out ends the cache when it
    /// comes home. Waits for nobody but threads in the middle of one operation.
    pub(super) fn close(&self) {
        // Last of all, and in any case.
        let _classes = self.classes.close();
        // Needs no memory: a pool can be ended when there is none.
        let go_home = |mut sheaf: Sheaf, moving: &mut Moving<'_>| {
            moving.put_home(sheaf.drain());
            self.counters.add(Counter::SheafFree, 1);
        };
        #[cfg(feature = "rcu")]
        self.queue.make_room(self.locals.lock().list.len() + 1);
        let own = local::find(self.id);
        let mut locals = self.locals.lock();
        locals.closed = true;
        // Begun under the lock, where no search waits: what the threads had parked is in hand until it is home.
        let mut moving = self.moving();
        if let Some(drain) = Drain::begin(&locals.list, own.as_ref().map(local::Mine::local)) {
            drain.kill(|sheaf| go_home(sheaf, &mut moving));
        }
        #[cfg(feature = "rcu")]
        let mut drained = Drained::default();
        #[cfg(feature = "rcu")]
        self.hand_in_all(&locals.list, u64::MAX, own.as_ref(), true, &mut drained);
        let list = core::mem::take(&mut locals.list);
        drop(locals);
        drop(list);
        self.barns.close();
        for sheaf in self.barns.take_full() {
            go_home(sheaf, &mut moving);
        }
        for empty in self.barns.take_empty() {
            drop(empty);
            self.counters.add(Counter::SheafFree, 1);
        }
        let _surplus = self.keep_for_readers(self.nodes.retire(&self.counters));
        #[cfg(feature = "rcu")]
        self.settle_retired(drained);
        // Left before anything can come home last, and taken back if everything is home already.
        self.leave_to_slots();
        if !self.nodes.orphan() {
            self.take_from_slots();
        }
        // Calls the source, which may panic: last of all.
        drop(moving);
    }

    /// Live slots and blocks, and slots in prefilled sheaves.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let prefilled = self.ledger.total();
        self.drain();
        #[cfg(feature = "rcu")]
        let retired = self.retired(&self.locals.lock().list);
        #[cfg(not(feature = "rcu"))]
        let retired = 0;
        let node = self.nodes.counts();
        let of_classes: usize = self.classes.iter().map(|class| class.in_use().0).sum();
        let live = node.out.saturating_sub(prefilled + retired) + node.blocks + of_classes;
        (live, prefilled)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        registry::unregister(self.id);
        self.part_with(self.nodes.retire(&self.counters));
    }
}

impl CacheOps for Cache {
    fn config(&self) -> &crate::base::config::Config {
        Self::config(self)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn is_class(&self) -> bool {
        self.is_class
    }

    fn is_over(&self) -> bool {
        let closed = self.locals.lock().closed;
        let node = self.nodes.counts();
        closed && node.out + node.blocks == 0
    }

    fn shrink(&self) -> usize {
        Self::shrink(self)
    }

    fn leaks(&self) -> Leaks {
        Self::leaks(self)
    }

    fn thread_exit(&self, local: usize, kill: &mut dyn FnMut() -> [Option<Sheaf>; 2]) {
        let mut moving = self.leaving();
        for sheaf in kill().into_iter().flatten() {
            moving.take_up(sheaf.len());
            self.put_away(Some(sheaf), &mut moving);
        }
        // The list is locked by who waits for movers.
        drop(moving);
        #[cfg(feature = "rcu")]
        self.hand_in_left(local);
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
        for barn in self.barns.iter() {
            locks.push(Box::new(barn.hold()));
        }
        for node in self.nodes.hold_locks() {
            locks.push(Box::new(node));
        }
        #[cfg(feature = "rcu")]
        locks.push(Box::new(self.queue.hold()));
        locks.push(Box::new(self.injector.hold()));
        if let Some(debug) = &self.debug {
            locks.push(Box::new(debug.hold()));
        }
        locks
    }

    #[cfg(feature = "rcu")]
    fn reclaim(&self, all: bool) -> crate::registry::Reclaimed {
        self.reclaim_all(all)
    }

    #[cfg(feature = "rcu")]
    fn barrier(&self) -> Result<(), crate::base::error::BarrierError> {
        self.rcu_barrier()
    }

    fn forget_movers(&self) {
        #[cfg(feature = "rcu")]
        self.queue.forget_reapers();
        self.tightness.forget_movers();
    }

    fn take_over_after_fork(&self) {
        #[cfg(unix)]
        self.take_over();
    }
}
