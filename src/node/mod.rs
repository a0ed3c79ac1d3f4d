//! A node: the slabs that one barn draws on, and the policy for keeping them.
//!
//! Everything about a node's slabs happens under its one lock: a whole sheaf is filled in one hold, fullest
//! slabs first, and a whole sheaf is flushed in one hold. The lock is never held while the page source is
//! called: empty slabs leave as a [`Surplus`], which is dropped outside, and new ones are gathered as [`Fresh`]
//! ones before they are brought in.
//!
//! The node is also where slots are counted. `out` is what is not free in a slab, wherever it is; a limit
//! bounds it, so that what is live can never exceed the limit either.
#![forbid(unsafe_code)]

mod inner;
mod tenancy;
mod want;

pub(crate) use want::{Shortage, Supply, Want};

use inner::Inner;
use want::Tight;

use crate::base::config::Config;
use crate::base::layout::{Geometry, PAGE_SIZE};
use crate::hook::counter::{Counter, Counters};
use crate::page::{Hint, Source};
use crate::sheaf::Sheaf;
use crate::slab::{
    Blueprint, Fresh, Misfit, OwnerPtr, PutEffect, Slot, Surplus, Taken, populate_run_of,
};
use crate::sync::{AtomicUsize, Guard, Lock, Ordering};

/// The slabs of one NUMA node.
#[derive(Debug)]
pub(crate) struct Node {
    inner: Lock<Inner>,
    /// Runs that are set up and not known to be resident.
    bare: AtomicUsize,
    blueprint: Blueprint,
    min_partial: usize,
    reserve: usize,
    limit: usize,
    source: Source,
}

/// What a node's lock guards, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeCounts {
    pub(crate) slabs: usize,
    pub(crate) slots: usize,
    pub(crate) out: usize,
    pub(crate) blocks: usize,
    pub(crate) bytes: usize,
}

/// What came of putting slots back.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Slabs to give back, outside all locks.
    pub(crate) surplus: Option<Surplus>,
    /// The first slot that fitted nowhere, with its address; it is leaked.
    pub(crate) misfit: Option<(Misfit, usize)>,
    /// This was the last slot of an orphaned cache: the caller ends it.
    pub(crate) last: bool,
    /// A tight pool may park slots again.
    pub(crate) calm: bool,
}

