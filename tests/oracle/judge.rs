//! What the model says to each call, and the comparison.
#![forbid(unsafe_code)]

use core::fmt::Debug;

use sheaves::AllocErrorKind;

use crate::drive::{Gauges, LOOK, Run};
use crate::engine::{Action, Answer, New};
use crate::model::{Lent, Refusal};
use crate::slabs::Place;
use crate::source::PAGE;

/// What the model says to a call: where the new objects are, or the whole answer.
#[derive(Debug)]
pub(crate) enum Expected {
    Placed(Vec<Place>),
    Other(Answer),
}

/// The call did what it does, and gives nothing.
const DONE: Expected = Expected::Other(Answer::Done);

impl From<Refusal> for Expected {
    fn from(refusal: Refusal) -> Self {
        Self::Other(Answer::Refused(match refusal {
            Refusal::Memory => AllocErrorKind::OutOfMemory,
            Refusal::Limit => AllocErrorKind::LimitReached,
        }))
    }
}

impl From<Result<Place, Refusal>> for Expected {
    fn from(result: Result<Place, Refusal>) -> Self {
        result.map_or_else(Self::from, |place| Self::Placed(vec![place]))
    }
}

impl<const N: usize> Run<N> {
    /// Does to the model what the action does to the engine.
    pub(crate) fn expect(&mut self, thread: usize, action: Action) -> Expected {
        match action {
            Action::Alloc { .. } | Action::CloneBox { .. } => self.model.alloc(thread).into(),
            Action::AllocNow { .. } => match self.model.alloc_now(thread) {
                Some(place) => Expected::Placed(vec![place]),
                None => Expected::Other(Answer::Refused(AllocErrorKind::WouldBlock)),
            },
            Action::Free { at } => {
                let place = self.live.swap_remove(at);
                self.model.free(thread, place);
                DONE
            }
            Action::AllocBulk { n, .. } => match self.model.alloc_bulk(thread, n) {
                Ok(places) => Expected::Placed(places),
                Err(refusal) => refusal.into(),
            },
            Action::FreeBulk { from, n } => {
                let places: Vec<Place> = self.live.drain(from..from + n).collect();
                self.model.free_bulk(thread, &places);
                DONE
            }
            Action::Shrink => Expected::Other(Answer::Bytes(self.model.shrink() * PAGE)),
            Action::Faulted { .. } => Expected::Other(Answer::Refused(AllocErrorKind::Injected)),
            Action::Flush => {
                self.model.flush(thread);
                DONE
            }
            _ => self.expect_of_sheaf(thread, action),
        }
    }

    /// The calls on lent sheaves and handles.
    fn expect_of_sheaf(&mut self, thread: usize, action: Action) -> Expected {
        match action {
            Action::Prefill { n } => match self.model.prefill(thread, n) {
                Ok(lent) => {
                    assert!(lent.slots.len() >= n, "less than was asked for");
                    self.lent.push(lent);
                }
                Err(refusal) => return refusal.into(),
            },
            Action::SheafAlloc { sheaf, .. } => {
                return match self.lent[sheaf].slots.pop() {
                    Some(place) => Expected::Placed(vec![place]),
                    None => Expected::Other(Answer::Unable),
                };
            }
            Action::SheafFree { sheaf, at } => {
                let Lent { slots, capacity } = &mut self.lent[sheaf];
                if slots.len() >= *capacity {
                    return Expected::Other(Answer::Unable);
                }
                slots.push(self.live.swap_remove(at));
            }
            Action::Refill { sheaf, n } => {
                if let Err(refusal) = self.model.refill(&mut self.lent[sheaf], n) {
                    return refusal.into();
                }
            }
            Action::GiveBack { sheaf } => {
                let lent = self.lent.swap_remove(sheaf);
                self.model.give_back(thread, lent);
            }
            Action::CloneHandle => self.handles += 1,
            Action::DropHandle { .. } => self.handles -= 1,
            Action::Close { .. } => {
                self.model.drain();
                let prefilled = self.prefilled();
                let others = self.handles - 1 + self.lent.len();
                if others > 0 || prefilled > 0 || !self.live.is_empty() {
                    return Expected::Other(Answer::Busy {
                        live: self.live.len(),
                        prefilled,
                        handles: others,
                    });
                }
                self.handles -= 1;
            }
            other => unreachable!("{other:?} is no call on a sheaf or a handle"),
        }
        if !self.is_open() && !self.model.closed {
            self.model.close();
        }
        DONE
    }

