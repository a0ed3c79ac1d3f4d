//! The exact limit, and what is done about a shortage of slots.
//!
//! A limit bounds what is out of slabs, so what is live can never exceed it. The other half of the promise,
//! that nothing is refused while slots are merely parked in somebody's sheaf, takes a search: every gate is
//! shut, every sheaf and the barn are emptied into slabs, and whoever has slots in hand on the way from one
//! place to another is waited for. A search visits every thread, so a pool does not leave it at that: it stays
//! *tight*. Its gates stay shut, its barn closed, nothing is taken from slabs but what is needed at once, and
//! frees go to slabs: nothing is parked any more, so a refusal costs one look into the node and is exact.
//! When enough has come home it *loosens*.
//!
//! # Protocol
//!
//! 1. The pool counts as tight, in [`Tightness`](super::tightness::Tightness), only while the search is over. That
//!    changes under the lock of the list of locals: to tight as the last step of tightening, to loose as the first
//!    of loosening.
//! 2. A refusal is exact if the pool was tight before the look into the node and has been so until after it: then
//!    nothing was parked at the time of the look.
//! 3. Whoever takes slots out of one place to put them into another is *moving* from before the first step
//!    to after the last. The search waits until nobody is moving, with the list of locals locked. So while
//!    moving nobody takes that lock, calls user code, or searches; what user code is due, such as slabs going
//!    back to their source, is done when moving is over.
#![forbid(unsafe_code)]

use super::{Cache, Failure};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::Counter;
use crate::hook::event;
use crate::local::{self, Drain};
use crate::node::{Drained, Shortage, Supply};
use crate::page::Hint;
use crate::sheaf::Sheaf;
use crate::slab::Slot;

/// A thread that takes slots from one place to another (rule 3).
#[derive(Debug)]
pub(super) struct Moving<'a> {
    cache: &'a Cache,
    counted: bool,
    leaving: bool,
    in_hand: usize,
    drained: Drained,
}

impl<'a> Moving<'a> {
    pub(super) fn cache(&self) -> &'a Cache {
        self.cache
    }

    /// Tells that this many slots more are in hand.
    pub(super) fn take_up(&mut self, slots: usize) {
        if self.counted {
            self.in_hand += slots;
            self.cache.tightness.take_up(slots);
        }
    }

    /// Puts slots back into their slabs, in one hold of the node's lock.
    pub(super) fn put_home(&mut self, slots: impl Iterator<Item = Slot>) {
        self.cache
            .nodes
            .drain(slots, &mut self.drained, &self.cache.counters);
    }

    /// Puts every slot of a sheaf back into its slab.
    pub(super) fn flush(&mut self, sheaf: &mut Sheaf) {
        if !sheaf.is_empty() {
            self.cache.counters.add(Counter::SheafFlush, sheaf.len());
            self.put_home(sheaf.drain());
        }
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        if self.counted {
            self.cache.tightness.stop_moving(self.in_hand);
        }
        if self.leaving {
            self.cache.tightness.stop_leaving();
        }
        self.cache.settle(core::mem::take(&mut self.drained));
    }
}

