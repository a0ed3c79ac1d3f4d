//! Reaping: what happens to retired objects when their grace period is over.
//!
//! A reaper takes a batch from the queue, drops its objects, each shielded from the panics of the others, and gives the
//! slots back as the sheaf that they are in: full to the barn, else to slabs. It is not pinned, and holds no lock while it
//! runs destructors. Nobody reaps inside of a destructor that a reaper runs: what they retire waits for the next.
#![forbid(unsafe_code)]

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::super::Cache;
use crate::base::error::BarrierError;
use crate::grace::{self, Elapsed, Millis, Payload, Reaping, TICKETS, Ticket};
use crate::hook::counter::{BATCH_SIZES, Counter};
use crate::hook::report::{Report, ReportKind};
use crate::local;
use crate::node::Drained;
use crate::registry::{Due, Reclaimed};
use crate::sync::{AtomicU64, Backoff, Ordering};

/// Slots that a reaper takes at a time of those that are marked in pages. It may have no memory for more.
const MARKED: usize = 60;

/// Calls that help the time along in a drain by hand: without readers enough for the grace period under way to end and
/// for the next one as well.
const PUSHES: usize = 8;

/// How many batches had how many objects, by powers of two.
#[derive(Debug)]
pub(in crate::cache) struct Sizes([AtomicU64; BATCH_SIZES]);

impl Sizes {
    pub(in crate::cache) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn note(&self, objects: usize) {
        let class = (objects.max(1).ilog2() as usize).min(BATCH_SIZES - 1);
        // Relaxed: nothing is ordered by a count.
        self.0[class].fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::cache) fn read(&self) -> [u64; BATCH_SIZES] {
        // Relaxed: as above.
        core::array::from_fn(|class| self.0[class].load(Ordering::Relaxed))
    }
}

impl Cache {
    /// Reaps up to so many batches whose grace period is over; the objects. The caller may reap.
    pub(super) fn reap(&self, batches: usize) -> usize {
        let mut objects = 0;
        for _ in 0..batches {
            let Some(batch) = self.queue.take(|ticket| TICKETS.is_over(ticket)) else {
                return objects + self.reap_marked();
            };
            objects += batch.remains.len();
            if let Some(elapsed) = Self::elapse(batch.remains, batch.ticket) {
                self.bury(elapsed);
            }
            self.queue.finish(batch.number);
        }
        objects
    }

    /// As [`Cache::reap`] of slots that are marked in their pages.
    fn reap_marked(&self) -> usize {
        if !self.queue.take_marked() {
            return 0;
        }
        let mut objects = 0;
        // Where there is no memory they stay marked.
        if let Ok(mut sheaf) = self.array_of(MARKED) {
            let is_over = |stamp| TICKETS.is_over(Ticket(stamp));
            let sink = |slot| {
                let pushed = sheaf.push(slot);
                debug_assert!(pushed.is_ok(), "no more are asked for than fit");
            };
            self.nodes
                .take_retired(MARKED, is_over, sink, |n| self.queue.found_marked(n));
            objects = sheaf.len();
            if objects == 0 {
                self.put_away_array(Some(sheaf));
            } else if let Some(elapsed) = Self::elapse(self.marked(sheaf), Ticket(0)) {
                self.bury(elapsed);
            }
        }
        self.queue.finish(0);
        objects
    }

    /// Drops the objects of a batch and gives its slots back.
    fn bury(&self, mut elapsed: Elapsed) {
        let objects = elapsed.len();
        {
            let _reaping = Reaping::enter();
            elapsed.destroy(|payload, address| {
                self.tell_panic(&payload, address);
                bury_payload(payload);
            });
            self.tell_batch(objects);
        }
        let mut sheaf = elapsed.into_sheaf();
        self.close_buried(&mut sheaf);
        let mut moving = self.moving();
        moving.take_up(objects);
        self.queue.reaped(objects);
        self.batch_sizes.note(objects);
        self.counters.add(Counter::RcuBatch, 1);
        self.counters.add(Counter::RcuReaped, objects);
        self.put_away(Some(sheaf), &mut moving);
        // A page source that panics does so in the middle of nobody's call.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(moving)));
    }

