//! Sheaves that are lent out: the engine of prefilled sheaves.
//!
//! A lent sheaf belongs to its borrower alone, so taking from it needs no lock, no system call and no
//! allocator. What makes that hold is done before: it is filled, its slots are made resident, and a *tally*
//! is set aside, a word in which the borrower notes how many slots are left, so that the pool's gauges stay
//! right without the borrower touching anything shared.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use super::limit::Moving;
use super::{Cache, Failure, Handle};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::Counter;
use crate::local::{Held, Mine};
use crate::node::Supply;
use crate::sheaf::Sheaf;
use crate::slab::Slot;
use crate::sync::{Arc, AtomicUsize, Lock, Ordering};

/// Slots left in one lent sheaf. Written by its borrower, read by whoever asks for stats.
type Tally = CachePadded<AtomicUsize>;

/// The tallies of a cache.
#[derive(Debug)]
pub(super) struct Ledger(Lock<Tallies>);

#[derive(Debug)]
struct Tallies {
    all: Vec<Arc<Tally>>,
    /// Those of no lent sheaf; they read 0.
    idle: Vec<Arc<Tally>>,
}

impl Ledger {
    pub(super) const fn new() -> Self {
        Self(Lock::new(Tallies {
            all: Vec::new(),
            idle: Vec::new(),
        }))
    }

    fn take(&self) -> Option<Arc<Tally>> {
        if let Some(tally) = self.0.lock().idle.pop() {
            return Some(tally);
        }
        let new = Arc::new(CachePadded::new(AtomicUsize::new(0)));
        let mut tallies = self.0.lock();
        let wanted = tallies.all.len() + 1;
        tallies.all.try_reserve(1).ok()?;
        // Room for every tally to come back, so that giving back needs no memory.
        let missing = wanted - tallies.idle.len();
        tallies.idle.try_reserve(missing).ok()?;
        tallies.all.push(Arc::clone(&new));
        Some(new)
    }

    fn give_back(&self, tally: Arc<Tally>) {
        // Relaxed: a gauge.
        tally.store(0, Ordering::Relaxed);
        self.0.lock().idle.push(tally);
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

/// A sheaf in the hands of a borrower; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    /// `None` once given back.
    sheaf: Option<Sheaf>,
    tally: Option<Arc<Tally>>,
    handle: Handle,
}

impl Handle {
    /// Lends a sheaf that holds at least `n` slots.
    pub(crate) fn lend(&self, n: usize) -> Result<Lent, Failure> {
        let cache = self.cache();
        let tally = cache.ledger.take().ok_or(AllocErrorKind::OutOfMemory)?;
        // From here on a failure, and a panic of the page source, gives the tally back.
        let mut lent = Lent {
            sheaf: None,
            tally: Some(tally),
            handle: self.clone(),
        };
        let (sheaf, moving) = cache.sheaf_with(n)?;
        lent.sheaf = Some(sheaf);
        lent.note();
        drop(moving);
        Ok(lent)
    }
}

impl Cache {
    /// A sheaf with at least `n` resident slots.
    fn sheaf_with(&self, n: usize) -> Result<(Sheaf, Moving<'_>), Failure> {
        let mine = self.mine();
        let mut moving = self.moving();
        let oversize = n > self.config.sheaf_capacity;
        let sheaf = if oversize || (self.is_limited() && n > 0) {
            self.exact_sheaf(mine.as_ref(), n, oversize, &mut moving)
        } else {
            self.any_sheaf(mine.as_ref(), n, &mut moving)
        };
        let mut sheaf = sheaf.ok_or(AllocErrorKind::OutOfMemory)?;
        if sheaf.len() < n {
            // What is at hand would be in the way of others who look for slots, so it is put back before
            // anything is waited for; then all are taken at once.
            let want = self.want(&sheaf, n, true);
            match self.node.refill(&mut sheaf, want, &mut Supply::default()) {
                Ok(taken) => {
                    self.counters.add(Counter::SheafRefill, taken);
                    moving.take_up(taken);
                }
                Err(_) => {
                    moving.flush(&mut sheaf);
                    drop(moving);
                    match self.take_slots(|supply| self.refill(&mut sheaf, n, true, supply)) {
                        Ok(refilled) => moving = refilled,
                        Err(failure) => {
                            self.put_away_array(Some(sheaf));
                            return Err(failure);
                        }
                    }
                }
            }
        }
        self.node.warm_up(&sheaf, &self.config.geometry);
        Ok((sheaf, moving))
    }

    /// A sheaf with what is at hand of `n` slots and no more: for one that is larger than the pool's sheaves, and
    /// where a limit makes what one borrower does not need another's refusal.
    fn exact_sheaf(
        &self,
        mine: Option<&Mine>,
        n: usize,
        oversize: bool,
        moving: &mut Moving<'_>,
    ) -> Option<Sheaf> {
        let mut sheaf = if oversize {
            self.counters.add(Counter::SheafPrefillOversize, 1);
            self.array_of(n)?
        } else {
            self.counters.add(Counter::SheafPrefillSlow, 1);
            self.barn.get_empty().or_else(|| self.new_array())?
        };
        if let Some(mine) = mine {
            self.gather(mine, n, moving, |slot| {
                let pushed = sheaf.push(slot);
                debug_assert!(pushed.is_ok(), "there is room for n slots");
            });
        }
        Some(sheaf)
    }

