//! A node: the slabs that one barn draws on, and the policy for keeping them.
//!
//! Everything about a node's slabs happens under its one lock: a whole sheaf is filled in one hold, fullest
//! slabs first, and a whole sheaf is flushed in one hold. The lock is never held while the page source is
//! called: empty slabs leave as a [`Surplus`], which is dropped outside, and new ones are brought in by
//! [`Node::grow`].
//!
//! The node is also where slots are counted. `out` is what is not free in a slab, wherever it is; a limit
//! bounds it, so that what is live can never exceed the limit either.
#![forbid(unsafe_code)]

mod want;

pub(crate) use want::{Shortage, Want};

use want::Tight;

use crate::base::config::Config;
use crate::base::layout::PAGE_SIZE;
use crate::hook::counter::{Counter, Counters};
use crate::page::{Hint, Pages, Source};
use crate::sheaf::Sheaf;
use crate::slab::{
    Entered, Misfit, OwnerPtr, PutEffect, SlabSet, Slot, Surplus, Taken, slab_layout,
};
use crate::sync::{Guard, Lock};

/// The slabs of one NUMA node.
#[derive(Debug)]
pub(crate) struct Node {
    inner: Lock<Inner>,
    id: u32,
    min_partial: usize,
    reserve: usize,
    limit: usize,
    source: Source,
}

#[derive(Debug)]
struct Inner {
    slabs: SlabSet,
    /// Live blocks of the allocator traits, and their pages.
    blocks: usize,
    block_pages: usize,
    /// The pool has no handle left, so empty slabs are not kept.
    retired: bool,
    /// The pool has no handle left, and something is out: the last slot or block to come home ends the cache.
    orphaned: bool,
    /// The pool is at its limit, and its threads park nothing.
    tight: Option<Tight>,
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
        let slabs = SlabSet::new(config.geometry, id, owner);
        let inner = Inner {
            slabs,
            blocks: 0,
            block_pages: 0,
            retired: false,
            orphaned: false,
            tight: None,
        };
        Self {
            inner: Lock::new(inner),
            id,
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
    pub(crate) fn refill(&self, sheaf: &mut Sheaf, want: Want) -> Result<usize, Shortage> {
        let below = sheaf.len();
        let was_cold = sheaf.is_cold();
        let Taken { count, cold } = self.inner.lock().take(self.limit, want, |slot| {
            let pushed = sheaf.push(slot);
            debug_assert!(pushed.is_ok(), "there was room for that many");
        })?;
        sheaf.reverse_above(below);
        sheaf.set_cold(was_cold || cold);
        Ok(count)
    }

    /// Takes `n` slots one by one, or none.
    pub(crate) fn take(&self, n: usize, sink: impl FnMut(Slot)) -> Result<(), Shortage> {
        self.inner
            .lock()
            .take(self.limit, Want::exactly(n), sink)
            .map(drop)
    }

    /// Takes one slot unless the lock is held.
    pub(crate) fn try_take(&self) -> Option<Slot> {
        let mut slot = None;
        // A shortage here is for a caller that may wait to do something about.
        let _ = self
            .inner
            .try_lock()?
            .take(self.limit, Want::exactly(1), |taken| slot = Some(taken));
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
        counters.add(Counter::FreeSlab, 1);
        counters.add(Counter::FreeRemovePartial, 1);
        surplus
            .get_or_insert_with(|| Surplus::new(&self.source))
            .push(slab);
        true
    }

    /// Brings in a new slab. Calls the page source, so no lock may be held.
    ///
    /// Falls back to the smallest order that holds one object where the source cannot give the one asked
    /// for.
    pub(crate) fn grow(&self, config: &Config, counters: &Counters) -> bool {
        self.grow_hinted(config, Hint::NONE, counters)
    }

    /// As [`Node::grow`], with a hint for the page source.
    pub(crate) fn grow_hinted(&self, config: &Config, hint: Hint, counters: &Counters) -> bool {
        let hint = if config.huge { hint.huge() } else { hint };
        let min_order = config.geometry.min_order().unwrap_or(config.order);
        let (pages, order) = match Pages::alloc(&self.source, slab_layout(config.order), hint) {
            Some(pages) => (pages, config.order),
            None if min_order < config.order => {
                let pages = Pages::alloc(&self.source, slab_layout(min_order), Hint::NONE);
                let Some(pages) = pages else { return false };
                counters.add(Counter::OrderFallback, 1);
                (pages, min_order)
            }
            None => return false,
        };
        let Some(entered) = Entered::new(pages, self.id, order) else {
            return false;
        };
        self.inner.lock().slabs.insert(entered);
        counters.add(Counter::AllocSlab, 1);
        true
    }

    /// Counts a block of pages in.
    pub(crate) fn add_block(&self, pages: usize) {
        let mut inner = self.inner.lock();
        inner.blocks += 1;
        inner.block_pages += pages;
    }

    /// Counts a block of pages out; whether the cache ends with it.
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
        inner.orphaned = inner.in_use();
        inner.orphaned
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

impl Inner {
    fn take(
        &mut self,
        limit: usize,
        want: Want,
        sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let allowed = limit.saturating_sub(self.slabs.out());
        if allowed < want.min {
            return Err(Shortage::Limit);
        }
        // At its limit a pool parks nothing.
        let max = if self.tight.is_some() {
            want.min
        } else {
            want.max.min(allowed)
        };
        let free = self.slabs.slots() - self.slabs.out();
        if free < want.min || (free < max && !want.scraps) {
            return Err(Shortage::Slabs);
        }
        Ok(self.slabs.take(max.min(free), sink))
    }

    /// Counts slots that came home at the limit; whether the pool is far enough below it to park slots again.
    fn is_calm(&mut self, came_home: usize) -> bool {
        let out = self.slabs.out();
        self.tight
            .as_mut()
            .is_some_and(|tight| tight.is_calm(came_home, out))
    }

    fn in_use(&self) -> bool {
        self.slabs.out() > 0 || self.blocks > 0
    }

    /// Whether the last thing that kept an orphaned cache has just come home; true once.
    fn ended(&mut self) -> bool {
        let ended = self.orphaned && !self.in_use();
        self.orphaned &= !ended;
        ended
    }
}