    /// Tells what the destructor of a retired object panicked with. Runs a user's hook, shielded as well.
    #[cold]
    fn tell_panic(&self, payload: &Payload, address: usize) {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned());
        self.counters.add(Counter::Reports, 1);
        let report = Report::new(ReportKind::Destructor, Some(self.name().clone()), address);
        let report = report.with_text(text);
        shielded(|| report.send());
    }

    /// Tells a `tracing` subscriber of a batch. Runs its code, shielded as well.
    #[cfg(feature = "tracing")]
    fn tell_batch(&self, nr_records: usize) {
        shielded(|| {
            tracing::event!(
                target: "sheaves",
                tracing::Level::TRACE,
                pool = &**self.name(),
                nr_records,
                "retired objects reaped"
            );
        });
    }

    #[cfg(not(feature = "tracing"))]
    fn tell_batch(&self, _nr_records: usize) {}

    /// Hands in what was retired at `until` or before; what is still retired waits for what?
    fn reclaim_until(&self, until: Millis, pushes: usize) -> Reclaimed {
        let own = local::find(self.id);
        let mut drained = Drained::default();
        self.queue.make_room(self.locals.lock().list.len() + 1);
        let locals = self.locals.lock();
        self.hand_in_all(&locals.list, until, own.as_ref(), false, &mut drained);
        let begun = locals
            .list
            .iter()
            .filter_map(|local| local.retired_since())
            .min();
        drop(locals);
        self.settle(drained);
        let waiting = self.queue.waiting();
        (0..pushes).for_each(|_| TICKETS.push(waiting.newest));
        let objects = if grace::is_reaping_allowed() {
            self.reap(usize::MAX)
        } else {
            0
        };
        let waiting = self.queue.waiting();
        let begun = begun.into_iter().chain(waiting.shared_since).min();
        let age = begun.map(|since| {
            let old = since.saturating_add(grace::millis(self.config.drain_interval));
            Due::Age(core::time::Duration::from_millis(
                old.saturating_sub(grace::now()),
            ))
        });
        let handed_in = waiting.batches + waiting.marked + waiting.reaping > 0;
        let now = (objects > 0).then_some(Due::Now);
        let grace = handed_in.then_some(Due::Grace);
        let due = now.or(grace).or(age);
        Reclaimed { objects, due }
    }

    /// See [`CacheOps`](crate::registry::CacheOps).
    pub(in crate::cache) fn reclaim_all(&self, all: bool) -> Reclaimed {
        if all {
            return self.reclaim_until(Millis::MAX, PUSHES);
        }
        let interval = grace::millis(self.config.drain_interval);
        self.reclaim_until(grace::now().saturating_sub(interval), 1)
    }

    /// Waits until what was retired before is reaped.
    pub(crate) fn rcu_barrier(&self) -> Result<(), BarrierError> {
        grace::may_wait_for_reapers()?;
        let own = local::find(self.id);
        let mut drained = Drained::default();
        self.queue.make_room(self.locals.lock().list.len() + 1);
        let locals = self.locals.lock();
        let handed_in =
            self.hand_in_all(&locals.list, Millis::MAX, own.as_ref(), false, &mut drained);
        let last = self.queue.last();
        drop(locals);
        self.settle(drained);
        if !handed_in {
            return Err(BarrierError::Forbidden);
        }
        let backoff = Backoff::new();
        loop {
            TICKETS.push(self.queue.waiting().newest);
            self.reap(usize::MAX);
            if self.queue.is_done(last) {
                return Ok(());
            }
            backoff.wait();
        }
    }
}

/// Runs a user's code in the middle of nobody's call.
fn shielded(body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        bury_payload(payload);
    }
}

/// Drops what somebody panicked with, which may panic in turn.
fn bury_payload(payload: Payload) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        let _leaked = core::mem::ManuallyDrop::new(another);
    }
}
