//! Drainers: threads that empty the locals of others, and keep them shut, close them or open them again.

use super::shelf::{Shelf, State};
use super::{Local, Place, SlotPlace};
use crate::sheaf::Sheaf;
use crate::slab::Slot;
use crate::sync::heavy_barrier;

/// A drainer's work on the locals of one cache, in the order of the gate's rule 4.
#[derive(Debug)]
pub(crate) struct Drain<'a, L> {
    pub(super) locals: &'a [L],
}

impl<'a, L: AsRef<Local>> Drain<'a, L> {
    /// Shuts the gates of all `locals` and waits until their owners are outside. One drainer at a time.
    ///
    /// `own` is the caller's own local among them. `None` if a signal handler calls this while its thread is
    /// inside that local, which cannot be waited for, or if the system has come to forbid the heavy barrier.
    pub(crate) fn begin(locals: &'a [L], own: Option<&Local>) -> Option<Self> {
        if own.is_some_and(|own| own.gate.is_busy()) {
            return None;
        }
        let mut mode = None;
        for local in locals {
            let local = local.as_ref();
            let mut shelf = local.shelf.lock();
            if shelf.state == State::Open {
                shelf.state = State::Shut;
                local.gate.shut();
            }
            mode = Some(local.mode);
        }
        if mode.is_some_and(|mode| !heavy_barrier(mode)) {
            // Nothing was taken, so the owners may go on as before.
            locals.iter().for_each(|local| local.as_ref().unshut());
            return None;
        }
        locals.iter().for_each(|local| local.as_ref().gate.settle());
        Some(Self { locals })
    }

    /// Takes every slot out, one local after the other, and lets the owners in again. `sink` runs under the
    /// lock of a local.
    pub(crate) fn drain(self, mut sink: impl FnMut(&mut dyn Iterator<Item = Slot>)) {
        for local in self.locals {
            let local = local.as_ref();
            let mut shelf = local.shelf.lock();
            if shelf.state == State::Shut {
                shelf.drain(local, &mut sink);
                shelf.state = State::Open;
                shelf.reopen(local);
            }
        }
    }

    /// Takes every slot out and keeps the gates shut, until [`Local::loosen`]: the threads park nothing
    /// meanwhile. `sink` runs under the lock of a local.
    pub(crate) fn tighten(self, mut sink: impl FnMut(&mut dyn Iterator<Item = Slot>)) {
        for local in self.locals {
            let local = local.as_ref();
            let mut shelf = local.shelf.lock();
            if shelf.state == State::Shut {
                shelf.drain(local, &mut sink);
                shelf.state = State::Tight;
            }
        }
    }

    /// Closes the locals for good. `sink` runs outside their locks, on what they held.
    pub(crate) fn kill(self, mut sink: impl FnMut(Sheaf)) {
        for local in self.locals {
            let local = local.as_ref();
            let held = local.shelf.lock().kill(local);
            held.into_iter().flatten().for_each(&mut sink);
        }
    }
}

impl Shelf {
    /// Rule 5: takes the slots in `[floor, top)` and moves the floor; arrays stay where they are.
    fn drain(&mut self, local: &Local, sink: &mut impl FnMut(&mut dyn Iterator<Item = Slot>)) {
        let (floor, len) = (self.floor, self.len(local));
        self.floor = local.gate.top();
        let mut index = 0;
        let mut main = core::iter::from_fn(|| {
            let place = (index < len).then(|| floor.wrapping_add(index))?;
            index += 1;
            // SAFETY: the place held a token (invariant 2), and the floor has moved past it, so this is the
            // only one to take it; the gate is shut and settled, and the lock is held.
            Some(unsafe { <SlotPlace as Place>::take(place) })
        });
        sink(&mut main);
        debug_assert!(main.next().is_none(), "a drainer takes every slot");
        if let Some(spare) = &mut self.spare {
            sink(&mut spare.drain());
        }
    }
}

impl Local {
    /// Undoes the shutting of a gate behind which nothing was touched.
    fn unshut(&self) {
        let mut shelf = self.shelf.lock();
        if shelf.state == State::Shut {
            shelf.state = State::Open;
            shelf.reopen(self);
        }
    }

    /// Makes a new local, which holds nothing, one that parks nothing.
    pub(crate) fn start_tight(&self) {
        self.shelf.lock().state = State::Tight;
    }

    /// Lets the owner park slots again.
    pub(crate) fn loosen(&self) {
        let mut shelf = self.shelf.lock();
        if shelf.state == State::Tight {
            shelf.state = State::Open;
            shelf.reopen(self);
        }
    }
}
