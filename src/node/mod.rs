//! Nodes: the slabs that the threads of one NUMA node draw on, and the policy for keeping them.
//!
//! Everything about a node's slabs happens under its one lock: a whole sheaf is filled in one hold, fullest
//! slabs first, and a whole sheaf is flushed in one hold. The lock is never held while the page source is
//! called: empty slabs leave as a [`Surplus`], which is dropped outside, and new ones are gathered as [`Fresh`]
//! ones before they are brought in.
//!
//! The node is also where slots are counted. `out` is what is not free in a slab, wherever it is; a limit
//! bounds it, so that what is live can never exceed the limit either.
//!
//! # Several nodes
//!
//! A cache has as many nodes as the machine ([`Topology`]), all behind [`Nodes`]. A slab belongs to the node on which
//! it was made, its *home*: nothing binds its memory there, but the thread that makes a slab is the first to write to
//! it, and systems place memory near whoever does that. Its slots come home wherever they are freed, those of one
//! node in one hold of its lock. A thread draws on the home of the node that it stands on. Where that has no slot it
//! first looks at nodes that have more slabs than they would keep, or at all if the pool has a reserve, without
//! waiting for their locks; then it makes a slab; and where the source is dry it takes what all nodes together have,
//! with all their locks held, in their order. Nowhere else are two nodes locked at once, but to look at an address
//! and before a `fork`.
//!
//! What belongs to no node, blocks of whole pages, is counted with the first. The reserve is that of the node on
//! which the pool was built. The limit is one for all nodes ([`quota`]), and so is the end of a cache ([`tenancy`]).
//! With one node none of this costs anything: there is nobody else to look at, and nothing is counted twice.
//!
//! [`Topology`]: crate::base::topology::Topology
#![forbid(unsafe_code)]

mod common;
mod drained;
mod elsewhere;
mod inner;
mod inspect;
mod nodes;
mod quota;
mod residency;
#[cfg(feature = "rcu")]
mod retired;
mod tenancy;
mod want;

pub(crate) use drained::Drained;
pub(crate) use nodes::{Founder, Nodes, Room};
pub(crate) use want::{Shortage, Supply, Want};

use common::Common;
use inner::Inner;

use crate::base::config::Config;
use crate::base::topology::MAX_NODES;
use crate::hook::counter::{Counter, Counters};
use crate::page::{Hint, Source};
use crate::slab::{Fresh, PutEffect, Slot, Surplus, Taken};
use crate::sync::{Guard, Lock};

/// Pages of slabs from which on a node asks for huge pages: 256 KiB. It asks for a slab when it has used up what it
/// has, so what a huge page holds beside the slab is no more than a few times as much.
const GROWN: usize = if cfg!(sheaves_small) { 1 } else { 4 };

/// The slabs of one NUMA node.
#[derive(Debug)]
struct Node {
    inner: Lock<Inner>,
    founder: Founder,
    home: u8,
    min_partial: usize,
    reserve: usize,
    source: Source,
}

/// What nodes' locks guard, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeCounts {
    pub(crate) slabs: usize,
    pub(crate) slots: usize,
    pub(crate) out: usize,
    pub(crate) blocks: usize,
    pub(crate) bytes: usize,
    pub(crate) block_bytes: usize,
}

impl Node {
    fn new(config: &Config, founder: Founder, home: u8, reserve: usize, source: Source) -> Self {
        Self {
            inner: Lock::new(Inner::new(&founder.blueprint(config, home))),
            founder,
            home,
            min_partial: config.min_partial,
            reserve,
            source,
        }
    }

    /// Takes as many slots as `want` says, in one hold of the lock.
    fn take(
        &self,
        common: &Common,
        want: Want,
        supply: &mut Supply,
        sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let mut inner = self.lock_with(supply);
        let taken = inner.take(common, want, supply, sink);
        // For whoever makes slabs now, without this lock.
        supply.grown = inner.slabs.pages() >= GROWN;
        let taken = taken?;
        common.count_bare(taken);
        Ok(taken)
    }

