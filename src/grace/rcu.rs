//! Grace periods: readers that hold no lock, and waiting for them.
//!
//! A reader [pins](pin) its thread and follows pointers that writers change under it, for example in an
//! [`RcuCell`](crate::RcuCell). What a writer unlinks it [retires](crate::PoolBox::retire); its destructor runs, and its
//! slot is used again, after a *grace period*: when every reader that was pinned at the time has unpinned. The time is
//! told by [crossbeam-epoch](crossbeam_epoch)'s default collector, so guards of that crate count as well.
//!
//! ```
//! use sheaves::{Pool, RcuCell, rcu};
//!
//! let pool = Pool::new("routes");
//! let route = RcuCell::new(pool.alloc("by the coast"));
//! let guard = rcu::pin(); // a reader
//! let seen = route.load(&guard);
//! route.replace(pool.alloc("over the hills")); // a writer: what was there is retired
//! assert_eq!(*seen, "by the coast");
//! drop(guard);
//! rcu::barrier()?; // the old one is gone, and its slot is free
//! assert_eq!((pool.stats().live, pool.stats().retired), (1, 0));
//! # Ok::<(), rcu::BarrierError>(())
//! ```
//!
//! # Who reclaims
//!
//! Retired objects are collected in sheaves. A sheaf that is full, or whose oldest object is
//! [`drain_interval`](crate::Builder::drain_interval) old, is handed in, and once its grace period is over its objects
//! are dropped by whoever comes by first: a thread that hands in its next sheaf, a [`barrier`], or the *drain
//! thread*, one for the process, which is started when something is retired and stops when nothing is. It has no
//! locks and is not pinned when it runs destructors, and neither has any other of these. A destructor that panics is
//! caught and [reported](crate::set_report_hook).
//!
//! When the process exits, what is still retired is not dropped: destructors do not run beside what is torn down;
//! [`Stats::retired`](crate::Stats) counts it until then. In the child of a fork a reader of the parent may stay pinned for
//! ever: there what is retired may never be dropped, [`barrier`] and [`synchronize`] are errors, and pools close without
//! waiting.
//!
//! # How much is retired at a time
//!
//! Let `c` be the sheaf capacity of a pool, `t` the threads that retire into it, `r` their retirements per second
//! together, `I` the drain interval, and `L` the longest time for which a reader stays pinned. Time passes in epochs: one
//! ends when the readers that were pinned before it have unpinned, after `L` at most, and a grace period is over two
//! epochs after it began. An object
//!
//! * waits in a sheaf until that is full or `I` old, and is found to be that by the drain thread, which looks at the
//!   moment at which the oldest sheaf will be: at most `I`, and 1 ms for the clock;
//! * waits for a grace period to begin. With every fourth sheaf that is handed in one does, while few are under way;
//!   else one does when those under way have ended: at most `2 L`;
//! * waits for that to end: at most `2 L`;
//! * is reaped then. If nobody retires meanwhile the drain thread has to look for each of these steps, and its looks are
//!   32 ms apart at most: 0.1 s.
//!
//! So it is retired for at most `I + 4 L + 0.1 s`, and `r` times that bounds how many are at a time, besides those in
//! reapers' hands. Under load sheaves fill before they are old, whoever hands in looks, and grace periods begin side by
//! side: about `8 t c + 2 r L` are retired. A million a second beside readers that are pinned for a millisecond at a time
//! are 1,900, as many as wait in the bags of crossbeam-epoch itself. With readers that stay pinned for longer than a
//! few hundred sheaves take to fill, grace periods begin more rarely, since each takes memory, and the bound becomes
//! `t c + 4 r L`. A reader that stays pinned for ever makes `L` infinite: then nothing but the pool's limit bounds what
//! is retired, and allocation fails when it is reached. Destructors that take longer than objects take to be retired
//! add what they hold up.
#![forbid(unsafe_code)]

use super::epoch::TICKETS;
use super::reaper::{may_wait, may_wait_for_reapers};
use super::{attic, worker};
use crate::registry;
use crate::sync::Backoff;

pub use super::guard::{Guard, pin};
pub use crate::base::error::BarrierError;

/// Waits until every reader that is pinned now has unpinned.
///
/// # Errors
///
/// [`BarrierError::Pinned`] if the running thread is itself pinned, [`BarrierError::Forked`] in a forked child.
///
/// ```
/// use sheaves::rcu;
///
/// rcu::synchronize()?;
/// let guard = rcu::pin();
/// assert_eq!(rcu::synchronize(), Err(rcu::BarrierError::Pinned));
/// # Ok::<(), rcu::BarrierError>(())
/// ```
#[doc(alias = "synchronize_rcu")]
pub fn synchronize() -> Result<(), BarrierError> {
    may_wait()?;
    let ticket = TICKETS.stamp();
    let backoff = Backoff::new();
    while !TICKETS.is_over(ticket) {
        TICKETS.push(ticket);
        backoff.wait();
    }
    Ok(())
}

/// Waits until every object that was retired before, into any pool and on any thread, is dropped.
///
/// Runs destructors, those of other threads' objects too.
///
/// # Errors
///
/// As [`Pool::rcu_barrier`](crate::Pool::rcu_barrier).
///
/// ```
/// # use sheaves::{Pool, PoolBox, rcu};
/// let pool = Pool::new("numbers");
/// PoolBox::retire(pool.alloc(1));
/// rcu::barrier()?;
/// assert_eq!(pool.stats().retired, 0);
/// # Ok::<(), rcu::BarrierError>(())
/// ```
#[doc(alias = "kvfree_rcu_barrier")]
pub fn barrier() -> Result<(), BarrierError> {
    may_wait_for_reapers()?;
    registry::all().try_for_each(|cache| cache.barrier())
}

/// Hands in every sheaf of retired objects, full or not, and drops the objects that no reader sees any more; how many
/// those were. Never waits for readers.
///
/// Without readers two calls drop all that was retired before the first. For programs that chose
/// [`set_manual`], and for moments at which a program has nothing else to do. Does nothing while the thread is pinned,
/// or runs a destructor of a retired object, but to hand in.
///
/// ```
/// # use sheaves::{Pool, PoolBox, rcu};
/// rcu::set_manual(true);
/// let pool = Pool::new("numbers");
/// PoolBox::retire(pool.alloc(1));
/// while pool.stats().retired > 0 {
///     rcu::drain();
/// }
/// ```
pub fn drain() -> usize {
    let objects = registry::all()
        .map(|cache| cache.reclaim(true).objects)
        .sum();
    attic::reclaim();
    objects
}

/// Whether the process reclaims by itself only when threads retire, and otherwise by [`drain`], instead of having a
/// drain thread. A thread that runs stops soon.
///
/// ```
/// # use sheaves::rcu;
/// rcu::set_manual(true); // from now on an event loop calls `rcu::drain` when it is idle
/// ```
pub fn set_manual(manual: bool) {
    worker::set_manual(manual);
}
