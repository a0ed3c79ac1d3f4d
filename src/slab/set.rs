//! All slabs of one node, in lists by fullness.

#[cfg(feature = "rcu")]
mod retired;

use core::ptr::NonNull;

use super::comers::{Blueprint, Fresh};
use super::fullness::{EMPTY, FULL, LISTS, PARTIAL_LISTS, list_for};
use super::header::{self, Run, SlabFixed, SlabHeader, fixed};
use super::owned::Slab;
use super::slot::Slot;
use super::watch;
use crate::base::flags::DebugFlags;
use crate::base::layout::{Geometry, PAGE_SIZE, bitmap_words};
use crate::base::list::List;
use crate::page::{Entry, page_map};

/// The cache that slots lead back to: an opaque address for the layers above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerPtr(pub(crate) *const ());

// SAFETY: the pointer is an opaque value here; who dereferences it answers for that.
unsafe impl Send for OwnerPtr {}
// SAFETY: as above.
unsafe impl Sync for OwnerPtr {}

/// Every slab of a node, and the only one who changes their headers.
///
/// Stands behind the node's lock: `&mut self` is the proof that it is held.
///
/// # Invariants
///
/// 1. Every slab of this set's `id` and `node` is in exactly one of `lists`, the one that its state names.
/// 2. A bit of a slab's bitmap is set exactly if the slot is free; then no token of it exists.
/// 3. `slabs`, `slots` and `out` are the sums over all slabs.
#[derive(Debug)]
pub(crate) struct SlabSet {
    pub(super) geometry: Geometry,
    id: u32,
    stable: bool,
    debug: DebugFlags,
    pub(super) lists: [List<Slab>; LISTS],
    next_colour: u32,
    slabs: usize,
    slots: usize,
    out: usize,
    pages: usize,
}

/// What a [`SlabSet::take`] gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Slots taken.
    pub(crate) count: usize,
    /// Runs that were set up for them, of which nothing is known to be resident.
    pub(crate) set_up: usize,
}

/// What a [`SlabSet::put`] did to the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutEffect {
    /// Neither of the two below.
    None,
    /// The slab was full and is partial now, or empty if it has but one slot.
    WasFull,
    /// Its last slot came home.
    Emptied,
}

/// A slot that cannot be put back; its token is gone, its slot leaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The slot is free already.
    DoubleFree,
    /// The slot belongs to another cache.
    Foreign,
    /// No slot starts at the address.
    Interior,
}

impl SlabSet {
    pub(crate) const fn new(blueprint: &Blueprint) -> Self {
        Self {
            geometry: blueprint.geometry,
            id: blueprint.id,
            stable: blueprint.stable,
            debug: blueprint.debug,
            lists: [const { List::new() }; LISTS],
            next_colour: 0,
            slabs: 0,
            slots: 0,
            out: 0,
            pages: 0,
        }
    }

