//! The words in which borrowers note how many slots their sheaves have left.
#![forbid(unsafe_code)]

use crate::sheaf::{Sheaf, Tally};
use crate::sync::{AtomicUsize, Lock, Ordering, Shared};

/// Tallies at which those of sheaves that are gone are looked for.
const SWEEP: usize = 8;

/// The tallies of a cache's sheaves.
#[derive(Debug)]
pub(super) struct Ledger(Lock<Tallies>);

#[derive(Debug)]
struct Tallies {
    all: Vec<Shared<Tally>>,
    sweep_at: usize,
}

impl Ledger {
    pub(super) const fn new() -> Self {
        Self(Lock::new(Tallies {
            all: Vec::new(),
            sweep_at: SWEEP,
        }))
    }

    /// Sees to it that a sheaf has a tally; `false` if there is no memory for one.
    #[inline]
    pub(super) fn enlist(&self, sheaf: &mut Sheaf) -> bool {
        sheaf.has_tally() || self.enlist_new(sheaf)
    }

    #[cold]
    fn enlist_new(&self, sheaf: &mut Sheaf) -> bool {
        let Some(new) = Shared::try_new(Tally::new(AtomicUsize::new(0))) else {
            return false;
        };
        let mut tallies = self.0.lock();
        if tallies.all.len() >= tallies.sweep_at {
            tallies.all.retain(|tally| Shared::strong_count(tally) > 1);
            tallies.sweep_at = (tallies.all.len() * 2).max(SWEEP);
        }
        let room = tallies.all.try_reserve(1);
        if room.is_ok() {
            tallies.all.push(Shared::clone(&new));
            sheaf.set_tally(new);
        }
        room.is_ok()
    }

    /// Locks the ledger.
    pub(super) fn hold(&self) -> impl Sized + '_ {
        self.0.lock()
    }

    /// Slots in all lent sheaves.
    pub(super) fn total(&self) -> usize {
        // Relaxed: a gauge.
        self.0
            .lock()
            .all
            .iter()
            .map(|tally| tally.load(Ordering::Relaxed))
            .sum()
    }
}
