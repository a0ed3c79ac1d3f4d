//! Tickets: numbered grace periods.
//!
//! # Protocol
//!
//! 1. Grace periods are numbered in the order in which they begin. What was sealed while `n` was the last one to
//!    have begun is stamped `n + 1`: the next begins after the sealing, so who could see what is in there, and
//!    is not gone yet, was pinned before it.
//! 2. The stamp is read by an atomic read-modify-write of the word that the beginning of a grace period
//!    increases. Whoever begins number `n + 1` has therefore seen whatever its stampers did before.
//! 3. A grace period that is over says so by raising `done`, and all before it are over too.
//! 4. One is begun when none is under way, and after every few calls of `push` while some are: what is sealed in
//!    between waits for the next to begin and for that to end, not for the last one to end as well. While many are
//!    under way, some reader stays pinned; then each is begun after twice as many calls as the one before, so that
//!    they do not pile up. That others are begun also makes good for one whose end nobody tells of, since whatever was
//!    to do so was lost (in a forked child, or with a bag of closures of which one panicked).
#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, Ordering};

/// Calls of [`Tickets::push`] between two beginnings, while grace periods are under way. To begin one costs a bag of
/// 2 KiB, as much as 8 objects of 256 bytes; a call comes with each sheaf.
/// In models the second call begins one, so that several are under way.
const SPACING: u64 = if cfg!(loom) { 1 } else { 4 };

/// Grace periods that may be under way before they are begun more rarely: with sheaves of 60 objects, a million of which
/// are retired a second, this is what begins while readers stay pinned for a millisecond and two of them have to go.
const ABREAST: u64 = 16;

/// What tells the time.
pub(crate) trait Clock {
    /// Begins a grace period: once everybody who is pinned now has unpinned, `done` says `n` or more.
    fn begin(&self, n: u64);
    /// Helps the grace periods under way along. Never waits.
    fn advance(&self);
    /// The last grace period that is known to be over.
    fn done(&self) -> u64;
}

/// A grace period; 0 is over from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// Numbers grace periods.
#[derive(Debug)]
pub(crate) struct Tickets<C> {
    begun: AtomicU64,
    /// Calls of `push` that found a grace period under way since the last one began.
    waited: AtomicU64,
    clock: C,
}

macro_rules! constructor {
    ($($const:ident)?) => {
        impl<C> Tickets<C> {
            pub(crate) $($const)? fn new(clock: C) -> Self {
                Self { begun: AtomicU64::new(0), waited: AtomicU64::new(0), clock }
            }
        }
    };
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
constructor!(const);
// loom's atomics are not made in constants.
#[cfg(all(loom, any(test, feature = "loom")))]
constructor!();

impl<C: Clock> Tickets<C> {
    /// The grace period that what was sealed before this call has to wait for.
    pub(crate) fn stamp(&self) -> Ticket {
        // AcqRel: a read-modify-write, so that who begins this grace period sees what was done before (rule 2).
        Ticket(self.begun.fetch_add(0, Ordering::AcqRel) + 1)
    }

    pub(crate) fn is_over(&self, ticket: Ticket) -> bool {
        ticket.0 <= self.clock.done()
    }

    /// Does what can be done without waiting for `ticket` to be over.
    pub(crate) fn push(&self, ticket: Ticket) {
        let done = self.clock.done();
        if ticket.0 <= done {
            return;
        }
        // Relaxed: decided again by the exchange below.
        let begun = self.begun.load(Ordering::Relaxed);
        let under_way = begun.saturating_sub(done);
        if under_way > 0 {
            // Relaxed: a count that orders nothing.
            let waited = self.waited.fetch_add(1, Ordering::Relaxed);
            if waited < SPACING << under_way.saturating_sub(ABREAST).min(32) {
                return self.clock.advance();
            }
        }
        // AcqRel: sees what the stampers of this grace period did (rule 2); as the loads of stampers to come.
        // Relaxed: on failure somebody else has begun it.
        let exchanged =
            self.begun
                .compare_exchange(begun, begun + 1, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_ok() {
            // Relaxed: a count that orders nothing.
            self.waited.store(0, Ordering::Relaxed);
            self.clock.begin(begun + 1);
        }
    }

    /// In a forked child: what is under way may never end.
    pub(crate) fn lose(&self) {
        // Relaxed: the child has one thread.
        self.waited.store(u64::MAX >> 1, Ordering::Relaxed);
    }

    #[cfg(all(test, loom))]
    pub(crate) fn clock(&self) -> &C {
        &self.clock
    }
}
