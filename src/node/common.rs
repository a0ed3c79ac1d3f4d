//! What the nodes of one cache have in common.
#![forbid(unsafe_code)]

use super::quota::Quota;
use super::tenancy::Leases;
use super::want::{Shortage, Want};
use crate::sync::{AtomicUsize, Ordering};

/// See the module.
#[derive(Debug)]
pub(super) struct Common {
    /// Runs that are set up and not known to be resident.
    pub(super) bare: AtomicUsize,
    pub(super) leases: Leases,
    limit: usize,
    /// Of a cache with a limit and several nodes. One node counts what is out behind its lock.
    quota: Option<Quota>,
    /// Slots that came home to any node since the pool became tight.
    since_tight: AtomicUsize,
}

/// What is asked, and what there is to be had under the locks that are held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) want: Want,
    /// Fewer than the most that are wanted are welcome.
    pub(super) scraps: bool,
    pub(super) slots: usize,
    pub(super) out: usize,
    /// The pool is at its limit.
    pub(super) tight: bool,
}

impl Common {
    pub(super) fn new(limit: usize, several: bool) -> Self {
        let counted = several && limit != usize::MAX;
        Self {
            bare: AtomicUsize::new(0),
            leases: Leases::new(),
            limit,
            quota: counted.then(|| Quota::new(limit)),
            since_tight: AtomicUsize::new(0),
        }
    }

    /// How many slots are to be taken under the locks that are held. They count as out from here on.
    pub(super) fn grant(&self, look: Look) -> Result<usize, Shortage> {
        let Look { want, .. } = look;
        let allowed = self.limit.saturating_sub(self.out(look.out));
        if allowed < want.min {
            return Err(Shortage::Limit);
        }
        // At its limit a pool parks nothing.
        let max = if look.tight {
            want.min
        } else {
            want.max.min(allowed)
        };
        let free = look.slots - look.out;
        if free < want.min || (free < max && !look.scraps) {
            return Err(Shortage::Slabs {
                missing: want.min.saturating_sub(free),
            });
        }
        let n = max.min(free);
        match &self.quota {
            Some(quota) => quota.take(want.min, n).ok_or(Shortage::Limit),
            None => Ok(n),
        }
    }

    /// Slots out of all nodes, of which this many are out of the one that is locked.
    pub(super) fn out(&self, of_node: usize) -> usize {
        self.quota.as_ref().map_or(of_node, Quota::out)
    }

    /// Slots came home.
    pub(super) fn came_home(&self, slots: usize) {
        if let Some(quota) = &self.quota {
            quota.put(slots);
        }
    }

    /// The pool is about to become tight.
    pub(super) fn start_tight(&self) {
        // Relaxed: a count that decides when, not whether.
        self.since_tight.store(0, Ordering::Relaxed);
    }

    /// Counts slots that came home to a tight pool; how many did since it became that.
    pub(super) fn count_since_tight(&self, slots: usize) -> usize {
        // Relaxed: as above.
        self.since_tight.fetch_add(slots, Ordering::Relaxed) + slots
    }
}
