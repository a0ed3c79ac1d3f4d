//! One slot, when the thread's main sheaf has none.
#![forbid(unsafe_code)]

use super::limit::Moving;
use super::{Cache, Failure, own};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::{Counter, OwnCounter};
use crate::local::{self, Held, Mine, SizeKey};
use crate::node::{Shortage, Supply, Want};
use crate::sheaf::Sheaf;
use crate::slab::Slot;

impl Cache {
    /// Allocates one slot; for when the fast path found none.
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_cold(&self, key: SizeKey) -> Result<Slot, Failure> {
        if let Some(slot) = own::pop_listed(key, self.id, self.mode) {
            return Ok(slot);
        }
        let mine = if self.tightness.is_unusual() {
            self.mine_unusually()?
        } else {
            self.mine()
        };
        let Some(mine) = mine else {
            self.counters.add(Counter::AllocSlowpath, 1);
            // A debugged pool keeps no sheaves.
            return match &self.debug {
                Some(debug) => self.alloc_checked(debug),
                None => self.alloc_from_slab(),
            };
        };
        mine.count(OwnCounter::AllocSlowpath, 1);
        let mut excess = None;
        let slot_or_array = {
            let Some(mut held) = mine.hold() else {
                return self.alloc_from_slab();
            };
            if held.is_closed() {
                drop(held);
                return self.alloc_from_slab();
            }
            self.pop_or_trade(&mut held, &mut excess)
                .ok_or_else(|| held.spare().take())
        };
        match slot_or_array {
            Ok(slot) => {
                self.put_away_array(excess);
                Ok(slot)
            }
            Err(array) => self.alloc_by_refill(&mine, array),
        }
    }

    /// The running thread's local for an allocation in a pool that has a fault, or is searched for slots. `None` also
    /// where nothing may be parked.
    #[cold]
    #[inline(never)]
    fn mine_unusually(&self) -> Result<Option<Mine>, Failure> {
        self.ask()?;
        Ok(if self.tightness.parks_nothing() {
            None
        } else {
            self.mine()
        })
    }

    /// Fills a sheaf from slabs and takes the first slot of it.
    fn alloc_by_refill(&self, mine: &Mine, array: Option<Sheaf>) -> Result<Slot, Failure> {
        let array = array
            .or_else(|| self.barn().get_empty())
            .or_else(|| self.new_array().ok());
        // No memory for an array does not mean none for an object.
        let Some(mut sheaf) = array else {
            return self.alloc_from_slab();
        };
        match self.take_slots(|supply| self.refill(&mut sheaf, 1, false, supply)) {
            Ok(mut moving) => {
                let slot = sheaf.pop();
                self.install(mine, sheaf, &mut moving);
                slot.ok_or(AllocErrorKind::OutOfMemory)
            }
            Err(failure) => {
                self.put_away_array(Some(sheaf));
                Err(failure)
            }
        }
    }

