//! The words of the exact limit's protocol, which `limit` tells.
#![forbid(unsafe_code)]

use crate::sync::{AtomicUsize, Backoff, Ordering};

/// A search is under way, or over and the pool tight.
const SEARCHING: usize = 1;

/// The pool has a fault.
const FAULTED: usize = 2;

/// Whether a pool is tight, and who is moving slots.
#[derive(Debug)]
pub(super) struct Tightness {
    /// Odd while the pool is tight.
    generation: AtomicUsize,
    /// Hints that send who allocates a longer way, in one word, so that it takes one look to see that there is none.
    /// Written with the list of locals locked.
    ///
    /// [`SEARCHING`] from the beginning of a search until the pool is loose again: it keeps threads from moving slots
    /// which they could not park, so that a search need not wait for ever new ones. [`FAULTED`] while the pool has a
    /// fault.
    hints: AtomicUsize,
    /// Threads that are moving slots.
    movers: AtomicUsize,
    /// Slots that they have in hand.
    transit: AtomicUsize,
    /// Threads on their way out that are moving slots.
    leavers: AtomicUsize,
}

/// A state of the pool; no two are equal between which it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(usize);

impl Generation {
    pub(super) fn is_tight(self) -> bool {
        self.0 % 2 == 1
    }
}

macro_rules! constructor {
    ($($const:ident)?) => {
        impl Tightness {
            pub(super) $($const)? fn new() -> Self {
                Self {
                    generation: AtomicUsize::new(0),
                    hints: AtomicUsize::new(0),
                    movers: AtomicUsize::new(0),
                    transit: AtomicUsize::new(0),
                    leavers: AtomicUsize::new(0),
                }
            }
        }
    };
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
constructor!(const);
// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
constructor!();

impl Tightness {
    pub(super) fn generation(&self) -> Generation {
        // Acquire: pairs with the Release of `become_tight` and `become_loose`.
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// Whether the pool was tight at `before` and has been so until now.
    pub(super) fn is_exact(&self, before: Generation) -> bool {
        before.is_tight() && self.generation() == before
    }

    /// Whether a search is under way, or over and the pool tight.
    pub(super) fn parks_nothing(&self) -> bool {
        // Relaxed: a hint.
        self.hints.load(Ordering::Relaxed) & SEARCHING != 0
    }

    /// Whether an allocation has to look at anything but what is at hand: there is a search, or a fault.
    #[inline]
    pub(super) fn is_unusual(&self) -> bool {
        // Relaxed: hints.
        self.hints.load(Ordering::Relaxed) != 0
    }

    /// With the list of locals locked.
    fn hint(&self, hint: usize, on: bool) {
        // Relaxed: the lock keeps other writers away.
        let hints = self.hints.load(Ordering::Relaxed);
        let hints = if on { hints | hint } else { hints & !hint };
        // Relaxed: hints.
        self.hints.store(hints, Ordering::Relaxed);
    }

    /// With the list of locals locked.
    pub(super) fn set_faulted(&self, faulted: bool) {
        self.hint(FAULTED, faulted);
    }

    /// With the list of locals locked.
    pub(super) fn start_search(&self) {
        self.hint(SEARCHING, true);
    }

    /// With the list of locals locked, when nothing is parked and nobody moves.
    pub(super) fn become_tight(&self) {
        // Release: pairs with the Acquire in `generation`; who sees it odd sees a node to which all slots that
        // were parked have come home.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// With the list of locals locked, before anything may be parked.
    pub(super) fn become_loose(&self) {
        // Release: pairs with the Acquire in `generation`. Whoever looks into the node after something was
        // parked sees the change: the node's lock comes between.
        self.generation.fetch_add(1, Ordering::Release);
        self.hint(SEARCHING, false);
    }

    pub(super) fn start_moving(&self) {
        // Relaxed: what is taken out of a place is taken under its lock, which the search holds later, so it
        // sees this.
        self.movers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn take_up(&self, slots: usize) {
        // Relaxed: a gauge.
        self.transit.fetch_add(slots, Ordering::Relaxed);
    }

    pub(super) fn stop_moving(&self, in_hand: usize) {
        // Relaxed: a gauge.
        self.transit.fetch_sub(in_hand, Ordering::Relaxed);
        // Release: pairs with the Acquire in `wait_for_movers`; it sees the slots where they are now.
        self.movers.fetch_sub(1, Ordering::Release);
    }

    pub(super) fn start_leaving(&self) {
        // Relaxed: as in `start_moving`; a drain holds the lock of each local later.
        self.leavers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stop_leaving(&self) {
        // Release: pairs with the Acquire in `wait_for_leavers`.
        self.leavers.fetch_sub(1, Ordering::Release);
    }

    /// Waits until nobody moves slots. With the list of locals locked, every local closed and the barn too, so
    /// that whoever begins now finds nothing to move.
    pub(super) fn wait_for_movers(&self) {
        let backoff = Backoff::new();
        // Acquire: pairs with the Release in `stop_moving`.
        while self.movers.load(Ordering::Acquire) > 0 {
            backoff.wait();
        }
    }

    /// Waits until what threads on their way out had parked is in the barn or in slabs. With the list of locals
    /// locked, so that there are no more than it names.
    pub(super) fn wait_for_leavers(&self) {
        let backoff = Backoff::new();
        // Acquire: pairs with the Release in `stop_leaving`.
        while self.leavers.load(Ordering::Acquire) > 0 {
            backoff.wait();
        }
    }

    /// In a forked child: whoever was moving is not there.
    pub(super) fn forget_movers(&self) {
        // Relaxed: the child has one thread.
        self.movers.store(0, Ordering::Relaxed);
        // Relaxed: as above.
        self.transit.store(0, Ordering::Relaxed);
        // Relaxed: as above.
        self.leavers.store(0, Ordering::Relaxed);
    }

    /// Slots under way; counted in pools with a limit.
    pub(super) fn transit(&self) -> usize {
        // Relaxed: a gauge.
        self.transit.load(Ordering::Relaxed)
    }
}
