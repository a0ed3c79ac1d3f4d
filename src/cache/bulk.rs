//! Many slots at once.
//!
//! A bulk allocation drains `main`, `spare` and the barn's full sheaves, then takes the rest straight from
//! slabs: filling sheaves first would copy every pointer twice. A bulk free fills `main`, `spare` and the
//! barn, and only what is left goes to slabs, in one hold of the node's lock.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use super::free::Need;
use super::{Cache, Failure};
use crate::hook::counter::Counter;
use crate::local::Held;
use crate::slab::Slot;

/// Slots that a bulk free collects before it takes the thread's lock: the kernel's number, large enough to
/// spread the cost of a lock, small enough for the stack.
pub(crate) const BATCH: usize = 32;

/// Slots on their way into the pool.
pub(crate) type Batch = ArrayVec<Slot, BATCH>;

impl Cache {
    /// Allocates `n` slots and hands them to `sink`. On failure `sink` may have got some: they are its
    /// owner's to free.
    pub(crate) fn alloc_bulk(&self, n: usize, mut sink: impl FnMut(Slot)) -> Result<(), Failure> {
        let mut got = self.gather(n, &mut sink);
        while got < n {
            match self.node.take(n - got, &mut sink) {
                Ok(taken) => {
                    self.counters.add(Counter::AllocSlowpath, taken);
                    got += taken;
                }
                Err(shortage) => self.relieve(shortage)?,
            }
        }
        Ok(())
    }

    /// Takes up to `n` slots from the thread's sheaves and the barn's full ones.
    pub(super) fn gather(&self, n: usize, mut sink: impl FnMut(Slot)) -> usize {
        let Some(mine) = self.mine() else { return 0 };
        let mut got = 0;
        while got < n {
            let mut excess = None;
            let Some(mut held) = mine.hold() else { break };
            if held.is_dead() {
                break;
            }
            let Some(slot) = self.pop_or_trade(&mut held, &mut excess) else { break };
            sink(slot);
            got += 1;
            while got < n {
                let Some(slot) = held.pop() else { break };
                sink(slot);
                got += 1;
            }
            drop(held);
            self.put_away(excess);
        }
        got
    }

    /// Frees every slot of a batch. The caller keeps the cache alive.
    pub(crate) fn free_bulk(&self, batch: &mut Batch) {
        batch.iter().for_each(|slot| self.clear(slot));
        if let Some(mine) = self.mine() {
            while let Some(need) = mine.hold().and_then(|mut held| self.scatter(&mut held, batch)) {
                let Need::Array(slot) = need else { break };
                match self.new_array() {
                    Some(array) => self.push_with_array(&mine, array, slot),
                    None => {
                        batch.push(slot);
                        break;
                    }
                }
            }
        }
        if !batch.is_empty() {
            self.counters.add(Counter::FreeSlowpath, batch.len());
            self.to_slabs(batch.drain(..));
        }
    }

    /// Puts slots into the thread's sheaves, trading full ones at the barn, until the batch is empty or
    /// something is needed.
    fn scatter(&self, held: &mut Held<'_>, batch: &mut Batch) -> Option<Need> {
        if held.is_dead() {
            return None;
        }
        while let Some(slot) = batch.pop() {
            match self.push_or_trade(held, slot) {
                Ok(()) => {}
                Err(Need::Array(slot)) => return Some(Need::Array(slot)),
                Err(Need::Flush(spare, slot)) => {
                    // Everything is full: the rest of the batch goes to slabs, the thread keeps its own.
                    *held.spare() = Some(spare);
                    batch.push(slot);
                    return None;
                }
            }
        }
        None
    }
}
