//! A barn: where the threads of a node trade whole sheaves.
//!
//! Two bounded stacks behind one short lock, full sheaves and empty ones, both last in first out so that the
//! warmest goes first. A thread whose sheaf ran empty trades it for a full one, a thread whose sheaf ran
//! full trades it for an empty one, and neither touches a slab. The limits are exact: what does not fit is
//! handed back for the caller to flush or to free.
//!
//! The counts can be read without the lock, so a barn that cannot help costs its callers no lock. Such a
//! reading may be stale; the answer under the lock is what counts.
#![forbid(unsafe_code)]

use crate::sheaf::Sheaf;
use crate::sync::{AtomicUsize, Guard, Lock, Ordering};

/// The full and empty sheaves of one node.
#[derive(Debug)]
pub(crate) struct Barn {
    stacks: Lock<Stacks>,
    max_full: usize,
    max_empty: usize,
    nr_full: AtomicUsize,
    nr_empty: AtomicUsize,
}

#[derive(Debug, Default)]
struct Stacks {
    full: Vec<Sheaf>,
    empty: Vec<Sheaf>,
    /// Slots in `full`.
    slots: usize,
    /// Nothing is taken in any more.
    closed: bool,
}

/// Why a full sheaf could not be traded for an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many full sheaves as allowed.
    NoRoom,
    /// There is no empty sheaf to give in return.
    NoEmpty,
}

impl Barn {
    pub(crate) fn new(max_full: usize, max_empty: usize) -> Self {
        Self {
            stacks: Lock::new(Stacks::default()),
            max_full,
            max_empty,
            nr_full: AtomicUsize::new(0),
            nr_empty: AtomicUsize::new(0),
        }
    }

    /// Takes the warmest full sheaf, which has slots but may not be quite full.
    pub(crate) fn get_full(&self) -> Option<Sheaf> {
        if Self::looks_empty(&self.nr_full) {
            return None;
        }
        self.get_full_locked(self.stacks.lock())
    }

    /// As [`Barn::get_full`], but gives up if the lock is held.
    pub(crate) fn try_get_full(&self) -> Option<Sheaf> {
        self.get_full_locked(self.stacks.try_lock()?)
    }

    fn get_full_locked(&self, mut stacks: Guard<'_, Stacks>) -> Option<Sheaf> {
        let sheaf = stacks.full.pop()?;
        stacks.slots -= sheaf.len();
        self.publish(&stacks);
        Some(sheaf)
    }

    /// Takes the warmest empty sheaf.
    pub(crate) fn get_empty(&self) -> Option<Sheaf> {
        if Self::looks_empty(&self.nr_empty) {
            return None;
        }
        let mut stacks = self.stacks.lock();
        let sheaf = stacks.empty.pop();
        self.publish(&stacks);
        sheaf
    }

    /// Puts a sheaf with slots among the full ones; gives it back if there is no room.
    pub(crate) fn put_full(&self, sheaf: Sheaf) -> Result<(), Sheaf> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_full.load(Ordering::Relaxed) >= self.max_full || !self.make_room() {
            return Err(sheaf);
        }
        let mut stacks = self.stacks.lock();
        if stacks.closed || stacks.full.len() >= self.max_full {
            return Err(sheaf);
        }
        stacks.slots += sheaf.len();
        stacks.full.push(sheaf);
        self.publish(&stacks);
        Ok(())
    }

    /// Puts an empty sheaf among the empty ones; gives it back if there is no room.
    pub(crate) fn put_empty(&self, sheaf: Sheaf) -> Result<(), Sheaf> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_empty.load(Ordering::Relaxed) >= self.max_empty || !self.make_room() {
            return Err(sheaf);
        }
        let mut stacks = self.stacks.lock();
        if stacks.closed || stacks.empty.len() >= self.max_empty {
            return Err(sheaf);
        }
        stacks.empty.push(sheaf);
        self.publish(&stacks);
        Ok(())
    }

    /// Trades a full sheaf for an empty one.
    pub(crate) fn exchange_full(&self, sheaf: Sheaf) -> Result<Sheaf, (Sheaf, Refusal)> {
        // Relaxed: a hint; decided again under the lock.
        if self.nr_full.load(Ordering::Relaxed) >= self.max_full {
            return Err((sheaf, Refusal::NoRoom));
        }
        if Self::looks_empty(&self.nr_empty) {
            return Err((sheaf, Refusal::NoEmpty));
        }
        let mut stacks = self.stacks.lock();
        if stacks.closed || stacks.full.len() >= self.max_full {
            return Err((sheaf, Refusal::NoRoom));
        }
        let Some(empty) = stacks.empty.pop() else { return Err((sheaf, Refusal::NoEmpty)) };
        stacks.slots += sheaf.len();
        stacks.full.push(sheaf);
        self.publish(&stacks);
        Ok(empty)
    }

    /// Trades an empty sheaf for a full one; the empty one comes back too if there is no room for it.
    pub(crate) fn exchange_empty(&self, sheaf: Sheaf) -> Result<(Sheaf, Option<Sheaf>), Sheaf> {
        if Self::looks_empty(&self.nr_full) {
            return Err(sheaf);
        }
        let mut stacks = self.stacks.lock();
        let Some(full) = stacks.full.pop() else { return Err(sheaf) };
        stacks.slots -= full.len();
        let back = if !stacks.closed && stacks.empty.len() < self.max_empty {
            stacks.empty.push(sheaf);
            None
        } else {
            Some(sheaf)
        };
        self.publish(&stacks);
        Ok((full, back))
    }

    /// Takes nothing in from now on; what is there can still be got.
    pub(crate) fn close(&self) {
        self.stacks.lock().closed = true;
    }

    /// Full and empty sheaves, and the slots in them.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let stacks = self.stacks.lock();
        (stacks.full.len(), stacks.empty.len(), stacks.slots)
    }

    /// Whether the stacks have the memory they need, asked for outside the lock when first needed.
    ///
    /// A pool that is never contended by more sheaves than a thread keeps never pays for its barn.
    fn make_room(&self) -> bool {
        if self.stacks.lock().has_room(self) {
            return true;
        }
        let mut new = Stacks::default();
        let full = new.full.try_reserve_exact(self.max_full);
        let empty = new.empty.try_reserve_exact(self.max_empty);
        if full.is_err() || empty.is_err() {
            return false;
        }
        let mut stacks = self.stacks.lock();
        if !stacks.has_room(self) {
            // Nothing was ever put in: putting needs room.
            new.closed = stacks.closed;
            core::mem::swap(&mut *stacks, &mut new);
        }
        drop(stacks);
        true
    }

    fn looks_empty(count: &AtomicUsize) -> bool {
        // Relaxed: a hint; a sheaf that is put in while this looks away is found by the next trade.
        count.load(Ordering::Relaxed) == 0
    }

    fn publish(&self, stacks: &Stacks) {
        // Relaxed: hints for those who look before they lock.
        self.nr_full.store(stacks.full.len(), Ordering::Relaxed);
        // Relaxed: as above.
        self.nr_empty.store(stacks.empty.len(), Ordering::Relaxed);
    }
}

impl Stacks {
    fn has_room(&self, barn: &Barn) -> bool {
        self.full.capacity() >= barn.max_full && self.empty.capacity() >= barn.max_empty
    }
}
