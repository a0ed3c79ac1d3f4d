//! Grace periods, and who acts when they are over.
//!
//! [`tickets`] numbers grace periods by a [`Clock`]; [`epoch`] is the clock, crossbeam-epoch's, and `counting` that of
//! the models. What waits for a ticket is [`Remains`]: slots with objects in them; once it is over they become
//! [`Elapsed`], whose objects may be dropped, by a thread that is [`Reaping`]. The [`worker`] is the thread that does
//! so where no other comes by. Nothing here waits but [`rcu::synchronize`] and what [`rcu::barrier`] calls.

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod attic;
#[cfg(all(test, loom))]
mod counting;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod epoch;
#[cfg(all(unix, not(all(loom, any(test, feature = "loom")))))]
mod exit;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod guard;
#[cfg(all(test, loom))]
mod model;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub mod rcu;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod reaper;
mod remains;
mod summons;
mod tickets;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod time;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod worker;

pub(crate) use remains::{Elapsed, Payload, Remains, Retired};
pub(crate) use tickets::Ticket;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use {
    attic::keep as keep_slabs,
    epoch::TICKETS,
    reaper::{Reaping, may_reap as is_reaping_allowed, may_wait_for_reapers},
    time::{Millis, millis, now},
    worker::{need as need_worker, wake as wake_worker},
};

/// Locks what a fork must not find locked.
#[cfg(all(unix, not(all(loom, any(test, feature = "loom")))))]
pub(crate) fn hold() -> impl Sized {
    (worker::hold(), attic::hold())
}

/// In a forked child: no drain thread runs, and no grace period may ever end.
#[cfg(all(unix, not(all(loom, any(test, feature = "loom")))))]
pub(crate) fn forget() {
    reaper::note_fork();
    worker::forget();
    TICKETS.lose();
}
