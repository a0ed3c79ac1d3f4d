//! What is behind a local's lock, for its owner ([`Held`]) and for a drainer (`drain`).

use core::mem;
use core::ptr;

use super::{Local, SlotPlace};
use crate::sheaf::{Sheaf, Tally};
use crate::slab::Slot;
use crate::sync::{Guard, Shared};

/// What a local's lock guards.
///
/// # Invariants
///
/// 1. `main` is the array behind the gate, as a vector of length 0 that starts at `base`; the gate's top lies in
///    `[floor, base + capacity]`, and `floor` in `[base, base + capacity]`.
/// 2. The tokens of `main` are in the places `[floor, top)`.
#[derive(Debug)]
pub(super) struct Shelf {
    main: Vec<Slot>,
    tally: Option<Shared<Tally>>,
    base: *mut SlotPlace,
    capacity: usize,
    pub(super) floor: *mut SlotPlace,
    pub(super) spare: Option<Sheaf>,
    pub(super) state: State,
    /// The fast path is not let in, whatever the state.
    pub(super) guarded: bool,
}

// SAFETY: `base` and `floor` point into `main`, which the shelf owns.
unsafe impl Send for Shelf {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Shut,
    Tight,
    Dead,
}

impl Shelf {
    pub(super) const fn new() -> Self {
        let base = ptr::NonNull::dangling().as_ptr();
        Self {
            main: Vec::new(),
            tally: None,
            base,
            capacity: 0,
            floor: base,
            spare: None,
            state: State::Open,
            guarded: false,
        }
    }
}

/// The local in the hands of its own thread, with the lock held and no operation of the gate under way.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    local: &'a Local,
    shelf: Guard<'a, Shelf>,
}

impl Local {
    /// Locks the local for its owner. `None` if the owner was interrupted inside the gate by this very call.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    pub(super) unsafe fn hold(&self) -> Option<Held<'_>> {
        // Rule 3 of the gate: the array is in use further up the stack.
        (!self.gate.is_busy()).then(|| Held {
            local: self,
            shelf: self.shelf.lock(),
        })
    }

    /// As [`Local::hold`], but gives up if the lock is held.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    pub(super) unsafe fn try_hold(&self) -> Option<Held<'_>> {
        if self.gate.is_busy() {
            return None;
        }
        Some(Held {
            local: self,
            shelf: self.shelf.try_lock()?,
        })
    }
}

impl Held<'_> {
    /// Whether nothing may be parked here: the cache is closed or tight, or the thread is gone.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.shelf.state, State::Tight | State::Dead)
    }

    /// Counts an event of this thread.
    #[cfg(not(all(loom, any(test, feature = "loom"))))]
    pub(crate) fn count(&self, counter: crate::hook::counter::OwnCounter, n: usize) {
        self.local.counters.add(counter, n);
    }

    /// Slots in `main`.
    pub(crate) fn len(&self) -> usize {
        self.shelf.len(self.local)
    }

    /// Takes a slot from `main`, whether or not the gate is open.
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        let mut slot = None;
        self.pop_many(1, |popped| slot = Some(popped));
        slot
    }

    /// Takes up to `most` slots from `main`; how many.
    pub(crate) fn pop_many(&mut self, most: usize, sink: impl FnMut(Slot)) -> usize {
        if self.len() == 0 {
            return 0;
        }
        // SAFETY: a `Held` is its owner's, with the lock held; every place from the floor to the top holds a token
        // (invariant 2).
        unsafe { self.local.gate.pop_locked(self.shelf.floor, most, sink) }
    }

    /// Puts a slot into `main`, whether or not the gate is open; gives it back if `main` is full.
    pub(crate) fn push(&mut self, slot: Slot) -> Result<(), Slot> {
        let mut slot = Some(slot);
        self.push_many(&mut core::iter::from_fn(|| slot.take()));
        slot.map_or(Ok(()), Err)
    }

    /// Puts slots into `main` until there are no more or it is full.
    pub(crate) fn push_many(&mut self, slots: &mut impl Iterator<Item = Slot>) {
        // SAFETY: as in `pop_many`; the places up to the end are the array's (invariant 1). A local without an array
        // has its end below every top.
        unsafe { self.local.gate.push_locked(self.shelf.end(), slots) };
    }

    /// Puts a sheaf where none is: in the place of `main`, or of the spare; gives it back if both are there.
    pub(crate) fn put_sheaf(&mut self, sheaf: Sheaf) -> Result<(), Sheaf> {
        if self.shelf.capacity == 0 {
            let none = self.replace_main(sheaf);
            debug_assert!(none.is_none(), "there was no array");
        } else if self.shelf.spare.is_none() {
            self.shelf.spare = Some(sheaf);
        } else {
            return Err(sheaf);
        }
        Ok(())
    }

    pub(crate) fn spare(&mut self) -> &mut Option<Sheaf> {
        &mut self.shelf.spare
    }

    /// Puts `sheaf` in the place of `main`, which comes back if it had an array.
    pub(crate) fn replace_main(&mut self, sheaf: Sheaf) -> Option<Sheaf> {
        let old = self.shelf.detach_main(self.local);
        self.shelf.attach_main(self.local, sheaf);
        self.shelf.reopen(self.local);
        old
    }

    /// Takes `main` away.
    pub(crate) fn take_main(&mut self) -> Option<Sheaf> {
        let old = self.shelf.detach_main(self.local);
        self.local.gate.set_top(self.shelf.floor);
        self.shelf.reopen(self.local);
        old
    }

    /// Swaps `main` and `spare`; whether there was a spare.
    pub(crate) fn swap(&mut self) -> bool {
        let Some(spare) = self.shelf.spare.take() else {
            return false;
        };
        self.shelf.spare = self.replace_main(spare);
        true
    }

    /// Closes the local for good, since its thread is going; what it held comes out.
    pub(crate) fn kill(mut self) -> [Option<Sheaf>; 2] {
        self.shelf.kill(self.local)
    }
}

