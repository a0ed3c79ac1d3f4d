//! The limit of a cache with several nodes.
#![forbid(unsafe_code)]

use crate::sync::{AtomicUsize, Ordering};

/// Slots that are out of the slabs of all nodes, bounded.
///
/// One node compares what is out with the limit under its lock. Several nodes have several locks, so the slots of all
/// are counted here: up before they are taken, down after they were put home, in either case with the lock of their
/// node held. So never more are out than are counted. A refusal is as exact as with one node: whoever counted slots
/// had them out at that time.
#[derive(Debug)]
pub(crate) struct Quota {
    out: AtomicUsize,
    limit: usize,
}

impl Quota {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            out: AtomicUsize::new(0),
            limit,
        }
    }

    /// Counts up to `max` slots out, all that the limit allows; `None`, and nothing is counted, if that is less than
    /// `min`. The caller takes that many: it knows that its node has them.
    pub(crate) fn take(&self, min: usize, max: usize) -> Option<usize> {
        let allowed = |out: usize| max.min(self.limit - out);
        let count = |out: usize| (allowed(out) >= min).then(|| out + allowed(out));
        // Relaxed: a count. Slots are handed on by their node's lock, and whoever was told that one came home, or
        // brought it home, sees it counted.
        let success = Ordering::Relaxed;
        // Relaxed: as above.
        let before = self.out.fetch_update(success, Ordering::Relaxed, count);
        before.ok().map(allowed)
    }

    /// Counts slots that came home.
    pub(crate) fn put(&self, slots: usize) {
        // Relaxed: as in `take`.
        self.out.fetch_sub(slots, Ordering::Relaxed);
    }

    pub(crate) fn out(&self) -> usize {
        // Relaxed: as in `take`.
        self.out.load(Ordering::Relaxed)
    }
}
