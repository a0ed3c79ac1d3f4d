//! Sheaves that are lent out: the engine of prefilled sheaves.
//!
//! A lent sheaf belongs to its borrower alone, so taking from it needs no lock, no system call and no
//! allocator. What makes that hold is done before: it is filled, its slots are made resident, and it gets a
//! *tally*, a word in which the borrower notes how many slots are left, so that the pool's gauges stay right
//! without the borrower touching anything shared. A sheaf keeps its tally, so to lend it again takes no more than to
//! take it off its shelf.
#![forbid(unsafe_code)]

use core::mem;

use super::limit::Moving;
use super::{Cache, Failure, Handle, Lent};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::{Counter, OwnCounter};
use crate::local::{self, Held, Mine};
use crate::sheaf::Sheaf;

impl Handle {
    /// Lends a sheaf that holds at least `n` slots.
    #[inline]
    pub(crate) fn lend(&self, n: usize) -> Result<Lent, Failure> {
        match self.lend_near(n) {
            Some(lent) => Ok(lent),
            None => self.lend_any(n),
        }
    }

    /// Lends a sheaf of the running thread, if one holds enough and the pool has nothing to be asked about first: under
    /// one lock, which nobody else wants as a rule.
    #[inline(always)]
    fn lend_near(&self, n: usize) -> Option<Lent> {
        let cache = self.cache();
        let plain = !cache.is_limited() && !cache.tightness.is_unusual();
        if n == 0 || !plain || cache.injector.is_exact() {
            return None;
        }
        let mine = local::find(self.id())?;
        let mut held = mine.hold()?;
        let spare = held.spare().as_ref();
        if spare.map_or(0, Sheaf::len).max(held.len()) < n {
            return None;
        }
        let mut sheaf = Cache::nearest(&mut held, n)?;
        drop(held);
        if !cache.ledger.enlist(&mut sheaf) {
            cache.return_any(sheaf);
            return None;
        }
        mine.count(OwnCounter::SheafPrefillFast, 1);
        cache.nodes.warm_up(&mut sheaf, &cache.config.geometry);
        sheaf.tell(sheaf.len());
        Some(Lent {
            sheaf,
            handle: self.clone(),
            zero_on_free: cache.config.zero_on_free,
            checked: Vec::new(),
        })
    }

    #[cold]
    #[inline(never)]
    fn lend_any(&self, n: usize) -> Result<Lent, Failure> {
        let cache = self.cache();
        cache.ask()?;
        let (sheaf, moving) = cache.sheaf_with(n)?;
        sheaf.tell(sheaf.len());
        drop(moving);
        let mut lent = Lent {
            sheaf,
            handle: self.clone(),
            zero_on_free: cache.config.zero_on_free,
            checked: Vec::new(),
        };
        if cache.debug.is_some() {
            let room = lent.checked.try_reserve_exact(1);
            room.map_err(|_| AllocErrorKind::OutOfMemory)?;
            lent.checked.push(mem::take(&mut lent.sheaf));
        }
        Ok(lent)
    }
}

impl Cache {
    /// Takes a lent sheaf back as one of the running thread's, if that has a place for it.
    #[inline]
    pub(super) fn return_near(&self, sheaf: Sheaf) -> Result<(), Sheaf> {
        if self.is_limited() || !self.is_standard(&sheaf) {
            return Err(sheaf);
        }
        let Some(mine) = local::find(self.id) else {
            return Err(sheaf);
        };
        match mine.hold() {
            Some(mut held) if !held.is_closed() => {
                // Before the slots are anywhere else: a child that is forked in between would count them twice for
                // ever.
                sheaf.tell(0);
                held.put_sheaf(sheaf)?;
                mine.count(OwnCounter::SheafReturnFast, 1);
                Ok(())
            }
            _ => Err(sheaf),
        }
    }

