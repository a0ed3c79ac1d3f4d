//! Many slots at once.
//!
//! A bulk allocation drains `main`, `spare` and the barn's full sheaves, then takes the rest straight from
//! slabs: filling sheaves first would copy every pointer twice. It is all or nothing. A bulk free fills
//! `main`, `spare` and the barn, and only what is left, and what belongs to other nodes, goes to slabs, in one hold of
//! each node's lock.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use super::free::Need;
use super::limit::Moving;
use super::{Cache, Failure};
use crate::hook::counter::Counter;
use crate::local::{Held, Mine};
use crate::slab::Slot;

/// Slots that a bulk free collects before it takes the thread's lock: the kernel's number, large enough to
/// spread the cost of a lock, small enough for the stack.
pub(crate) const BATCH: usize = if cfg!(sheaves_small) { 4 } else { 32 };

/// Slots on their way into the pool.
pub(crate) type Batch = ArrayVec<Slot, BATCH>;

/// Where a bulk allocation puts its slots.
pub(crate) trait Sink {
    fn put(&mut self, slot: Slot);
    /// Gives back the slot that was put in last.
    fn take_back(&mut self) -> Option<Slot>;
}

impl Cache {
    /// Allocates `n` slots into `sink`, or none.
    pub(crate) fn alloc_bulk(&self, n: usize, sink: &mut impl Sink) -> Result<(), Failure> {
        if n == 0 {
            return Ok(());
        }
        self.ask()?;
        if let Some(debug) = &self.debug {
            self.counters.add(Counter::AllocSlowpath, n);
            return self.alloc_bulk_checked(debug, n, sink);
        }
        let mine = self.mine();
        let mut moving = self.moving();
        let got = mine.as_ref().map_or(0, |mine| {
            self.gather(mine, n, &mut moving, |slot| sink.put(slot))
        });
        if got == n {
            return Ok(());
        }
        if self
            .nodes
            .take(n - got, &mut self.nodes.supply(), |slot| sink.put(slot))
            .is_ok()
        {
            self.counters.add(Counter::AllocSlowpath, n - got);
            return Ok(());
        }
        // What is at hand would be in the way of others who look for slots, and of this thread itself.
        moving.put_home(core::iter::from_fn(|| sink.take_back()).take(got));
        drop(moving);
        self.take_slots(|supply| self.nodes.take(n, supply, |slot| sink.put(slot)))?;
        self.counters.add(Counter::AllocSlowpath, n);
        Ok(())
    }

    /// Takes up to `n` slots from the thread's sheaves and the barn's full ones.
    pub(super) fn gather(
        &self,
        mine: &Mine,
        n: usize,
        moving: &mut Moving<'_>,
        mut sink: impl FnMut(Slot),
    ) -> usize {
        let mut got = 0;
        while got < n {
            let mut excess = None;
            let Some(mut held) = mine.hold() else { break };
            if held.is_closed() {
                break;
            }
            let Some(slot) = self.pop_or_trade(&mut held, &mut excess) else {
                break;
            };
            sink(slot);
            got += 1;
            got += held.pop_many(n - got, &mut sink);
            drop(held);
            self.put_away_array(excess);
        }
        moving.take_up(got);
        got
    }

    /// Frees every slot of a batch. The caller keeps the cache alive.
    pub(crate) fn free_bulk(&self, batch: &mut Batch) {
        if let Some(debug) = &self.debug {
            self.counters.add(Counter::FreeSlowpath, batch.len());
            return self.free_bulk_checked(debug, batch);
        }
        batch.iter().for_each(|slot| self.clear(slot));
        let mine = self.mine();
        let mut moving = self.moving();
        moving.send_home_of(batch);
        if let Some(mine) = mine {
            while let Some(slot) = mine
                .hold()
                .and_then(|mut held| self.scatter(&mut held, batch))
            {
                let Ok(array) = self.new_array() else {
                    batch.push(slot);
                    break;
                };
                self.push_with_array(&mine, array, slot, &mut moving);
            }
        }
        if !batch.is_empty() {
            self.counters.add(Counter::FreeSlowpath, batch.len());
            moving.put_home(batch.drain(..));
        }
    }

    /// Puts slots into the thread's sheaves, trading full ones at the barn, until the batch is empty, or
    /// everything is full, or an array is needed for the slot that comes back.
    fn scatter(&self, held: &mut Held<'_>, batch: &mut Batch) -> Option<Slot> {
        if held.is_closed() {
            return None;
        }
        loop {
            held.push_many(&mut core::iter::from_fn(|| batch.pop()));
            let slot = batch.pop()?;
            match self.push_or_trade(held, slot) {
                Ok(()) => {}
                Err(Need::Array(slot)) => return Some(slot),
                Err(Need::Flush(spare, slot)) => {
                    // The rest of the batch goes to slabs, the thread keeps its own.
                    *held.spare() = Some(spare);
                    batch.push(slot);
                    return None;
                }
            }
        }
    }
}
