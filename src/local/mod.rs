//! A thread's own sheaves of one cache.
//!
//! A *local* has a `main` sheaf, from which its thread takes and into which it puts, and a `spare`, with
//! which `main` is swapped when it runs empty or full: a thread that goes back and forth over a boundary then
//! swaps two pointers and does not visit the barn. `main` lies behind a [gate](gate), so its thread uses it
//! without locks; `spare`, and everything done to `main` as a whole, is behind the local's lock.
//!
//! # States
//!
//! *Open*: the owner's fast path works. *Shut*: a drainer is at work; the owner's slow path does what the fast
//! one cannot, under the lock. *Tight*: the pool is at its limit, so its threads may not park slots; the owner
//! goes to slabs. *Dead*: the cache is closed or the thread is gone; the local has no arrays and
//! stays shut, and what its thread frees goes to slabs.

mod drain;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod fork;
mod gate;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod guarded;
#[cfg(all(test, loom))]
mod model;
#[cfg(feature = "rcu")]
mod rcu;
mod shelf;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod thread;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use thread::{Mine, SizeKey, adopt, entry, find, is_own, recent, remember};

use core::mem::MaybeUninit;

pub(crate) use drain::Drain;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use fork::hold_lock;
use gate::{Gate, Place};
#[cfg(feature = "rcu")]
pub(crate) use rcu::{Harvest, HeldSide};
pub(crate) use shelf::Held;
use shelf::Shelf;

#[cfg(feature = "op-counters")]
use crate::hook::counter::OwnCounter;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
use crate::hook::counter::OwnCounters;
use crate::slab::Slot;
use crate::sync::{BarrierMode, Lock};

/// A place of a sheaf's array.
type SlotPlace = MaybeUninit<Slot>;

// In a model the same with each access watched is in `model/watch.rs`.
// SAFETY: a read returns what the last write stored.
#[cfg(not(all(test, loom)))]
unsafe impl Place for SlotPlace {
    type Item = Slot;

    #[inline(always)]
    unsafe fn take(place: *mut Self) -> Slot {
        // SAFETY: valid for reads, by the caller's word.
        let place = unsafe { place.read() };
        // SAFETY: it holds an item, which leaves it, by the caller's word.
        unsafe { place.assume_init() }
    }

    #[inline(always)]
    unsafe fn put(place: *mut Self, slot: Slot) {
        // SAFETY: valid for writes, by the caller's word.
        unsafe { place.write(Self::new(slot)) };
    }
}

/// One thread's sheaves for one cache. The words of the fast path share a cache line.
///
/// # Invariants
///
/// 1. Only the thread whose table holds the local calls the gate's `pop` and `push`.
/// 2. The items of the array are tokens; between the shelf's floor and the gate's top every place holds one.
/// 3. While the state is not `Open` the gate is shut.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Local {
    gate: Gate<SlotPlace>,
    id: u32,
    mode: BarrierMode,
    /// Whether the fast path may free: not where a freed slot must be cleared first.
    fast_free: bool,
    shelf: Lock<Shelf>,
    #[cfg(not(all(loom, any(test, feature = "loom"))))]
    pub(crate) counters: OwnCounters,
    /// Retired objects.
    #[cfg(feature = "rcu")]
    side: rcu::Side,
}

// SAFETY: the array behind the gate's pointer holds tokens, which may be sent; who may use it when is the
// gate's protocol.
unsafe impl Send for Local {}
// SAFETY: as above; `pop` and `push` of the gate are for the owner only (invariant 1), and the rest is atomic
// or behind the lock.
unsafe impl Sync for Local {}

impl Local {
    #[cfg(not(all(loom, any(test, feature = "loom"))))]
    pub(crate) const fn new(id: u32, mode: BarrierMode, fast_free: bool) -> Self {
        Self {
            gate: Gate::new(),
            id,
            mode,
            fast_free,
            shelf: Lock::new(Shelf::new()),
            counters: OwnCounters::new(),
            #[cfg(feature = "rcu")]
            side: rcu::Side::new(crate::slab::Destructor::NONE),
        }
    }

    #[cfg(all(loom, any(test, feature = "loom")))]
    pub(crate) fn new(id: u32, mode: BarrierMode, fast_free: bool) -> Self {
        Self {
            gate: Gate::new(),
            id,
            mode,
            fast_free,
            shelf: Lock::new(Shelf::new()),
            #[cfg(feature = "rcu")]
            side: rcu::Side::new(crate::slab::Destructor::NONE),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Takes a slot on the fast path.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<Slot> {
        // SAFETY: passed on.
        let slot = unsafe { self.gate.pop() };
        #[cfg(all(feature = "op-counters", not(all(loom, any(test, feature = "loom")))))]
        self.counters
            .add(OwnCounter::AllocFastpath, usize::from(slot.is_some()));
        slot
    }

    /// Puts a slot on the fast path.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: passed on.
        let result = unsafe { self.gate.push(slot) };
        #[cfg(all(feature = "op-counters", not(all(loom, any(test, feature = "loom")))))]
        self.counters
            .add(OwnCounter::FreeFastpath, usize::from(result.is_ok()));
        result
    }
}

impl Local {
    /// As [`Local::pop`], where there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    pub(crate) unsafe fn pop_fenced(&self) -> Option<Slot> {
        // SAFETY: passed on.
        unsafe { self.gate.pop_fenced() }
    }

    /// As [`Local::push`], where there is no `membarrier`.
    ///
    /// # Safety
    ///
    /// The calling thread owns the local.
    pub(crate) unsafe fn push_fenced(&self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: passed on.
        unsafe { self.gate.push_fenced(slot) }
    }
}
