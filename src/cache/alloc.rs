//! One slot, when the thread's main sheaf has none.
#![forbid(unsafe_code)]

use super::{Cache, Failure, own};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::Counter;
use crate::local::{self, Held, Mine};
use crate::node::Shortage;
use crate::sheaf::Sheaf;
use crate::slab::Slot;

impl Cache {
    /// Allocates one slot; for when the fast path found none.
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_cold(&self) -> Result<Slot, Failure> {
        if self.mode.is_fence() {
            if let Some(slot) = own::pop_fenced(self.id) {
                return Ok(slot);
            }
        }
        self.counters.add(Counter::AllocSlowpath, 1);
        let Some(mine) = self.mine() else { return self.alloc_from_slab() };
        let mut excess = None;
        let array = {
            let Some(mut held) = mine.hold() else { return self.alloc_from_slab() };
            if held.is_dead() {
                return self.alloc_from_slab();
            }
            if let Some(slot) = self.pop_or_trade(&mut held, &mut excess) {
                drop(held);
                self.put_away(excess);
                return Ok(slot);
            }
            held.spare().take()
        };
        let array = array.or_else(|| self.barn.get_empty()).or_else(|| self.new_array());
        // No memory for an array does not mean none for an object.
        let Some(mut sheaf) = array else { return self.alloc_from_slab() };
        let filled = self.fill(&mut sheaf, 1);
        let slot = sheaf.pop();
        self.install(&mine, sheaf);
        slot.ok_or(filled.err().unwrap_or(AllocErrorKind::OutOfMemory))
    }

    /// Allocates one slot from what is at hand: the thread's sheaves, then the barn and the slabs if nobody
    /// holds their locks. Never calls the page source.
    pub(crate) fn alloc_now(&self) -> Result<Slot, Failure> {
        let mine = local::find(self.id);
        let at_hand = mine.as_ref().and_then(Mine::try_hold).and_then(|mut held| {
            if held.is_dead() {
                return None;
            }
            held.pop().or_else(|| self.swap_now(&mut held))
        });
        at_hand.or_else(|| self.node.try_take()).ok_or(AllocErrorKind::WouldBlock)
    }

    /// Takes a slot from `spare`, which becomes the main sheaf, or from a full sheaf of the barn.
    fn swap_now(&self, held: &mut Held<'_>) -> Option<Slot> {
        if held.spare().as_ref().is_some_and(|spare| !spare.is_empty()) {
            held.swap();
        } else {
            let mut full = self.barn.try_get_full()?;
            // Its array would be one too many; its slots fit into the spare or stay in its place.
            *held.spare() = match held.spare().take() {
                Some(mut spare) => {
                    spare.take_from(&mut full);
                    Some(spare)
                }
                None => Some(full),
            };
            held.swap();
        }
        held.pop()
    }

    /// Takes a slot from `main`, from `spare`, or from a full sheaf of the barn.
    pub(super) fn pop_or_trade(
        &self,
        held: &mut Held<'_>,
        excess: &mut Option<Sheaf>,
    ) -> Option<Slot> {
        // The gate may have been shut: there may be slots yet.
        if let Some(slot) = held.pop() {
            return Some(slot);
        }
        if held.spare().as_ref().is_some_and(|spare| !spare.is_empty()) {
            held.swap();
            return held.pop();
        }
        let full = match held.spare().take() {
            Some(empty) => match self.barn.exchange_empty(empty) {
                Ok((full, back)) => {
                    *excess = back;
                    Some(full)
                }
                Err(empty) => {
                    *held.spare() = Some(empty);
                    None
                }
            },
            None => self.barn.get_full(),
        };
        let Some(full) = full else {
            self.counters.add(Counter::BarnGetFail, 1);
            return None;
        };
        self.counters.add(Counter::BarnGet, 1);
        *held.spare() = held.replace_main(full);
        held.pop()
    }