    /// The thread's spare, or a sheaf of the barn, or a new one: whichever is nearest.
    fn any_sheaf(&self, mine: Option<&Mine>, n: usize, moving: &mut Moving<'_>) -> Option<Sheaf> {
        if n == 0 {
            return self.array_of(0);
        }
        let nearest = mine
            .and_then(Mine::hold)
            .and_then(|mut held| Self::nearest(&mut held, n));
        let at_hand = if nearest.is_some() {
            self.counters.add(Counter::SheafPrefillFast, 1);
            nearest
        } else {
            self.counters.add(Counter::SheafPrefillSlow, 1);
            let full = self.barn.get_full();
            let event = if full.is_some() {
                Counter::BarnGet
            } else {
                Counter::BarnGetFail
            };
            self.counters.add(event, 1);
            full.or_else(|| self.barn.get_empty())
        };
        moving.take_up(at_hand.as_ref().map_or(0, Sheaf::len));
        at_hand.or_else(|| self.new_array())
    }

    /// The main sheaf if it holds enough, since what was freed last is warmest, else the spare.
    fn nearest(held: &mut Held<'_>, n: usize) -> Option<Sheaf> {
        let spare = held.spare().take();
        if held.len() < n {
            return spare;
        }
        match spare {
            Some(spare) => held.replace_main(spare),
            None => held.take_main(),
        }
    }

    /// Takes a lent sheaf back.
    fn take_back(&self, sheaf: Sheaf, moving: &mut Moving<'_>, mine: Option<&Mine>) {
        moving.take_up(sheaf.len());
        let excess = match mine.and_then(Mine::hold) {
            Some(mut held) if self.is_standard(&sheaf) && !held.is_closed() => {
                match held.spare().take() {
                    // Borrowed and given back in turn, the same warm slots go round.
                    None if !sheaf.is_empty() && held.len() < sheaf.len() => {
                        *held.spare() = held.replace_main(sheaf);
                        None
                    }
                    None => {
                        *held.spare() = Some(sheaf);
                        None
                    }
                    Some(spare) => {
                        let (mut keep, mut rest) = (spare, sheaf);
                        keep.take_from(&mut rest);
                        *held.spare() = Some(keep);
                        Some(rest)
                    }
                }
            }
            _ => Some(sheaf),
        };
        let event = if excess.is_none() {
            Counter::SheafReturnFast
        } else {
            Counter::SheafReturnSlow
        };
        self.counters.add(event, 1);
        self.put_away(excess, moving);
    }

    /// Replaces a sheaf by one with room for `n` slots, which takes over what it held.
    fn widen(&self, sheaf: &mut Sheaf, n: usize) -> Result<(), Failure> {
        let mut wider = self
            .array_of(n.max(self.config.sheaf_capacity))
            .ok_or(AllocErrorKind::OutOfMemory)?;
        wider.take_from(sheaf);
        core::mem::swap(sheaf, &mut wider);
        self.put_away_array(Some(wider));
        Ok(())
    }
}

impl Lent {
    /// Takes a slot: no lock, no system call, no allocator.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        let slot = self.sheaf.as_mut()?.pop()?;
        self.note();
        Some(slot)
    }

    /// Puts a slot in; gives it back if the sheaf is full. As cheap as taking one.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot) -> Result<(), Slot> {
        match &mut self.sheaf {
            Some(sheaf) => sheaf.push(slot)?,
            None => return Err(slot),
        }
        self.note();
        Ok(())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.sheaf.as_ref().map_or(0, Sheaf::len)
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.sheaf.as_ref().map_or(0, Sheaf::capacity)
    }

    #[inline]
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sees to it that the sheaf holds `n` slots at least. After a failure it holds what it had.
    pub(crate) fn refill(&mut self, n: usize) -> Result<(), Failure> {
        let cache = self.handle.cache();
        let Some(sheaf) = self.sheaf.as_mut().filter(|sheaf| sheaf.len() < n) else {
            return Ok(());
        };
        if n > sheaf.capacity() {
            cache.widen(sheaf, n)?;
        }
        let moving = cache.take_slots(|supply| cache.refill(sheaf, n, true, supply))?;
        cache.node.warm_up(sheaf, &cache.config.geometry);
        self.note();
        drop(moving);
        Ok(())
    }

    /// Notes how many slots are left.
    #[inline]
    fn note(&self) {
        if let Some(tally) = &self.tally {
            // Relaxed: a gauge, with one writer.
            tally.store(self.len(), Ordering::Relaxed);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let cache = self.handle.cache();
        let mine = cache.mine();
        let mut moving = cache.moving();
        // Before the slots are anywhere else: a child that is forked in between would count them twice for ever.
        if let Some(tally) = self.tally.take() {
            cache.ledger.give_back(tally);
        }
        if let Some(sheaf) = self.sheaf.take() {
            cache.take_back(sheaf, &mut moving, mine.as_ref());
        }
    }
}
