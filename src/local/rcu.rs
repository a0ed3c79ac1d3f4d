//! A thread's sheaf of retired objects.
//!
//! It lies behind a [gate](super::gate) of its own, into which its thread pushes and from which nobody pops: to retire
//! an object on the fast path costs what to free one does. What else is done to it is behind a lock of its own, the
//! *pile*'s: the owner hands a full sheaf in and puts an empty array in its place, a drainer takes the sheaf away, after
//! which the owner finds no array and begins anew.
//!
//! # States
//!
//! *Idle*: no array; the gate is shut. *Filling*: an array is behind the open gate. *Shut*: a drainer is about to take
//! the array, and the gate is shut. *Left*: the thread is gone, and what it left behind is still there. *Gone*: there
//! is and will be no array.
//!
//! Whoever takes an array hands it in before it lets go of the lock that it held, so that what was retired is always
//! either here or there.

mod harvest;

pub(crate) use harvest::Harvest;

use core::mem;
use core::ptr;

use super::gate::Gate;
use super::{Local, SlotPlace};
use crate::grace::{Remains, Retired};
use crate::sheaf::{Sheaf, Tally};
use crate::slab::{Destructor, Slot};
use crate::sync::{BarrierMode, Guard, Lock, Shared};

/// The rcu side of a local.
///
/// # Invariants
///
/// 1. What is pushed is a slot with a retired object of the cache's type in it, or one that needs no destructor where
///    `destructor` is none; see [`Remains`].
/// 2. As the second of [`Local`], for this gate and the pile's `base`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Side {
    gate: Gate<SlotPlace>,
    destructor: Destructor,
    pile: Lock<Pile>,
}

/// What a side's lock guards.
///
/// # Invariants
///
/// 1. While the state is `Filling`, `Shut` or `Left`, `array` is the array behind the gate, as a vector of length 0
///    that starts at `base`, and the gate's top lies in `[base, base + capacity]`. Else there is none.
/// 2. The places `[base, top)` hold tokens.
#[derive(Debug)]
pub(super) struct Pile {
    array: Vec<Slot>,
    base: *mut SlotPlace,
    capacity: usize,
    /// The array's, which it keeps.
    tally: Option<Shared<Tally>>,
    state: State,
    /// The cache is closing: once the array is gone there is no other.
    last: bool,
    /// When the array was put in, and with it its oldest slot; see [`HeldSide::attach`].
    since: u64,
}

// SAFETY: `base` points into `array`, which the pile owns.
unsafe impl Send for Pile {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Filling,
    Shut,
    Left,
    Gone,
}

macro_rules! constructor {
    ($($const:ident)?) => {
        impl Side {
            pub(super) $($const)? fn new(destructor: Destructor) -> Self {
                let pile = Pile {
                    array: Vec::new(),
                    base: ptr::NonNull::dangling().as_ptr(),
                    capacity: 0,
                    tally: None,
                    state: State::Idle,
                    last: false,
                    since: 0,
                };
                Self { gate: Gate::new(), destructor, pile: Lock::new(pile) }
            }
        }
    };
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
constructor!(const);
// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
constructor!();

impl Local {
    /// The same local for a cache whose objects have this destructor.
    pub(crate) fn with_destructor(mut self, destructor: Destructor) -> Self {
        self.side = Side::new(destructor);
        self
    }

    /// Whether objects have a destructor.
    #[inline(always)]
    pub(crate) fn drops(&self) -> bool {
        self.side.destructor.is_some()
    }

    /// Retires the object in a slot on the fast path.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local; the slot holds a retired object as the side's invariant 1 says.
    #[inline(always)]
    pub(crate) unsafe fn retire(&self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: passed on.
        unsafe { self.side.gate.push(slot) }
    }

    /// As [`Local::retire`], where there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// As for [`Local::retire`].
    pub(crate) unsafe fn retire_fenced(&self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: passed on.
        unsafe { self.side.gate.push_fenced(slot) }
    }

    /// Locks the side for its owner; `None` if the owner was interrupted inside the gate by this very call.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    pub(super) unsafe fn hold_side(&self) -> Option<HeldSide<'_>> {
        (!self.side.gate.is_busy()).then(|| HeldSide {
            side: &self.side,
            mode: self.mode,
            pile: self.side.pile.lock(),
        })
    }

    /// Retired objects here: exact while the owner is outside.
    pub(crate) fn retired(&self) -> usize {
        let pile = self.side.pile.lock();
        pile.len(&self.side)
    }

    /// Locks the pile.
    #[cfg(not(all(loom, any(test, feature = "loom"))))]
    pub(super) fn lock_pile(&self) -> Guard<'_, Pile> {
        self.side.pile.lock()
    }

    /// In a forked child: the retired objects of a thread that the child does not have, or nothing if the thread was
    /// copied in the middle of its fast path.
    #[cfg(not(all(loom, any(test, feature = "loom"))))]
    pub(crate) fn salvage_side(&self) -> Option<Remains> {
        if self.side.gate.is_busy() {
            return None;
        }
        let mut pile = self.side.pile.lock();
        self.side.gate.shut();
        pile.take(&self.side, State::Gone)
    }
}

