//! One slot, when the thread's main sheaf has no room for it.
#![forbid(unsafe_code)]

use super::limit::Moving;
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
        if self.tightness.parks_nothing() {
            return self.free_to_slab(slot);
        }
        let Some(mine) = self.mine() else {
            return self.free_to_slab(slot);
        };
        let mut moving = self.moving();
        let need = match mine.hold() {
            Some(mut held) if !held.is_closed() => self.push_or_trade(&mut held, slot),
            _ => return moving.put_home(core::iter::once(slot)),
        };
        match need {
            Ok(()) => {}
            Err(Need::Flush(mut spare, slot)) => {
                moving.take_up(spare.len());
                moving.flush(&mut spare);
                self.push_with_array(&mine, spare, slot, &mut moving);
            }
            Err(Need::Array(slot)) => match self.new_array() {
                Some(array) => self.push_with_array(&mine, array, slot, &mut moving),
                None => moving.put_home(core::iter::once(slot)),
            },
        }
    }

    /// Puts a slot into `main`, into `spare`, or into an empty sheaf traded at the barn.
    pub(super) fn push_or_trade(&self, held: &mut Held<'_>, slot: Slot) -> Result<(), Need> {
        let Err(slot) = held.push(slot) else {
            return Ok(());
        };
        let Some(spare) = held.spare().take() else {
            let Some(empty) = self.barn.get_empty() else {
                return Err(Need::Array(slot));
            };
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
    pub(super) fn push_with_array(
        &self,
        mine: &Mine,
        array: Sheaf,
        slot: Slot,
        moving: &mut Moving<'_>,
    ) {
        let (excess, left) = match mine.hold() {
            Some(mut held) if !held.is_closed() => Self::push_held(&mut held, array, slot),
            _ => (Some(array), Some(slot)),
        };
        moving.take_up(excess.as_ref().map_or(0, Sheaf::len));
        if left.is_some() {
            moving.put_home(left.into_iter());
        }
        self.put_away(excess, moving);
    }

    /// The step under the lock: what became superfluous, and the slot if it found no room.
    fn push_held(held: &mut Held<'_>, array: Sheaf, slot: Slot) -> (Option<Sheaf>, Option<Slot>) {
        // A drainer, or a signal handler, may have changed everything.
        let Err(slot) = held.push(slot) else {
            return (Some(array), None);
        };
        let full = held.replace_main(array);
        let pushed = held.push(slot);
        // The barn or slabs take the older one.
        let excess = full.and_then(|full| held.spare().replace(full));
        (excess, pushed.err())
    }

    /// Puts a slot back into its slab.
    fn free_to_slab(&self, slot: Slot) {
        let mut drained = Drained::default();
        self.node
            .drain(core::iter::once(slot), &mut drained, &self.counters);
        self.settle(drained);
    }

    /// What must be done outside all locks, by a thread that is not moving: slabs go back, misuse is told, a
    /// tight pool loosens, an orphaned cache ends.
    pub(super) fn settle(&self, drained: Drained) {
        // Dropped last of all, also if a hook panics: sources may panic too.
        let Drained {
            surplus: _surplus,
            misfit,
            last,
            calm,
        } = drained;
        if calm {
            self.loosen();
        }
        if last {
            self.take_from_slots();
        }
        if let Some((misfit, address)) = misfit {
            self.report(misfit, address);
        }
    }

    fn report(&self, misfit: Misfit, address: usize) {
        let kind = match misfit {
            Misfit::DoubleFree => ReportKind::DoubleFree,
            Misfit::Foreign => ReportKind::WrongPool,
            Misfit::Interior => ReportKind::Interior,
        };
        self.report_misuse(kind, address);
    }

    /// Tells of misuse of this pool. Runs a user's hook: never under a lock.
    #[cold]
    pub(crate) fn report_misuse(&self, kind: ReportKind, address: usize) {
        self.counters.add(Counter::Reports, 1);
        Report::new(kind, Some(self.name().clone()), address).send();
    }
}
