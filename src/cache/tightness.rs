//! The words of the exact limit's protocol, which `limit` tells.
#![forbid(unsafe_code)]

use crate::sync::{AtomicUsize, Backoff, Ordering};

/// Whether a pool is tight, and who is moving slots.
#[derive(Debug)]
pub(super) struct Tightness {
    /// Odd while the pool is tight.
    generation: AtomicUsize,
    /// Not 0 from the beginning of a search until the pool is loose again. A hint that keeps threads from moving
    /// slots which they could not park, so that a search need not wait for ever new ones.
    searching: AtomicUsize,
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
                    searching: AtomicUsize::new(0),
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
        self.searching.load(Ordering::Relaxed) != 0
    }

    /// With the list of locals locked.
    pub(super) fn start_search(&self) {
        // Relaxed: a hint.
        self.searching.store(1, Ordering::Relaxed);
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
        // Relaxed: a hint.
        self.searching.store(0, Ordering::Relaxed);
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