/// The side in the hands of its own thread, with the lock held and no operation of the gate under way.
#[derive(Debug)]
pub(crate) struct HeldSide<'a> {
    side: &'a Side,
    mode: BarrierMode,
    pile: Guard<'a, Pile>,
}

impl HeldSide<'_> {
    /// Whether nothing may be retired here: the cache is closed or the thread gone.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.pile.state, State::Left | State::Gone)
    }

    /// Whether there is no array.
    pub(crate) fn is_idle(&self) -> bool {
        self.pile.state == State::Idle
    }

    /// Takes in a slot of the same cache, whether or not the gate is open; gives it back if there is no room, or its
    /// object is not to be dropped as the others are.
    pub(crate) fn push(&mut self, retired: Retired) -> Result<(), Retired> {
        let drops = retired.drops();
        if !self.pile.has_array() || drops != self.side.destructor.is_some() {
            return Err(retired);
        }
        let mut item = core::iter::once(retired.into_slot());
        // SAFETY: a `HeldSide` is its owner's, with the lock held; the places up to the end are the array's.
        unsafe { self.side.gate.push_locked(self.pile.end(), &mut item) };
        match item.next() {
            // SAFETY: as it came.
            Some(slot) => Err(unsafe { Retired::new(slot, drops) }),
            None => Ok(()),
        }
    }

    /// Takes the sheaf away. The caller hands it in while it holds this.
    pub(crate) fn take(&mut self) -> Option<Remains> {
        self.side.gate.shut();
        let next = self.pile.after();
        self.pile.take(self.side, next)
    }

    /// Puts an empty array in, where there is none. `now` is when the slot that is pushed next was retired; slots that
    /// come later are younger.
    pub(crate) fn attach(&mut self, array: Sheaf, now: u64) {
        debug_assert!(self.is_idle() && array.is_empty());
        let (mut slots, capacity, tally) = array.into_parts();
        let pile = &mut *self.pile;
        (pile.base, pile.capacity) = (slots.as_mut_ptr().cast(), capacity);
        pile.tally = tally;
        (pile.array, pile.state, pile.since) = (slots, State::Filling, now);
        self.side.gate.set_top(pile.base);
        self.side.gate.open(pile.base, pile.end(), self.mode, true);
    }

    /// The thread is going: what is here is taken by [`Local::take_left`] or by a drainer.
    pub(crate) fn leave(mut self) {
        self.side.gate.shut();
        self.pile.state = if self.pile.has_array() {
            State::Left
        } else {
            State::Gone
        };
    }
}

impl Pile {
    fn has_array(&self) -> bool {
        matches!(self.state, State::Filling | State::Shut | State::Left)
    }

    /// The state in which the taking of an array leaves the pile.
    fn after(&self) -> State {
        if self.last { State::Gone } else { State::Idle }
    }

    fn end(&self) -> *mut SlotPlace {
        self.base.wrapping_add(self.capacity)
    }

    fn len(&self, side: &Side) -> usize {
        if !self.has_array() {
            return 0;
        }
        (side.gate.top().addr() - self.base.addr()) / size_of::<SlotPlace>()
    }

    /// Takes the array with its tokens from behind the gate, which is shut, and inside which nobody is.
    fn take(&mut self, side: &Side, next: State) -> Option<Remains> {
        let (had, len) = (self.has_array(), self.len(side));
        self.state = next;
        if !had {
            return None;
        }
        let mut slots = mem::take(&mut self.array);
        // SAFETY: the first `len` places hold tokens, and `len` is at most the capacity (invariants 1 and 2).
        unsafe { slots.set_len(len) };
        self.base = ptr::NonNull::dangling().as_ptr();
        let capacity = mem::take(&mut self.capacity);
        let sheaf = Sheaf::from_parts((slots, capacity, self.tally.take()));
        // SAFETY: what is pushed into a side is as `Remains` asks (invariant 1 of `Side`).
        Some(unsafe { Remains::new(sheaf, side.destructor) })
    }
}

impl Local {
    /// What a thread that is gone left behind.
    pub(crate) fn take_left(&self) -> Option<Remains> {
        let mut pile = self.side.pile.lock();
        if pile.state != State::Left {
            return None;
        }
        pile.take(&self.side, State::Gone)
    }

    /// When the sheaf was begun, if there is one.
    pub(crate) fn retired_since(&self) -> Option<u64> {
        let pile = self.side.pile.lock();
        pile.has_array().then_some(pile.since)
    }
}