    pub(crate) fn slabs(&self) -> usize {
        self.slabs
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Slots that are not free in a slab.
    pub(crate) fn out(&self) -> usize {
        self.out
    }

    /// Pages of all slabs.
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// Slabs of which some slots are free, the empty ones included.
    pub(crate) fn partial(&self) -> usize {
        self.slabs - self.lists[FULL as usize].len()
    }

    /// Brings new slabs in; how many.
    pub(crate) fn insert(&mut self, fresh: &mut Fresh) -> usize {
        let mut count = 0;
        while let Some(slab) = fresh.pop() {
            let SlabFixed { total, order, .. } = fixed(slab.node());
            // SAFETY: the slab stands, and `&mut self` is the lock.
            let state = unsafe { header::state(slab.node()) };
            state.list = EMPTY;
            state.colour = self.next_colour;
            self.next_colour = self.next_colour.wrapping_add(1);
            self.lists[EMPTY as usize].push_front(slab);
            self.slabs += 1;
            self.slots += total as usize;
            self.pages += 1 << order;
            count += 1;
        }
        count
    }

    /// Takes up to `n` free slots, from the fullest slabs and in address order, and hands them to `sink`.
    pub(crate) fn take(&mut self, n: usize, mut sink: impl FnMut(Slot)) -> Taken {
        let mut taken = Taken::default();
        while taken.count < n {
            let Some(slab) = self.fullest() else { break };
            let part = self.take_from(slab, n - taken.count, &mut sink);
            taken.count += part.count;
            taken.set_up += part.set_up;
            self.relist(slab);
        }
        self.out += taken.count;
        taken
    }

    /// The fullest slab with a free slot; an empty one if there is no other.
    fn fullest(&self) -> Option<NonNull<SlabHeader>> {
        let partial = self.lists[..PARTIAL_LISTS as usize].iter().rev();
        partial
            .chain([&self.lists[EMPTY as usize]])
            .find_map(List::first)
    }

    fn take_from(
        &mut self,
        slab: NonNull<SlabHeader>,
        n: usize,
        sink: &mut impl FnMut(Slot),
    ) -> Taken {
        let runs = fixed(slab).runs;
        let mut taken = Taken::default();
        // SAFETY: the slab is in a list and so stands; `&mut self` is the lock, and this is the only
        // reference until the function returns.
        let state = unsafe { header::state(slab) };
        while taken.count < n && state.run_hint < runs {
            if state.run_hint == state.ready {
                let resident = self.set_up_run(slab, state.ready, state.colour);
                state.ready += 1;
                taken.set_up += usize::from(!resident);
            }
            // SAFETY: runs below `ready` are set up.
            let run = unsafe { header::run(slab, &self.geometry, state.run_hint) };
            taken.count += self.take_from_run(run, n - taken.count, sink);
            if taken.count < n {
                state.run_hint += 1;
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the slots of a slab"
        )]
        let count = taken.count as u32;
        state.out += count;
        taken
    }

    /// Sets a run up; whether all of it was written to, so that it is resident.
    fn set_up_run(&self, slab: NonNull<SlabHeader>, index: u32, colour: u32) -> bool {
        let colour = colour as usize + index as usize;
        // SAFETY: the run is the first that is not set up, so none of its slots is out; `&mut self` of the
        // callers is the lock.
        unsafe { header::set_up_run(slab, &self.geometry, index, colour) };
        if self.stable {
            // SAFETY: the run was set up just now, so nobody has a slot of it.
            unsafe { header::zero_run(slab, &self.geometry, index) };
        }
        let addr = slab.addr().get() + index as usize * self.geometry.run_pages * PAGE_SIZE;
        page_map::set_range(addr, 1, |_| Entry::head(self.id))
            .expect("the entry was written when the slab was made, so its memory is there");
        // SAFETY: as above: the run has just been set up, and none of its slots is out.
        unsafe { watch::fill_run(slab, &self.geometry, index, self.debug) }
    }

    fn take_from_run(&mut self, run: Run, n: usize, sink: &mut impl FnMut(Slot)) -> usize {
        // SAFETY: `&mut self` is the lock, and this is the only reference until the function returns.
        let state = unsafe { run.state() };
        // SAFETY: as above; runs are set up with this number of words.
        let bits = unsafe { run.bits(bitmap_words(self.geometry.run_slots)) };
        let mut count = 0;
        let mut word = state.hint as usize;
        while state.free > 0 && count < n {
            let mut free = bits[word];
            while free != 0 && count < n {
                let index = word * 64 + free.trailing_zeros() as usize;
                free &= free - 1;
                state.free -= 1;
                count += 1;
                // SAFETY: the bit was set, so the slot is free and has no token (invariant 2); it is
                // cleared below, before anybody else can look.
                sink(unsafe { run.slot(&self.geometry, index) });
            }
            bits[word] = free;
            if free == 0 {
                word += 1;
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the words of a page's bitmap"
        )]
        let hint = word as u32;
        state.hint = hint;
        count
    }

    /// Puts a slot back into its slab.
    pub(crate) fn put(&mut self, slot: Slot) -> Result<PutEffect, Misfit> {
        let run = Run::of(&slot);
        let slab = run.slab();
        if fixed(slab).id != self.id {
            return Err(Misfit::Foreign);
        }
        let offset = (slot.addr() % PAGE_SIZE).wrapping_sub(run.first());
        let index = self.geometry.index_at(offset).ok_or(Misfit::Interior)?;
        // SAFETY: `&mut self` is the lock, and this is the only reference until the function returns.
        let run_state = unsafe { run.state() };
        // SAFETY: as above; runs are set up with this number of words.
        let bits = unsafe { run.bits(bitmap_words(self.geometry.run_slots)) };
        let (word, bit) = (index / 64, 1_u64 << (index % 64));
        if bits[word] & bit != 0 {
            return Err(Misfit::DoubleFree);
        }
        bits[word] |= bit;
        run_state.free += 1;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the words of a page's bitmap"
        )]
        let word = word as u32;
        run_state.hint = run_state.hint.min(word);
        // SAFETY: the slab stands, since a slot of it was out; `&mut self` is the lock.
        let state = unsafe { header::state(slab) };
        let was_full = state.list == FULL;
        state.run_hint = state.run_hint.min(run.index());
        state.out -= 1;
        self.out -= 1;
        let emptied = state.out == 0;
        if state.out < state.low {
            self.relist(slab);
        }
        Ok(match (emptied, was_full) {
            (true, _) => PutEffect::Emptied,
            (false, true) => PutEffect::WasFull,
            (false, false) => PutEffect::None,
        })
    }

    /// Moves a slab to the list that its fullness asks for.
    fn relist(&mut self, slab: NonNull<SlabHeader>) {
        // SAFETY: the slab is in a list and so stands; `&mut self` is the lock.
        let state = unsafe { header::state(slab) };
        let total = fixed(slab).total;
        let (list, low, high) = list_for(state.out, total);
        let old = state.list;
        (state.list, state.low, state.high) = (list, low, high);
        if list != old {
            // SAFETY: the slab is in the list that its state named (invariant 1).
            let slab = unsafe { self.lists[old as usize].remove(slab) };
            self.lists[list as usize].push_front(slab);
        }
    }

    /// Takes an empty slab out of the set and the page map.
    pub(crate) fn pop_empty(&mut self) -> Option<Slab> {
        let slab = self.lists[EMPTY as usize].pop_front()?;
        let SlabFixed { total, order, .. } = fixed(slab.node());
        slab.leave_map();
        self.slabs -= 1;
        self.slots -= total as usize;
        self.pages -= 1 << order;
        Some(slab)
    }

    /// Runs of a slab that are set up and not known to be resident.
    pub(crate) fn bare_runs(&self, slab: &Slab) -> usize {
        // SAFETY: the slab stands, and `&self` is the lock, which is only borrowed to read.
        let ready = unsafe { header::state(slab.node()) }.ready;
        let is_bare = |index: &u32| {
            // SAFETY: runs below `ready` are set up.
            let run = unsafe { header::run(slab.node(), &self.geometry, *index) };
            !run.is_populated(self.geometry.run_bytes())
        };
        (0..ready).filter(is_bare).count()
    }

    /// Slots of the slab that [`SlabSet::pop_empty`] would give.
    pub(crate) fn next_empty_slots(&self) -> Option<usize> {
        self.lists[EMPTY as usize]
            .first()
            .map(|slab| fixed(slab).total as usize)
    }
}