    /// Takes slots from slabs until a sheaf holds `n`, and more up to its capacity. Whoever gets the
    /// [`Moving`] has them in hand.
    pub(super) fn refill<'a>(
        &'a self,
        sheaf: &mut Sheaf,
        n: usize,
        borrowed: bool,
        supply: &mut Supply,
    ) -> Result<Moving<'a>, Shortage> {
        let mut moving = self.moving();
        let want = self.want(sheaf, n, borrowed);
        let taken = self.nodes.refill(sheaf, want, supply)?;
        self.counters.add(Counter::SheafRefill, taken);
        moving.take_up(taken);
        Ok(moving)
    }

    /// What is missing until a sheaf holds `n` slots, and what it may take besides.
    ///
    /// In a pool with a limit a borrower takes no more than it needs: nobody finds what is left over in its hands.
    pub(super) fn want(&self, sheaf: &Sheaf, n: usize, borrowed: bool) -> Want {
        let min = n.saturating_sub(sheaf.len());
        let exact = borrowed && (self.is_limited() || self.injector.is_exact());
        let max = if exact { min } else { sheaf.room() };
        Want { min, max }
    }

    /// Allocates one slot from what is at hand: the thread's sheaves, then the barn and the slabs if nobody
    /// holds their locks. Never calls the page source.
    pub(crate) fn alloc_now(&self) -> Result<Slot, Failure> {
        self.ask()?;
        if let Some(debug) = &self.debug {
            return self.alloc_now_checked(debug);
        }
        let mine = local::find(self.id);
        let at_hand = mine.as_ref().and_then(Mine::try_hold).and_then(|mut held| {
            if held.is_closed() {
                return None;
            }
            held.pop().or_else(|| self.swap_now(&mut held))
        });
        at_hand
            .or_else(|| self.nodes.try_take())
            .ok_or(AllocErrorKind::WouldBlock)
    }

    /// Takes a slot from `spare`, which becomes the main sheaf, or from a full sheaf of the barn.
    fn swap_now(&self, held: &mut Held<'_>) -> Option<Slot> {
        if held.spare().as_ref().is_some_and(|spare| !spare.is_empty()) {
            held.swap();
        } else {
            let mut full = self.barn().try_get_full()?;
            // Its array would be one too many; its slots fit into the spare or stay in its place.
            *held.spare() = match held.spare().take() {
                Some(mut spare) => {
                    spare.take_from(&mut full);
                    self.counters.add(Counter::SheafFree, 1);
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
            Some(empty) => match self.barn().exchange_empty(empty) {
                Ok((full, back)) => {
                    *excess = back;
                    Some(full)
                }
                Err(empty) => {
                    *held.spare() = Some(empty);
                    None
                }
            },
            None => self.barn().get_full(),
        };
        let Some(full) = full else {
            self.counters.add(Counter::BarnGetFail, 1);
            return None;
        };
        held.count(OwnCounter::BarnGet, 1);
        *held.spare() = held.replace_main(full);
        held.pop()
    }

    /// Gives a filled sheaf to the running thread, or to the barn if the thread has one by now.
    fn install(&self, mine: &Mine, sheaf: Sheaf, moving: &mut Moving<'_>) {
        let excess = match mine.hold() {
            Some(mut held) if !held.is_closed() => Self::install_held(&mut held, sheaf),
            _ => Some(sheaf),
        };
        self.put_away(excess, moving);
    }

    fn install_held(held: &mut Held<'_>, sheaf: Sheaf) -> Option<Sheaf> {
        // The page source ran in between: it may have used this very pool, and filled or emptied anything.
        if held.len() == 0 && !sheaf.is_empty() {
            let old = held.replace_main(sheaf)?;
            return if held.spare().is_none() {
                held.spare().replace(old)
            } else {
                Some(old)
            };
        }
        match held.spare() {
            Some(spare) if !spare.is_empty() || sheaf.is_empty() => Some(sheaf),
            spare => spare.replace(sheaf),
        }
    }

    /// Finds a place for a sheaf that no thread wants: the barn, else its slots go to slabs and its array
    /// is freed.
    pub(super) fn put_away(&self, sheaf: Option<Sheaf>, moving: &mut Moving<'_>) {
        let Some(mut sheaf) = sheaf else { return };
        moving.send_home(&mut sheaf);
        // Less than half full it would send the next thread back too soon.
        if sheaf.len() * 2 > sheaf.capacity() && self.is_standard(&sheaf) {
            sheaf = match self.barn().put_full(sheaf) {
                Ok(()) => return self.counters.add(Counter::BarnPut, 1),
                Err(sheaf) => sheaf,
            };
            self.counters.add(Counter::BarnPutFail, 1);
        }
        moving.flush(&mut sheaf);
        self.put_away_array(Some(sheaf));
    }

    /// Keeps an empty sheaf in the barn, or frees its array.
    pub(super) fn put_away_array(&self, sheaf: Option<Sheaf>) {
        let Some(sheaf) = sheaf else { return };
        let left = if self.is_standard(&sheaf) {
            self.barn().put_empty(sheaf).err()
        } else {
            Some(sheaf)
        };
        if left.is_some() {
            self.counters.add(Counter::SheafFree, 1);
        }
    }

    /// Whether a sheaf has the pool's capacity, so that it may circulate.
    pub(super) fn is_standard(&self, sheaf: &Sheaf) -> bool {
        sheaf.capacity() == self.config.sheaf_capacity && sheaf.capacity() > 0
    }

    /// A new array of the pool's capacity.
    pub(super) fn new_array(&self) -> Result<Sheaf, Failure> {
        self.array_of(self.config.sheaf_capacity)
    }

    /// A new array for `capacity` slots.
    pub(super) fn array_of(&self, capacity: usize) -> Result<Sheaf, Failure> {
        self.ask()?;
        let sheaf = Sheaf::try_new(capacity).ok_or(AllocErrorKind::OutOfMemory)?;
        self.counters.add(Counter::SheafAlloc, 1);
        Ok(sheaf)
    }

    /// Takes one slot from a slab, past sheaves and barn.
    pub(super) fn alloc_from_slab(&self) -> Result<Slot, Failure> {
        let mut slot = None;
        self.take_slots(|supply| self.nodes.take(1, supply, |taken| slot = Some(taken)))?;
        slot.ok_or(AllocErrorKind::OutOfMemory)
    }
}