    /// A sheaf with at least `n` resident slots.
    fn sheaf_with(&self, n: usize) -> Result<(Sheaf, Moving<'_>), Failure> {
        let mine = self.mine();
        let mut moving = self.moving();
        let oversize = n > self.config.sheaf_capacity;
        let exact = self.is_limited() || self.injector.is_exact();
        let mut sheaf = if oversize || (exact && n > 0) {
            self.exact_sheaf(mine.as_ref(), n, oversize, &mut moving)?
        } else {
            self.any_sheaf(mine.as_ref(), n, &mut moving)?
        };
        if !self.ledger.enlist(&mut sheaf) {
            self.put_away(Some(sheaf), &mut moving);
            return Err(AllocErrorKind::OutOfMemory);
        }
        if sheaf.len() < n {
            // What is at hand would be in the way of others who look for slots, so it is put back before
            // anything is waited for; then all are taken at once.
            let want = self.want(&sheaf, n, true);
            match self
                .nodes
                .refill(&mut sheaf, want, &mut self.nodes.supply())
            {
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
        self.nodes.warm_up(&mut sheaf, &self.config.geometry);
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
    ) -> Result<Sheaf, Failure> {
        let mut sheaf = if oversize {
            self.counters.add(Counter::SheafPrefillOversize, 1);
            self.array_of(n)?
        } else {
            self.counters.add(Counter::SheafPrefillSlow, 1);
            match self.barn().get_empty() {
                Some(empty) => empty,
                None => self.new_array()?,
            }
        };
        if let Some(mine) = mine {
            self.gather(mine, n, moving, |slot| {
                let pushed = sheaf.push(slot);
                debug_assert!(pushed.is_ok(), "there is room for n slots");
            });
        }
        Ok(sheaf)
    }

    /// The thread's spare, or a sheaf of the barn, or a new one: whichever is nearest.
    fn any_sheaf(
        &self,
        mine: Option<&Mine>,
        n: usize,
        moving: &mut Moving<'_>,
    ) -> Result<Sheaf, Failure> {
        if n == 0 {
            return self.array_of(0);
        }
        let nearest = mine
            .and_then(Mine::hold)
            .and_then(|mut held| Self::nearest(&mut held, n));
        let at_hand = if nearest.is_some() {
            if let Some(mine) = mine {
                mine.count(OwnCounter::SheafPrefillFast, 1);
            }
            nearest
        } else {
            self.counters.add(Counter::SheafPrefillSlow, 1);
            let full = self.barn().get_full();
            let event = if full.is_some() {
                Counter::BarnGet
            } else {
                Counter::BarnGetFail
            };
            self.counters.add(event, 1);
            full.or_else(|| self.barn().get_empty())
        };
        moving.take_up(at_hand.as_ref().map_or(0, Sheaf::len));
        at_hand.map_or_else(|| self.new_array(), Ok)
    }

    /// The spare, but the main sheaf if only that holds enough.
    #[inline(always)]
    fn nearest(held: &mut Held<'_>, n: usize) -> Option<Sheaf> {
        let spare = held.spare().take();
        if held.len() < n || spare.as_ref().is_some_and(|spare| spare.len() >= n) {
            return spare;
        }
        match spare {
            Some(spare) => held.replace_main(spare),
            None => held.take_main(),
        }
    }

    #[cold]
    pub(super) fn return_any(&self, sheaf: Sheaf) {
        let mine = self.mine();
        let mut moving = self.moving();
        // As in `return_near`.
        sheaf.tell(0);
        self.take_back(sheaf, &mut moving, mine.as_ref());
    }

    /// Takes a lent sheaf back.
    fn take_back(&self, sheaf: Sheaf, moving: &mut Moving<'_>, mine: Option<&Mine>) {
        moving.take_up(sheaf.len());
        let excess = match mine.and_then(Mine::hold) {
            Some(mut held) if self.is_standard(&sheaf) && !held.is_closed() => {
                let mut left = held.put_sheaf(sheaf).err();
                if let (Some(rest), Some(keep)) = (&mut left, held.spare()) {
                    keep.take_from(rest);
                }
                left
            }
            _ => Some(sheaf),
        };
        match mine {
            Some(mine) if excess.is_none() => mine.count(OwnCounter::SheafReturnFast, 1),
            _ => self.counters.add(Counter::SheafReturnSlow, 1),
        }
        self.put_away(excess, moving);
    }

    /// Replaces a sheaf by one with room for `n` slots, which takes over what it held.
    pub(super) fn widen(&self, sheaf: &mut Sheaf, n: usize) -> Result<(), Failure> {
        let mut wider = self.array_of(n.max(self.config.sheaf_capacity))?;
        if !self.ledger.enlist(&mut wider) {
            self.put_away_array(Some(wider));
            return Err(AllocErrorKind::OutOfMemory);
        }
        sheaf.tell(0);
        wider.take_from(sheaf);
        wider.tell(wider.len());
        mem::swap(sheaf, &mut wider);
        self.put_away_array(Some(wider));
        Ok(())
    }
}
