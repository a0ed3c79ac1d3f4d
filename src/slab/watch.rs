//! What debugging does with slabs: patterns in their memory, and looking through all of them.

use core::ptr::NonNull;

use super::header::{self, Run, SlabHeader, fixed};
use super::set::SlabSet;
use super::slot::Slot;
use crate::base::flags::DebugFlags;
use crate::base::layout::{Geometry, RUN_HEADER, bitmap_words};
use crate::hook::poison::{self, Pattern, Site};
use crate::sync::Ordering;

/// Fills a new run with the patterns of free slots, if the flags ask for it; whether they do.
///
/// # Safety
///
/// The slab stands, its run `index` is set up and no slot of it is out; the node's lock is held.
pub(super) unsafe fn fill_run(
    slab: NonNull<SlabHeader>,
    geometry: &Geometry,
    index: u32,
    flags: DebugFlags,
) -> bool {
    let pattern = Pattern { geometry, flags };
    if pattern.is_empty() {
        return false;
    }
    // SAFETY: passed on.
    let run = unsafe { header::run(slab, geometry, index) };
    let from = RUN_HEADER + 2 * bitmap_words(geometry.run_slots) * 8;
    // SAFETY: the run is set up with this many words, its slots are free, and the lock keeps others away.
    unsafe { poison::fill_run(run.start(), from, run.first(), pattern) };
    let len = u32::try_from(geometry.run_bytes()).unwrap_or(u32::MAX);
    // Relaxed: see `Run::is_populated`.
    run.populated().store(len, Ordering::Relaxed);
    true
}

/// The memory of a slot, to look at its patterns. `None` if no slot starts there.
///
/// # Safety
///
/// The slab of the slot stands while the site is used, and nobody else changes the patterns of this slot meanwhile.
pub(crate) unsafe fn site_of(slot: &Slot, geometry: &Geometry) -> Option<Site> {
    let run = Run::of(slot);
    let offset = slot.addr() - run.start().addr().get();
    geometry.index_at(offset.checked_sub(run.first())?)?;
    // SAFETY: a slot starts there, and token pointers have the provenance of the slab; the rest is passed on.
    Some(unsafe { Site::new(slot.as_ptr(), geometry.run_bytes() - offset) })
}

impl SlabSet {
    /// Hands every slot of every run that is set up to `slot`, with whether it is free, and the addresses of slabs
    /// and runs whose headers do not agree with themselves to `broken`. Slots of those are left out.
    pub(crate) fn inspect(&self, mut slot: impl FnMut(Site, bool), mut broken: impl FnMut(usize)) {
        for (list, slabs) in self.lists.iter().enumerate() {
            for slab in slabs.iter() {
                // SAFETY: the slab is in a list and so stands; `&self` is the lock, and the state is only read.
                let state = unsafe { header::state(slab) };
                let (ready, runs) = (state.ready, fixed(slab).runs);
                let mut out = state.out as usize;
                if state.list as usize != list || ready > runs {
                    broken(slab.addr().get());
                    continue;
                }
                let mut sound = true;
                for index in 0..ready {
                    match self.inspect_run(slab, index, &mut slot) {
                        Some(taken) => out = out.wrapping_sub(taken),
                        None => {
                            sound = false;
                            broken(slab.addr().get());
                        }
                    }
                }
                if sound && out != 0 {
                    broken(slab.addr().get());
                }
            }
        }
    }

    /// Slots of a run that are out; `None` if its header is broken.
    fn inspect_run(
        &self,
        slab: NonNull<SlabHeader>,
        index: u32,
        slot: &mut impl FnMut(Site, bool),
    ) -> Option<usize> {
        let g = &self.geometry;
        // SAFETY: the slab is in a list and so stands; runs below `ready` are set up.
        let run = unsafe { header::run(slab, g, index) };
        // SAFETY: `&self` is the lock, and the state is only read.
        let free = unsafe { run.state() }.free as usize;
        // SAFETY: as above; runs are set up with this number of words.
        let bits = unsafe { run.bits(bitmap_words(g.run_slots)) };
        let set: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        let last = g.first_of(g.colours - 1);
        let first = run.first();
        if run.slab() != slab
            || run.index() != index
            || set != free
            || first < g.first
            || first > last
        {
            return None;
        }
        for at in 0..g.run_slots {
            let offset = first + at * g.stride;
            // SAFETY: slots lie within their run.
            let start = unsafe { run.start().add(offset) };
            // SAFETY: a slot starts there, and its slab stands while the lock is held; who changes patterns is
            // kept away by the caller's lock.
            let site = unsafe { Site::new(start, g.run_bytes() - offset) };
            let free = bits[at / 64] >> (at % 64) & 1 == 1;
            slot(site, free);
        }
        Some(g.run_slots - set)
    }
}