    /// Compares answers, and takes note of new objects.
    pub(crate) fn match_answer(&mut self, action: Action, answer: Answer, expected: Expected) {
        match (answer, expected) {
            (Answer::Placed(new), Expected::Placed(places)) => {
                assert_eq!(new.len(), places.len(), "{action:?}");
                for (new, place) in new.into_iter().zip(places) {
                    self.place(new, place);
                }
            }
            (answer, Expected::Other(foreseen)) if answer == foreseen => {
                if let Answer::Refused(kind) = answer {
                    self.justify(action, kind);
                }
            }
            (answer, expected) => {
                panic!("{action:?}: the pool says {answer:?}, the model {expected:?}");
            }
        }
    }

    fn place(&mut self, new: New, place: Place) {
        let log = self.source.log();
        self.atlas.check(place, new.address, &log.made);
        drop(log);
        assert!(!self.live.contains(&place), "{place:?} is live already");
        let first = self.used.insert(place);
        if self.zero_on_free && !first {
            assert_ne!(new.zeros, Some(false), "{place:?} was not cleared");
        }
        self.live.push(place);
        self.serial += 1;
    }

    /// A refusal must have its reason in what users hold, whatever the model says.
    fn justify(&mut self, action: Action, kind: AllocErrorKind) {
        let wanted = match action {
            Action::AllocBulk { n, .. } | Action::Prefill { n } => n,
            Action::Refill { sheaf, n } => n - self.lent[sheaf].slots.len(),
            _ => 1,
        };
        let taken = self.live.len() + self.prefilled();
        match kind {
            AllocErrorKind::LimitReached => {
                self.reached.refused_at_limit += 1;
                let limit = self.model.limit;
                assert!(taken + wanted > limit, "{taken} of {limit} were taken");
            }
            AllocErrorKind::OutOfMemory => {
                self.reached.refused_for_memory += 1;
                let slots = self.model.slabs.slots();
                assert!(taken + wanted > slots, "{taken} of {slots} were taken");
            }
            _ => {}
        }
    }

    fn gauges(&self) -> Gauges {
        let model = &self.model;
        Gauges {
            live: self.live.len(),
            prefilled: self.prefilled(),
            cached: model.locals.iter().map(|local| local.cached()).sum(),
            barn: model.full.iter().map(Vec::len).sum(),
            free: model.slabs.free(),
            transit: 0,
            slots: model.slabs.slots(),
            slabs: model.slabs.count(),
            blocks: 0,
            bytes: model.slabs.pages() * PAGE,
            locals: model.locals.len(),
            arrays: model.arrays() + self.lent.len(),
        }
    }

    /// Compares all that can be seen after a call.
    pub(crate) fn compare(&mut self, after: &dyn Debug) {
        let foreseen = self.gauges();
        let taken = foreseen.live + foreseen.prefilled;
        assert!(taken <= self.model.limit, "{taken} slots are taken");
        let parked = foreseen.cached + foreseen.barn;
        let out = self.model.slabs.out();
        assert_eq!(taken + parked, out, "the model lost a slot");
        let bytes = self.source.log().pages() * PAGE;
        assert_eq!(bytes, foreseen.bytes, "pages of the source after {after:?}");
        let seen = self.lock().stats();
        match seen {
            Some(stats) => {
                assert_eq!(Gauges::of(&stats), foreseen, "pool, model after {after:?}");
                self.reached.stats = stats;
            }
            None => {
                let ended = !self.is_open() && self.live.is_empty();
                assert!(ended, "no pool after {after:?}");
            }
        }
        self.compare_hands(after);
        if self.steps % LOOK == 0 {
            self.lock().check_objects();
        }
        self.steps += 1;
    }

    /// Compares what the user has in hand: lent sheaves and handles.
    fn compare_hands(&self, after: &dyn Debug) {
        let engine = self.lock();
        let seen = engine.sheaves.iter();
        let seen = seen.map(|sheaf| (sheaf.len(), sheaf.capacity()));
        let foreseen = self.lent.iter();
        let foreseen = foreseen.map(|lent| (lent.slots.len(), lent.capacity));
        assert!(seen.eq(foreseen), "another sheaf after {after:?}");
        if let Some(pool) = engine.handles.first() {
            let foreseen = self.handles + self.lent.len();
            assert_eq!(pool.handles(), foreseen, "handles after {after:?}");
        }
    }
}