    /// Gives a filled sheaf to the running thread, or to the barn if the thread has one by now.
    pub(super) fn install(&self, mine: &Mine, sheaf: Sheaf) {
        let excess = match mine.hold() {
            Some(mut held) if !held.is_dead() => Self::install_held(&mut held, sheaf),
            _ => Some(sheaf),
        };
        self.put_away(excess);
    }

    fn install_held(held: &mut Held<'_>, sheaf: Sheaf) -> Option<Sheaf> {
        // The page source ran in between: it may have used this very pool, and filled or emptied anything.
        if held.len() == 0 && !sheaf.is_empty() {
            let old = held.replace_main(sheaf)?;
            return if held.spare().is_none() { held.spare().replace(old) } else { Some(old) };
        }
        match held.spare() {
            Some(spare) if !spare.is_empty() || sheaf.is_empty() => Some(sheaf),
            spare => spare.replace(sheaf),
        }
    }

    /// Finds a place for a sheaf that no thread wants: the barn, else its slots go to slabs and its array
    /// is freed.
    pub(super) fn put_away(&self, sheaf: Option<Sheaf>) {
        let Some(mut sheaf) = sheaf else { return };
        // Less than half full it would send the next thread back too soon.
        if sheaf.len() * 2 > sheaf.capacity() && sheaf.capacity() == self.config.sheaf_capacity {
            sheaf = match self.barn.put_full(sheaf) {
                Ok(()) => return self.counters.add(Counter::BarnPut, 1),
                Err(sheaf) => sheaf,
            };
            self.counters.add(Counter::BarnPutFail, 1);
        }
        self.flush(&mut sheaf);
        self.put_away_array(sheaf);
    }

    /// Keeps an empty sheaf in the barn, or frees its array.
    pub(super) fn put_away_array(&self, sheaf: Sheaf) {
        let spare = if sheaf.capacity() == self.config.sheaf_capacity {
            self.barn.put_empty(sheaf).err()
        } else {
            Some(sheaf)
        };
        if spare.is_some() {
            self.counters.add(Counter::SheafFree, 1);
        }
    }

    /// A new array of the pool's capacity.
    pub(super) fn new_array(&self) -> Option<Sheaf> {
        let sheaf = Sheaf::try_new(self.config.sheaf_capacity)?;
        self.counters.add(Counter::SheafAlloc, 1);
        Some(sheaf)
    }

    /// Fills a sheaf from slabs, to its capacity if that can be had; fails if it then holds fewer than
    /// `min`, and keeps what it got.
    pub(super) fn fill(&self, sheaf: &mut Sheaf, min: usize) -> Result<(), Failure> {
        while !sheaf.is_full() {
            let failure = match self.node.refill(sheaf, sheaf.room()) {
                Ok(n) => {
                    self.counters.add(Counter::SheafRefill, n);
                    continue;
                }
                Err(shortage) if sheaf.len() < min => self.relieve(shortage).err(),
                // Worth a new slab, but no search through other threads' sheaves.
                Err(Shortage::Slabs) => self.relieve(Shortage::Slabs).err(),
                Err(Shortage::Limit) => return Ok(()),
            };
            match failure {
                Some(_) if sheaf.len() >= min => return Ok(()),
                Some(failure) => return Err(failure),
                None => {}
            }
        }
        Ok(())
    }

    /// Takes one slot from a slab, past sheaves and barn.
    pub(super) fn alloc_from_slab(&self) -> Result<Slot, Failure> {
        let mut slot = None;
        while slot.is_none() {
            if let Err(shortage) = self.node.take(1, |taken| slot = Some(taken)) {
                self.relieve(shortage)?;
            }
        }
        slot.ok_or(AllocErrorKind::OutOfMemory)
    }

    /// Does something about a shortage of slots; an error if nothing helps.
    pub(super) fn relieve(&self, shortage: Shortage) -> Result<(), Failure> {
        match shortage {
            Shortage::Slabs if self.node.grow(&self.config, &self.counters) => Ok(()),
            Shortage::Slabs => Err(AllocErrorKind::OutOfMemory),
            Shortage::Limit if self.search() => Ok(()),
            Shortage::Limit => Err(AllocErrorKind::LimitReached),
        }
    }
}