impl Node {
    pub(crate) fn new(config: &Config, id: u32, owner: OwnerPtr, source: Source) -> Self {
        let blueprint = Blueprint {
            geometry: config.geometry,
            id,
            owner,
        };
        Self {
            inner: Lock::new(Inner::new(&blueprint)),
            bare: AtomicUsize::new(0),
            blueprint,
            min_partial: config.min_partial,
            reserve: config.reserve,
            limit: config.limit,
            source,
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Fills a sheaf with as many slots as `want` says and it has room for, in one hold of the lock.
    pub(crate) fn refill(
        &self,
        sheaf: &mut Sheaf,
        want: Want,
        supply: &mut Supply,
    ) -> Result<usize, Shortage> {
        let below = sheaf.len();
        let mut inner = self.lock_with(supply);
        let taken = inner.take(self.limit, want, supply, |slot| {
            let pushed = sheaf.push(slot);
            debug_assert!(pushed.is_ok(), "there was room for that many");
        })?;
        self.count_bare(taken);
        drop(inner);
        sheaf.reverse_above(below);
        Ok(taken.count)
    }

    /// Counts runs that were set up, with the lock held: whoever gets a slot of theirs sees the count.
    fn count_bare(&self, taken: Taken) {
        if taken.set_up > 0 {
            // Relaxed: a count, and the lock orders it for all who get slots.
            self.bare.fetch_add(taken.set_up, Ordering::Relaxed);
        }
    }

    /// Makes the slots of a sheaf resident.
    pub(crate) fn warm_up(&self, sheaf: &Sheaf, geometry: &Geometry) {
        // Relaxed: see `count_bare`.
        if self.bare.load(Ordering::Relaxed) == 0 {
            return;
        }
        let warmed = sheaf
            .iter()
            .filter(|slot| populate_run_of(slot, geometry))
            .count();
        // Relaxed: as above.
        self.bare.fetch_sub(warmed, Ordering::Relaxed);
    }

    /// Takes `n` slots one by one, or none.
    pub(crate) fn take(
        &self,
        n: usize,
        supply: &mut Supply,
        sink: impl FnMut(Slot),
    ) -> Result<(), Shortage> {
        let mut inner = self.lock_with(supply);
        let taken = inner.take(self.limit, Want::exactly(n), supply, sink)?;
        self.count_bare(taken);
        Ok(())
    }

    /// Locks the node and brings new slabs in.
    fn lock_with(&self, supply: &mut Supply) -> Guard<'_, Inner> {
        let mut inner = self.inner.lock();
        if let Some(fresh) = &mut supply.fresh {
            inner.slabs.insert(fresh);
        }
        inner
    }

    /// Takes one slot unless the lock is held.
    pub(crate) fn try_take(&self) -> Option<Slot> {
        let mut slot = None;
        let mut inner = self.inner.try_lock()?;
        let want = Want::exactly(1);
        // A shortage here is for a caller that may wait to do something about.
        let taken = inner.take(self.limit, want, &Supply::default(), |taken| {
            slot = Some(taken);
        });
        self.count_bare(taken.unwrap_or_default());
        slot
    }

    /// Puts slots back into their slabs, in one hold of the lock, keeping `min_partial` slabs.
    pub(crate) fn drain(
        &self,
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
                        self.pop_surplus(&mut inner, &mut drained.surplus, counters);
                    }
                }
                Err(misfit) => {
                    drained.misfit.get_or_insert((misfit, addr));
                }
            }
        }
        let came_home = out - inner.slabs.out();
        drained.calm |= inner.is_calm(came_home);
        drained.last |= inner.ended();
    }

    /// From now on nothing but what is needed at once is given out. With `calm` slots out or fewer,
    /// [`Drained`] says so.
    pub(crate) fn tighten(&self, calm: usize) {
        self.inner.lock().tight = Some(Tight::new(calm));
    }

    /// Gives out slots to be parked again.
    pub(crate) fn loosen(&self) {
        self.inner.lock().tight = None;
    }

    /// Takes out every empty slab but the reserve.
    pub(crate) fn shrink(&self, counters: &Counters) -> Option<Surplus> {
        let mut inner = self.inner.lock();
        let mut surplus = None;
        while self.pop_surplus(&mut inner, &mut surplus, counters) {}
        surplus
    }

    /// Keeps no slab from now on but those in use.
    pub(crate) fn retire(&self, counters: &Counters) -> Option<Surplus> {
        self.inner.lock().retired = true;
        self.shrink(counters)
    }

    /// Moves one empty slab to the surplus, if the reserve allows it.
    fn pop_surplus(
        &self,
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
        // Relaxed: see `count_bare`.
        self.bare
            .fetch_sub(inner.slabs.bare_runs(&slab), Ordering::Relaxed);
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
    pub(crate) fn gather(
        &self,
        slots: usize,
        config: &Config,
        hint: Hint,
        supply: &mut Supply,
        counters: &Counters,
    ) -> bool {
        let hint = if config.huge { hint.huge() } else { hint };
        let min_order = config.geometry.min_order().unwrap_or(config.order);
        let fresh = supply.fresh.get_or_insert_with(|| Fresh::new(&self.source));
        let wanted = fresh.slots() + slots.max(1);
        while fresh.slots() < wanted {
            if !fresh.make(&self.blueprint, config.order, hint) {
                if min_order == config.order || !fresh.make(&self.blueprint, min_order, Hint::NONE)
                {
                    return false;
                }
                counters.add(Counter::OrderFallback, 1);
            }
            counters.add(Counter::AllocSlab, 1);
        }
        true
    }

    /// Brings new slabs in.
    pub(crate) fn bring_in(&self, supply: &mut Supply) {
        drop(self.lock_with(supply));
    }

    /// Counts a block of pages in.
    #[cfg(feature = "allocator-api2-02")]
    pub(crate) fn add_block(&self, pages: usize) {
        let mut inner = self.inner.lock();
        inner.blocks += 1;
        inner.block_pages += pages;
    }

    /// Counts a block of pages out; whether the cache ends with it.
    #[cfg(feature = "allocator-api2-02")]
    pub(crate) fn remove_block(&self, pages: usize) -> bool {
        let mut inner = self.inner.lock();
        inner.blocks -= 1;
        inner.block_pages -= pages;
        inner.ended()
    }

    /// Locks the node.
    pub(crate) fn hold_lock(&self) -> impl Sized + '_ {
        self.inner.lock()
    }

    /// Runs `f` while no slab can come or go.
    pub(crate) fn hold<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.inner.lock();
        f()
    }

    /// Declares that no handle is left. Whether something is still out, so that its return ends the cache.
    pub(crate) fn orphan(&self) -> bool {
        let mut inner = self.inner.lock();
        let in_use = inner.in_use();
        inner.tenancy.orphan(in_use)
    }

    pub(crate) fn counts(&self) -> NodeCounts {
        let inner = self.inner.lock();
        NodeCounts {
            slabs: inner.slabs.slabs(),
            slots: inner.slabs.slots(),
            out: inner.slabs.out(),
            blocks: inner.blocks,
            bytes: (inner.slabs.pages() + inner.block_pages) * PAGE_SIZE,
        }
    }
}