impl Shelf {
    fn end(&self) -> *mut SlotPlace {
        self.base.wrapping_add(self.capacity)
    }

    pub(super) fn len(&self, local: &Local) -> usize {
        // Only the owner writes the top, so that of a dead local may still point into an array that is gone.
        if self.state == State::Dead {
            return 0;
        }
        (local.gate.top().addr() - self.floor.addr()) / size_of::<SlotPlace>()
    }

    /// Shows the bounds to the fast path, if it is let in.
    pub(super) fn reopen(&self, local: &Local) {
        if self.state == State::Open && !self.guarded {
            local
                .gate
                .open(self.floor, self.end(), local.mode, local.fast_free);
        }
    }

    /// Takes the array with its tokens from behind the gate. For the owner, or when the local dies: nobody
    /// writes `top` after that.
    fn detach_main(&mut self, local: &Local) -> Option<Sheaf> {
        local.gate.shut();
        let (base, len) = (self.base, self.len(local));
        if base != self.floor {
            // A drainer moved the floor up, and tokens were put above it since.
            // SAFETY: both ranges lie in the array, whose places from the floor hold tokens (invariant 2);
            // they move, and the old places are forgotten with the floor.
            unsafe { ptr::copy(self.floor, base, len) };
        }
        let mut slots = mem::take(&mut self.main);
        let capacity = mem::take(&mut self.capacity);
        // SAFETY: the first `len` places hold tokens, and `len <= capacity` (invariant 1).
        unsafe { slots.set_len(len) };
        self.base = ptr::NonNull::dangling().as_ptr();
        self.floor = self.base;
        let tally = self.tally.take();
        (capacity > 0).then(|| Sheaf::from_parts((slots, capacity, tally)))
    }

    /// Puts the array of a sheaf behind the gate, which has none. For the owner: writes `top`.
    fn attach_main(&mut self, local: &Local, sheaf: Sheaf) {
        let (mut slots, capacity, tally) = sheaf.into_parts();
        let len = slots.len();
        // SAFETY: 0 is in bounds; the tokens stay in the array, below the gate's top.
        unsafe { slots.set_len(0) };
        self.base = slots.as_mut_ptr().cast();
        self.floor = self.base;
        (self.main, self.capacity, self.tally) = (slots, capacity, tally);
        local.gate.set_top(self.floor.wrapping_add(len));
    }

    pub(super) fn kill(&mut self, local: &Local) -> [Option<Sheaf>; 2] {
        if self.state == State::Dead {
            return [None, None];
        }
        let main = self.detach_main(local);
        self.state = State::Dead;
        [main, self.spare.take()]
    }
}

impl Local {
    /// Slots in `main` and `spare`: exact while the owner is outside.
    pub(crate) fn cached(&self) -> usize {
        let shelf = self.shelf.lock();
        shelf.len(self) + shelf.spare.as_ref().map_or(0, Sheaf::len)
    }
}

impl Local {
    /// Whether the local is closed for good.
    pub(crate) fn is_dead(&self) -> bool {
        self.shelf.lock().state == State::Dead
    }
}
