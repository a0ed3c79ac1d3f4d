//! One slot, when the thread's main sheaf has no room for it.
#![forbid(unsafe_code)]

use super::Cache;
use super::limit::Moving;
use crate::barn::Refusal;
use crate::hook::counter::{Counter, OwnCounter};
use crate::hook::report::{Report, ReportKind};
use crate::local::{Held, Mine};
use crate::node::Drained;
use crate::sheaf::Sheaf;
use crate::slab::{Misfit, Slot, Surplus};

/// What a full local needs before it can take a slot.
pub(super) enum Need {
    /// An empty array: there is no spare, or the barn has none to give.
    Array(Slot),
    /// Room in this sheaf: the barn has none for it, or some of its slots belong to other nodes.
    Flush(Sheaf, Slot),
}

impl Cache {
    /// Puts a slot into sheaves of its thread, or in trade for one of them into the barn, if that takes neither memory
    /// nor a slab, and the local is open; gives it back otherwise.
    pub(super) fn push_near(&self, held: &mut Held<'_>, slot: Slot) -> Result<(), Slot> {
        let plain = !self.config.zero_on_free && !self.is_limited() && self.debug.is_none();
        if !plain || held.is_closed() {
            return Err(slot);
        }
        match self.push_or_trade(held, slot) {
            Ok(()) => Ok(()),
            Err(Need::Array(slot)) => Err(slot),
            Err(Need::Flush(spare, slot)) => {
                *held.spare() = Some(spare);
                Err(slot)
            }
        }
    }

    /// Frees a slot; for when the fast path found no room. The caller keeps the cache alive.
    pub(super) fn free_cold(&self, slot: Slot) {
        // A debugged pool clears what was checked.
        if self.config.zero_on_free && self.debug.is_none() {
            self.clear(&slot);
        }
        let mine = if self.tightness.parks_nothing() {
            None
        } else {
            self.mine()
        };
        let Some(mine) = mine else {
            self.counters.add(Counter::FreeSlowpath, 1);
            return match &self.debug {
                Some(debug) => self.free_checked(debug, slot),
                None => self.free_to_slab(slot),
            };
        };
        mine.count(OwnCounter::FreeSlowpath, 1);
        let mut moving = self.moving();
        let need = match mine.hold() {
            Some(mut held) if !held.is_closed() => self.push_or_trade(&mut held, slot),
            _ => return moving.put_home(core::iter::once(slot)),
        };
        match need {
            Ok(()) => {}
            Err(Need::Flush(mut spare, slot)) => {
                moving.take_up(spare.len());
                moving.make_room(&mut spare);
                self.push_with_array(&mine, spare, slot, &mut moving);
            }
            Err(Need::Array(slot)) => match self.new_array() {
                Ok(array) => self.push_with_array(&mine, array, slot, &mut moving),
                Err(_) => moving.put_home(core::iter::once(slot)),
            },
        }
    }

    /// Puts a slot into `main`, into `spare`, or into an empty sheaf traded at the barn.
    pub(super) fn push_or_trade(&self, held: &mut Held<'_>, slot: Slot) -> Result<(), Need> {
        let Err(slot) = held.push(slot) else {
            return Ok(());
        };
        let Some(spare) = held.spare().take() else {
            let Some(empty) = self.barn().get_empty() else {
                return Err(Need::Array(slot));
            };
            return Self::push_into(held, empty, slot).map_err(Need::Array);
        };
        if !spare.is_full() {
            *held.spare() = Some(spare);
            held.swap();
            return held.push(slot).map_err(Need::Array);
        }
        if self.has_strange(&spare) {
            return Err(Need::Flush(spare, slot));
        }
        // The spare is the older of the two: the thread keeps what it freed last.
        match self.barn().exchange_full(spare) {
            Ok(empty) => {
                held.count(OwnCounter::BarnPut, 1);
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
    pub(super) fn free_to_slab(&self, slot: Slot) {
        let mut drained = Drained::default();
        self.nodes
            .drain(core::iter::once(slot), &mut drained, &self.counters);
        self.settle(drained);
    }

    /// What must be done outside all locks, by a thread that is not moving: slabs go back, misuse is told, a
    /// tight pool loosens, an orphaned cache ends.
    pub(super) fn settle(&self, drained: Drained) {
        let Drained {
            surplus,
            misfits,
            last,
            calm,
        } = drained;
        // Dropped last of all, also if a hook panics: sources may panic too.
        let _surplus = self.keep_for_readers(surplus);
        if calm {
            self.loosen();
        }
        if last {
            self.take_from_slots();
        }
        for (misfit, address) in misfits {
            self.report(misfit, address);
        }
    }

    /// Gives slabs back, once no reader can see them.
    pub(super) fn part_with(&self, surplus: Option<Surplus>) {
        drop(self.keep_for_readers(surplus));
    }

    /// Slabs that may be given back now. Those of a type-stable pool wait for a grace period.
    #[cfg(feature = "rcu")]
    pub(super) fn keep_for_readers(&self, surplus: Option<Surplus>) -> Option<Surplus> {
        if !self.nature.stable {
            return surplus;
        }
        if let Some(surplus) = surplus {
            crate::grace::keep_slabs(surplus);
        }
        None
    }

    #[cfg(not(feature = "rcu"))]
    pub(super) fn keep_for_readers(&self, surplus: Option<Surplus>) -> Option<Surplus> {
        surplus
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
