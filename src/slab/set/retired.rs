//! Slots that wait for a grace period where no sheaf can be had to put them in.
//!
//! A retired object may still be read, so nothing is written into it; and if there were memory for a list there
//! would be some for a sheaf. So it is marked in the header of its run, together with a stamp, which names the
//! grace period after which all marks of that run may be taken. A mark that comes later raises the stamp for the
//! others too. That can go on for as long as the run has slots that are not marked, and no longer.

use super::{Misfit, SlabSet};
use crate::base::layout::{PAGE_SIZE, bitmap_words};
use crate::slab::header::{self, Run, fixed};
use crate::slab::slot::Slot;

impl SlabSet {
    /// Marks a slot, whose object may not be touched before the grace period `stamp`, which is not 0.
    pub(crate) fn mark_retired(&mut self, slot: Slot, stamp: u64) -> Result<(), Misfit> {
        let run = Run::of(&slot);
        if fixed(run.slab()).id != self.id {
            return Err(Misfit::Foreign);
        }
        let offset = (slot.addr() % PAGE_SIZE).wrapping_sub(run.first());
        let index = self.geometry.index_at(offset).ok_or(Misfit::Interior)?;
        let words = bitmap_words(self.geometry.run_slots);
        let (word, bit) = (index / 64, 1_u64 << (index % 64));
        // SAFETY: `&mut self` is the lock, and this is the only reference until the function returns.
        let state = unsafe { run.state() };
        // SAFETY: as above; runs are set up with this number of words.
        let free = unsafe { run.bits(words) };
        // SAFETY: as above.
        let retired = unsafe { run.retired_bits(words) };
        if (free[word] | retired[word]) & bit != 0 {
            return Err(Misfit::DoubleFree);
        }
        retired[word] |= bit;
        state.stamp = state.stamp.max(stamp);
        Ok(())
    }

    /// Takes up to `n` marked slots whose stamp `is_over` and hands them to `sink`; how many. Linear in runs.
    pub(crate) fn take_retired(
        &mut self,
        n: usize,
        is_over: impl Fn(u64) -> bool,
        mut sink: impl FnMut(Slot),
    ) -> usize {
        let mut count = 0;
        for slab in self.lists.iter().flat_map(|list| list.iter()) {
            // SAFETY: the slab is in a list and so stands; `&mut self` is the lock.
            let ready = unsafe { header::state(slab) }.ready;
            for index in 0..ready {
                // SAFETY: runs below `ready` are set up.
                let run = unsafe { header::run(slab, &self.geometry, index) };
                // SAFETY: `&mut self` is the lock, and this is the only reference in this turn of the loop.
                let stamp = unsafe { run.state() }.stamp;
                if stamp != 0 && is_over(stamp) {
                    count += self.take_retired_from(run, n - count, &mut sink);
                }
                if count == n {
                    return count;
                }
            }
        }
        count
    }

    fn take_retired_from(&self, run: Run, n: usize, sink: &mut impl FnMut(Slot)) -> usize {
        // SAFETY: the callers' `&mut self` is the lock; runs are set up with this number of words; this is the
        // only reference until the function returns.
        let bits = unsafe { run.retired_bits(bitmap_words(self.geometry.run_slots)) };
        let mut count = 0;
        for (word, bits) in bits.iter_mut().enumerate() {
            while *bits != 0 && count < n {
                let index = word * 64 + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                count += 1;
                // SAFETY: the slot was marked by its token, which ended there, and its bit in the free bitmap is
                // clear since; the mark is gone now, so no second token is made.
                sink(unsafe { run.slot(&self.geometry, index) });
            }
        }
        if bits.iter().all(|bits| *bits == 0) {
            // SAFETY: as above; the bitmap is another part of the run.
            unsafe { run.state() }.stamp = 0;
        }
        count
    }
}