    /// Locks the node and brings new slabs in.
    fn lock_with(&self, supply: &mut Supply) -> Guard<'_, Inner> {
        let mut inner = self.inner.lock();
        if let Some(fresh) = &mut supply.fresh {
            inner.slabs.insert(fresh);
        }
        inner
    }

    /// As [`Node::take`] of what is there, unless the lock is held.
    fn try_take(
        &self,
        common: &Common,
        want: Want,
        only_surplus: bool,
        sink: impl FnMut(Slot),
    ) -> Option<Taken> {
        let mut inner = self.inner.try_lock()?;
        if only_surplus && inner.slabs.partial() <= self.min_partial {
            return None;
        }
        let mut supply = Supply::of(0);
        supply.scraps = true;
        // A shortage here is for a caller that may wait to do something about.
        let taken = inner.take(common, want, &supply, sink).ok()?;
        common.count_bare(taken);
        Some(taken)
    }

    /// Puts slots back into their slabs, in one hold of the lock, keeping `min_partial` slabs.
    fn drain(
        &self,
        common: &Common,
        slots: impl Iterator<Item = Slot>,
        drained: &mut Drained,
        counters: &Counters,
    ) {
        let mut inner = self.inner.lock();
        let out = inner.slabs.out();
        for slot in slots {
            let addr = slot.addr();
            match inner.slabs.put(slot) {
                Ok(PutEffect::None) => {}
                Ok(PutEffect::WasFull) => counters.add(Counter::FreeAddPartial, 1),
                Ok(PutEffect::Emptied) => {
                    // As in the kernel `min_partial` bounds the partial slabs among which an empty one is
                    // worth keeping, not the empty ones alone.
                    if inner.retired || inner.slabs.partial() > self.min_partial {
                        self.pop_surplus(common, &mut inner, &mut drained.surplus, counters);
                    }
                }
                Err(misfit) => {
                    drained.note(misfit, addr);
                }
            }
        }
        let came_home = out - inner.slabs.out();
        drained.calm |= inner.came_home(came_home, common);
        drained.last |= inner.ended(common);
    }

    /// Takes out every empty slab but the reserve.
    fn shrink(&self, common: &Common, surplus: &mut Option<Surplus>, counters: &Counters) {
        let mut inner = self.inner.lock();
        while self.pop_surplus(common, &mut inner, surplus, counters) {}
    }

    /// Moves one empty slab to the surplus, if the reserve allows it.
    fn pop_surplus(
        &self,
        common: &Common,
        inner: &mut Guard<'_, Inner>,
        surplus: &mut Option<Surplus>,
        counters: &Counters,
    ) -> bool {
        let Some(slots) = inner.slabs.next_empty_slots() else {
            return false;
        };
        // A pool without handles has nobody left to reserve for.
        if !inner.retired && inner.slabs.slots() - slots < self.reserve {
            return false;
        }
        let Some(slab) = inner.slabs.pop_empty() else {
            return false;
        };
        common.count_warm(inner.slabs.bare_runs(&slab));
        counters.add(Counter::FreeSlab, 1);
        counters.add(Counter::FreeRemovePartial, 1);
        surplus
            .get_or_insert_with(|| Surplus::new(&self.source))
            .push(slab);
        true
    }

    /// Makes new slabs for `slots` slots more, at least one slab; whether all could be had. Calls the page
    /// source, so no lock may be held.
    ///
    /// Falls back to the smallest order that holds one object where the source cannot give the one asked
    /// for.
    fn gather(
        &self,
        slots: usize,
        config: &Config,
        hint: Hint,
        supply: &mut Supply,
        counters: &Counters,
    ) -> bool {
        let hint = if config.huge || supply.grown {
            hint.huge()
        } else {
            hint
        };
        let min_order = config.geometry.min_order().unwrap_or(config.order);
        let blueprint = self.founder.blueprint(config, self.home);
        let fresh = supply.fresh.get_or_insert_with(|| Fresh::new(&self.source));
        let wanted = fresh.slots() + slots.max(1);
        while fresh.slots() < wanted {
            if !fresh.make(&blueprint, config.order, hint) {
                if min_order == config.order || !fresh.make(&blueprint, min_order, Hint::NONE) {
                    return false;
                }
                counters.add(Counter::OrderFallback, 1);
            }
            counters.add(Counter::AllocSlab, 1);
        }
        true
    }
}
