//! What is behind a local's lock, for its owner ([`Held`]) and for a drainer ([`Drain`]).

use core::mem;
use core::ptr;

use super::{Local, SlotPlace};
use crate::sheaf::Sheaf;
use crate::slab::Slot;
use crate::sync::{Guard, heavy_barrier};

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
    base: *mut SlotPlace,
    capacity: usize,
    floor: *mut SlotPlace,
    spare: Option<Sheaf>,
    state: State,
}

// SAFETY: `base` and `floor` point into `main`, which the shelf owns.
unsafe impl Send for Shelf {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
            base,
            capacity: 0,
            floor: base,
            spare: None,
            state: State::Open,
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

    /// Slots in `main`.
    pub(crate) fn len(&self) -> usize {
        self.shelf.len(self.local)
    }

    /// Takes a slot from `main`, whether or not the gate is open.
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        if self.len() == 0 {
            return None;
        }
        // SAFETY: a `Held` is its owner's, with the lock held; every place from the floor to the top holds a token
        // (invariant 2).
        unsafe { self.local.gate.pop_locked(self.shelf.floor) }
    }

    /// Puts a slot into `main`, whether or not the gate is open; gives it back if `main` is full.
    pub(crate) fn push(&mut self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: as in `pop`; the places up to the end are the array's (invariant 1). A local without an array
        // has its end below every top.
        unsafe { self.local.gate.push_locked(self.shelf.end(), slot) }
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

    fn len(&self, local: &Local) -> usize {
        // Only the owner writes the top, so that of a dead local may still point into an array that is gone.
        if self.state == State::Dead {
            return 0;
        }
        (local.gate.top().addr() - self.floor.addr()) / size_of::<SlotPlace>()
    }

    /// Shows the bounds to the fast path, if it is let in.
    fn reopen(&self, local: &Local) {
        if self.state == State::Open {
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
        (capacity > 0).then(|| Sheaf::from_parts(slots, capacity))
    }

    /// Puts the array of a sheaf behind the gate, which has none. For the owner: writes `top`.
    fn attach_main(&mut self, local: &Local, sheaf: Sheaf) {
        let (mut slots, capacity) = sheaf.into_parts();
        let len = slots.len();
        // SAFETY: 0 is in bounds; the tokens stay in the array, below the gate's top.
        unsafe { slots.set_len(0) };
        self.base = slots.as_mut_ptr().cast();
        self.floor = self.base;
        (self.main, self.capacity) = (slots, capacity);
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

/// A drainer's work on the locals of one cache, in the order of the gate's rule 4.
#[derive(Debug)]
pub(crate) struct Drain<'a, L> {
    locals: &'a [L],
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
            Some(unsafe { <SlotPlace as super::Place>::take(place) })
        });
        sink(&mut main);
        debug_assert!(main.next().is_none(), "a drainer takes every slot");
        if let Some(spare) = &mut self.spare {
            sink(&mut spare.drain());
        }
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