impl Cache {
    /// Begins to move slots. Before it: whatever takes the list of locals, as `mine` does.
    pub(super) fn moving(&self) -> Moving<'_> {
        let counted = self.is_limited();
        if counted {
            self.tightness.start_moving();
        }
        Moving {
            cache: self,
            counted,
            leaving: false,
            in_hand: 0,
            drained: Drained::default(),
        }
    }

    /// As [`Cache::moving`], for a thread on its way out.
    ///
    /// Others that move slots are inside a user's call. A thread that ends is not, and whoever started it may
    /// think that it is gone, so every drain waits for it.
    pub(super) fn leaving(&self) -> Moving<'_> {
        let mut moving = self.moving();
        moving.leaving = true;
        self.tightness.start_leaving();
        moving
    }

    pub(super) fn is_limited(&self) -> bool {
        self.config.limit().is_some()
    }

    /// Whether nothing is parked and nothing may be.
    pub(super) fn is_tight(&self) -> bool {
        self.tightness.generation().is_tight()
    }

    /// Takes slots by `take`, doing what can be done about a shortage. `take` gets what was brought along, and
    /// holds no slots when it fails.
    pub(super) fn take_slots<R>(
        &self,
        mut take: impl FnMut(&mut Supply) -> Result<R, Shortage>,
    ) -> Result<R, Failure> {
        let mut supply = self.nodes.supply();
        let (mut dry, mut searched, mut faulted) = (false, false, false);
        loop {
            let before = self.tightness.generation();
            match take(&mut supply) {
                Ok(taken) => return Ok(taken),
                Err(Shortage::Limit) if self.tightness.is_exact(before) => {
                    return Err(AllocErrorKind::LimitReached);
                }
                Err(Shortage::Limit) if self.tighten() => {}
                Err(Shortage::Limit) => return Err(AllocErrorKind::LimitReached),
                Err(Shortage::Slabs { missing }) if !dry => {
                    let fault = self.is_faulted();
                    faulted |= fault;
                    dry = fault || !self.gather_slabs(missing, Hint::NONE, &mut supply);
                    supply.scraps = true;
                }
                // The source is dry, but others may have parked what is wanted; emptied slabs go back to the
                // source, so it is asked once more.
                Err(Shortage::Slabs { .. }) if !searched => {
                    (dry, searched) = (false, true);
                    self.drain();
                }
                Err(Shortage::Slabs { .. }) if faulted => return Err(AllocErrorKind::Injected),
                Err(Shortage::Slabs { .. }) => return Err(AllocErrorKind::OutOfMemory),
            }
        }
    }

    /// Makes new slabs for `slots` slots more, at least one slab; whether all could be had.
    pub(super) fn gather_slabs(&self, slots: usize, hint: Hint, supply: &mut Supply) -> bool {
        let all = self
            .nodes
            .gather(slots, &self.config, hint, supply, &self.counters);
        event::gathered(self.name(), slots, all);
        all
    }

    /// Searches all sheaves and makes the pool tight; `false` if a signal handler that interrupted the
    /// thread's own gate asks for it.
    #[cold]
    fn tighten(&self) -> bool {
        let own = local::find(self.id);
        let mut drained = Drained::default();
        let locals = self.locals.lock();
        if self.is_tight() {
            return true;
        }
        let own = own.as_ref().map(local::Mine::local);
        let Some(drain) = Drain::begin(&locals.list, own) else {
            return false;
        };
        self.counters.add(Counter::LimitSearch, 1);
        self.tightness.start_search();
        self.nodes.tighten(self.calm(locals.list.len()));
        self.barns.close();
        let mut to_slabs = |slots: &mut dyn Iterator<Item = Slot>| {
            self.nodes.drain(slots, &mut drained, &self.counters);
        };
        drain.tighten(&mut to_slabs);
        for mut sheaf in self.barns.take_full() {
            to_slabs(&mut sheaf.drain());
            self.counters.add(Counter::SheafFree, 1);
        }
        self.tightness.wait_for_movers();
        self.tightness.become_tight();
        drop(locals);
        self.settle(drained);
        event::searched(self.name(), self.config.limit);
        true
    }

    /// Slots out at which the pool may loosen: half the limit, or more if all threads together could not
    /// park what is left then.
    fn calm(&self, threads: usize) -> usize {
        let limit = self.config.limit;
        let parked = (2 * self.config.sheaf_capacity).saturating_mul(threads);
        (limit / 2).max(limit.saturating_sub(parked))
    }

    /// Lets threads and barn park slots again.
    #[cold]
    pub(super) fn loosen(&self) {
        // Somebody who searches, closes or shrinks just now is no reason to wait.
        let Some(locals) = self.locals.try_lock() else {
            return;
        };
        if !self.is_tight() || locals.closed {
            return;
        }
        self.tightness.become_loose();
        self.nodes.loosen();
        self.barns.open();
        locals.list.iter().for_each(|local| local.loosen());
    }
}
