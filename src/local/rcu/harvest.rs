//! A drainer's work on threads' sheaves of retired objects.
#![forbid(unsafe_code)]

use core::ptr;

use super::State;
use crate::grace::Remains;
use crate::local::Local;
use crate::sync::heavy_barrier;

/// A drainer's work on the sides of one cache, in the order of the gate's rule 4. One drainer at a time.
#[derive(Debug)]
pub(crate) struct Harvest<'a, L> {
    locals: &'a [L],
}

impl<'a, L: AsRef<Local>> Harvest<'a, L> {
    /// Shuts the gates behind which slots are that were retired at `until` or before, and waits until their owners are
    /// outside. With `forever` the threads begin no new sheaves.
    ///
    /// `own` is the caller's own local among them. `None` if a signal handler calls this while its thread is inside
    /// that local, which cannot be waited for, or if the system has come to forbid the heavy barrier.
    pub(crate) fn begin(
        locals: &'a [L],
        own: Option<&Local>,
        until: u64,
        forever: bool,
    ) -> Option<Self> {
        if own.is_some_and(|own| own.side.gate.is_busy()) {
            return None;
        }
        let mut others = None;
        for local in locals {
            let local = local.as_ref();
            let mut pile = local.side.pile.lock();
            // Now, or a sheaf could be begun between this and the taking.
            pile.last |= forever;
            if pile.state == State::Filling && pile.since <= until {
                pile.state = State::Shut;
                local.side.gate.shut();
                // The caller's own operations come before or after this one, not beside it.
                if !own.is_some_and(|own| ptr::eq(own, local)) {
                    others = Some(local.mode);
                }
            } else if pile.last && pile.state == State::Idle {
                pile.state = State::Gone;
            }
        }
        if others.is_some_and(|mode| !heavy_barrier(mode)) {
            // Nothing was taken, so the owners may go on as before.
            locals.iter().for_each(|local| local.as_ref().unshut_side());
            return None;
        }
        for local in locals {
            let side = &local.as_ref().side;
            let shut = side.pile.lock().state == State::Shut;
            if shut {
                side.gate.settle();
            }
        }
        Some(Self { locals })
    }

    /// Takes the sheaves whose gates were shut, and those that were left behind. `sink` runs outside the sides' locks.
    pub(crate) fn take(self, mut sink: impl FnMut(Remains)) {
        for local in self.locals {
            let side = &local.as_ref().side;
            let taken = {
                let mut pile = side.pile.lock();
                match pile.state {
                    State::Shut => {
                        let next = pile.after();
                        pile.take(side, next)
                    }
                    State::Left => pile.take(side, State::Gone),
                    State::Idle | State::Filling | State::Gone => None,
                }
            };
            taken.into_iter().for_each(&mut sink);
        }
    }
}

impl Local {
    fn unshut_side(&self) {
        let mut pile = self.side.pile.lock();
        if pile.state == State::Shut {
            pile.state = State::Filling;
            self.side.gate.open(pile.base, pile.end(), self.mode, true);
        }
    }
}
