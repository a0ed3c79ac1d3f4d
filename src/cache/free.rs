//! One slot, when the thread's main sheaf has no room for it.
#![forbid(unsafe_code)]

use super::{Cache, own};
use crate::barn::Refusal;
use crate::hook::counter::Counter;
use crate::hook::report::{Report, ReportKind};
use crate::local::{Held, Mine};
use crate::node::Drained;
use crate::sheaf::Sheaf;
use crate::slab::{Misfit, Slot};

/// What a full local needs before it can take a slot.
pub(super) enum Need {
    /// An empty array: there is no spare, or the barn has none to give.
    Array(Slot),
    /// Nothing but this sheaf's array, once its slots are flushed.
    Flush(Sheaf, Slot),
}

impl Cache {
    /// Frees a slot; for when the fast path found no room. The caller keeps the cache alive.
    pub(super) fn free_cold(&self, slot: Slot) {
        self.clear(&slot);
        let mut slot = slot;
        if self.mode.is_fence() {
            match own::push_fenced(self.id, slot) {
                Ok(()) => return,
                Err(back) => slot = back,
            }
        }
        self.counters.add(Counter::FreeSlowpath, 1);
        let Some(mine) = self.mine() else { return self.free_to_slab(slot) };
        let need = {
            let Some(mut held) = mine.hold() else { return self.free_to_slab(slot) };
            if held.is_dead() {
                drop(held);
                return self.free_to_slab(slot);
            }
            match self.push_or_trade(&mut held, slot) {
                Ok(()) => return,
                Err(need) => need,
            }
        };
        match need {
            Need::Flush(mut spare, slot) => {
                self.flush(&mut spare);
                self.push_with_array(&mine, spare, slot);
            }
            Need::Array(slot) => match self.new_array() {
                Some(array) => self.push_with_array(&mine, array, slot),
                None => self.free_to_slab(slot),
            },
        }
    }

    /// Puts a slot into `main`, into `spare`, or into an empty sheaf traded at the barn.
    pub(super) fn push_or_trade(&self, held: &mut Held<'_>, slot: Slot) -> Result<(), Need> {
        let Err(slot) = held.push(slot) else { return Ok(()) };
        let Some(spare) = held.spare().take() else {
            let Some(empty) = self.barn.get_empty() else { return Err(Need::Array(slot)) };
            return Self::push_into(held, empty, slot).map_err(Need::Array);
        };
        if !spare.is_full() {
            *held.spare() = Some(spare);
            held.swap();
            return held.push(slot).map_err(Need::Array);
        }
        // The spare is the older of the two: the thread keeps what it freed last.
        match self.barn.exchange_full(spare) {
            Ok(empty) => {
                self.counters.add(Counter::BarnPut, 1);
                Self::push_into(held, empty, slot).map_err(Need::Array)
            }
            Err((spare, Refusal::NoEmpty)) => {
                *held.spare() = Some(spare);
                Err(Need::Array(slot))
            }
            Err((spare, Refusal::NoRoom)) => {
                self.counters.add(Counter::BarnPutFail, 1);
                Err(Need::Flush(spare, slot))
            }
        }
    }

    /// Makes an empty sheaf the main one and the full main the spare, of which there is none.
    fn push_into(held: &mut Held<'_>, empty: Sheaf, slot: Slot) -> Result<(), Slot> {
        *held.spare() = held.replace_main(empty);
        held.push(slot)
    }

    /// Puts a slot into a local that was full a moment ago, with an empty array to help.
    pub(super) fn push_with_array(&self, mine: &Mine, array: Sheaf, slot: Slot) {
        let (excess, left) = match mine.hold() {
            Some(mut held) if !held.is_dead() => Self::push_held(&mut held, array, slot),
            _ => (Some(array), Some(slot)),
        };
        if let Some(slot) = left {
            self.free_to_slab(slot);
        }
        self.put_away(excess);
    }

    /// The step under the lock: what became superfluous, and the slot if it found no room.
    fn push_held(held: &mut Held<'_>, array: Sheaf, slot: Slot) -> (Option<Sheaf>, Option<Slot>) {
        // A page source or a drainer may have changed everything.
        let Err(slot) = held.push(slot) else { return (Some(array), None) };
        let full = held.replace_main(array);
        let pushed = held.push(slot);
        // The barn or slabs take the older one.
        let excess = match full {
            Some(full) => held.spare().replace(full),
            None => None,
        };
        (excess, pushed.err())
    }

    /// Puts a slot back into its slab.
    pub(super) fn free_to_slab(&self, slot: Slot) {
        self.to_slabs(core::iter::once(slot));
    }

    /// Puts every slot of a sheaf back into its slab.
    pub(super) fn flush(&self, sheaf: &mut Sheaf) {
        if !sheaf.is_empty() {
            self.counters.add(Counter::SheafFlush, sheaf.len());
            self.to_slabs(sheaf.drain());
        }
    }

    /// Puts slots back into their slabs in one hold of the node's lock. The caller keeps the cache alive.
    pub(super) fn to_slabs(&self, slots: impl Iterator<Item = Slot>) {
        let mut drained = Drained::default();
        self.node.drain(slots, &mut drained, &self.counters);
        self.settle(drained);
    }

    /// What must be done outside the node's lock: slabs go back, misuse is told, an orphaned cache ends.
    pub(super) fn settle(&self, drained: Drained) {
        let Drained { surplus, misfit, last } = drained;
        drop(surplus);
        if last {
            self.take_from_slots();
        }
        if let Some((misfit, address)) = misfit {
            self.report(misfit, address);
        }
    }

    #[cold]
    fn report(&self, misfit: Misfit, address: usize) {
        let kind = match misfit {
            Misfit::DoubleFree => ReportKind::DoubleFree,
            Misfit::Foreign => ReportKind::WrongPool,
            Misfit::Interior => ReportKind::Interior,
        };
        self.counters.add(Counter::Reports, 1);
        Report::new(kind, Some(self.name().clone()), address).send();
    }
}
