//! Deferred free: objects that are retired, until they are handed in.
//!
//! A thread collects what it retires in the rcu sheaf of its local ([`local::rcu`](crate::local)), and hands it in when
//! it is full: into the cache's [`Queue`], stamped with the grace period that begins next. Threads without a local share
//! a sheaf in the queue. Where no array can be had for a new sheaf, the thread's spare is emptied for it; where there is
//! no spare either, or the queue cannot grow, the slot is marked in its page ([`SlabSet::mark_retired`]).
//! So retiring never fails. What happens after the grace period is told in [`reap`].
//!
//! A sheaf is taken from a thread and handed in under one hold of a lock that every barrier takes too: the side's or that
//! of the list of locals. So whoever looks for retired objects finds them here or there.
//!
//! Locks: the list of locals, then a side, then the node, then the queue.
//!
//! [`SlabSet::mark_retired`]: crate::slab::SlabSet
#![forbid(unsafe_code)]

mod queue;
mod reap;

pub(super) use reap::Sizes;

use core::time::Duration;

use super::Cache;
use crate::grace::{self, Remains, Retired, TICKETS, Ticket};
use crate::hook::counter::Counter;
use crate::local::{self, Harvest, HeldSide, Mine};
use crate::node::Drained;
use crate::sheaf::Sheaf;
use crate::slab::{Destructor, Slot};
pub(super) use queue::Queue;

/// Slots of the shared sheaf of a pool whose threads keep none.
const SHARED: usize = 60;

/// Sheaves in the queue at which the drain thread is told not to wait: there are more than the threads that hand them
/// in can reap, perhaps since these are pinned.
const FLOOD: usize = 16;

/// Batches that a thread reaps when it hands in one: more than come in, so that a backlog shrinks, and not all of it,
/// so that who was the first after a long reader does not pay for everybody.
const SHARE: usize = 3;

impl Cache {
    /// Retires an object; for when the fast path could not. The caller keeps the cache alive.
    pub(super) fn retire_cold(&self, retired: Retired) {
        if retired.drops() != self.nature.destructor.is_some() {
            return self.retire_alone(retired);
        }
        let mine = self.mine();
        let left = match &mine {
            Some(mine) => self.retire_into(mine, retired),
            None => self.retire_shared(retired),
        };
        if let Some(retired) = left {
            self.counters.add(Counter::FreeRcuSheafFail, 1);
            let mut drained = Drained::default();
            self.mark(core::iter::once(retired.into_slot()), &mut drained);
            self.settle(drained);
        }
        self.after_handing_in();
    }

    /// Puts an object into the thread's rcu sheaf, handing it in and beginning a new one as need be; gives it back where
    /// no array or no room in the queue can be had.
    fn retire_into(&self, mine: &Mine, retired: Retired) -> Option<Retired> {
        let mut retired = retired;
        let mut array: Option<Sheaf> = None;
        let left = loop {
            let Some(mut held) = mine.hold_side() else {
                break self.retire_shared(retired);
            };
            retired = match held.push(retired) {
                Ok(()) => break None,
                Err(back) => back,
            };
            if held.is_gone() {
                drop(held);
                break self.retire_shared(retired);
            }
            if held.is_idle() {
                if let Some(array) = array.take() {
                    held.attach(array, grace::now());
                    drop(held);
                    grace::need_worker(self.config.drain_interval);
                    continue;
                }
                drop(held);
                array = self.array_for_retired(mine);
                if array.is_none() {
                    break Some(retired);
                }
                continue;
            }
            if !self.hand_in(&mut held) {
                drop(held);
                if !self.make_room() {
                    break Some(retired);
                }
            }
        };
        self.put_away_array(array);
        left
    }

    /// Hands a full sheaf in; `false` if the queue has no room.
    fn hand_in(&self, held: &mut HeldSide<'_>) -> bool {
        let counted = || {
            let remains = held.take()?;
            self.counters.add(Counter::FreeRcuSheaf, remains.len());
            Some(remains)
        };
        self.queue.hand_in(counted, || TICKETS.stamp())
    }

    /// Sees to it that there is room for a sheaf in the queue, which had none; whether there is memory.
    fn make_room(&self) -> bool {
        !self.is_faulted() && self.queue.make_room(1)
    }

    /// An empty array: one of the barn, a new one, or that of the thread's spare.
    fn array_for_retired(&self, mine: &Mine) -> Option<Sheaf> {
        if let Some(array) = self.barn().get_empty().or_else(|| self.new_array().ok()) {
            return Some(array);
        }
        let mut moving = self.moving();
        let mut spare = mine.hold()?.spare().take()?;
        moving.take_up(spare.len());
        moving.flush(&mut spare);
        Some(spare)
    }

    /// Puts an object into the sheaf that threads without one of their own share.
    fn retire_shared(&self, retired: Retired) -> Option<Retired> {
        let mut retired = retired;
        loop {
            retired = match self.queue.share(retired, || TICKETS.stamp()) {
                Ok(()) => return None,
                Err(queue::Unshared::NoRoom(back)) if self.make_room() => back,
                Err(queue::Unshared::NoRoom(back)) => return Some(back),
                Err(queue::Unshared::NoArray(back)) => {
                    let empty = if self.config.sheaf_capacity == 0 {
                        self.array_of(SHARED).ok()
                    } else {
                        self.barn().get_empty().or_else(|| self.new_array().ok())
                    };
                    let Some(empty) = empty else {
                        return Some(back);
                    };
                    let empty = Remains::empty(empty, self.nature.destructor);
                    let excess = self.queue.begin_shared(empty, grace::now());
                    self.put_away_array(excess);
                    grace::need_worker(self.config.drain_interval);
                    back
                }
            };
        }
    }

    /// Hands in a box whose object was never made, or whose value was moved out, among others that have destructors:
    /// alone, since its fellows in a sheaf are dropped as the pool's objects are. Without memory its slot is leaked.
    #[cold]
    fn retire_alone(&self, retired: Retired) {
        let Ok(array) = self.array_of(1) else {
            return;
        };
        let mut alone = Some(Remains::empty(array, Destructor::NONE));
        if let Some(remains) = &mut alone {
            let pushed = remains.push(retired);
            debug_assert!(pushed.is_ok(), "there is room for one");
        }
        while !self.queue.hand_in(|| alone.take(), || TICKETS.stamp()) {
            if !self.make_room() {
                let lost = alone.take().map(Remains::into_sheaf);
                lost.into_iter()
                    .for_each(|mut sheaf| sheaf.drain().for_each(drop));
                return;
            }
        }
        grace::need_worker(Duration::ZERO);
        self.after_handing_in();
    }

    /// Marks slots in their pages, for want of a sheaf.
    fn mark(&self, slots: impl Iterator<Item = Slot>, drained: &mut Drained) {
        self.nodes.mark_retired(
            slots,
            drained,
            || TICKETS.stamp().0,
            |n, stamp| {
                self.queue.note_marked(n, Ticket(stamp));
            },
        );
        grace::need_worker(Duration::ZERO);
    }

    /// Hands in the sheaves of all threads, and the shared one, that were begun at `until` or before, and with `forever`
    /// has the threads begin no new ones; `false` if other threads' cannot be had. The list of locals is locked.
    pub(super) fn hand_in_all(
        &self,
        locals: &[crate::sync::Shared<local::Local>],
        until: u64,
        own: Option<&Mine>,
        forever: bool,
        drained: &mut Drained,
    ) -> bool {
        self.queue.hand_in_shared(until, || TICKETS.stamp());
        let Some(harvest) = Harvest::begin(locals, own.map(Mine::local), until, forever) else {
            return false;
        };
        harvest.take(|remains| self.hand_in_remains(remains, drained));
        true
    }

    /// Hands in what was taken from a thread; marks its slots if the queue has no room.
    pub(super) fn hand_in_remains(&self, remains: Remains, drained: &mut Drained) {
        self.counters.add(Counter::FreeRcuSheaf, remains.len());
        let mut remains = Some(remains);
        if self.queue.hand_in(|| remains.take(), || TICKETS.stamp()) {
            return;
        }
        if let Some(remains) = remains {
            let mut sheaf = remains.into_sheaf();
            self.mark(sheaf.drain(), drained);
            self.counters.add(Counter::SheafFree, 1);
        }
    }

    /// A thread is on its way out: what it retired is handed in.
    pub(super) fn hand_in_left(&self, address: usize) {
        self.queue.make_room(1);
        let locals = self.locals.lock();
        let list = locals.list.iter();
        let left = list
            .filter(|local| crate::sync::Shared::as_ptr(local).addr() == address)
            .find_map(|local| local.take_left());
        let any = left.is_some();
        let mut drained = Drained::default();
        if let Some(remains) = left {
            self.hand_in_remains(remains, &mut drained);
        }
        drop(locals);
        self.settle(drained);
        if any {
            grace::need_worker(Duration::ZERO);
        }
    }

    /// After the last handle is gone: what it handed in is looked after.
    pub(super) fn settle_retired(&self, drained: Drained) {
        self.settle(drained);
        if self.queue.objects() > 0 {
            grace::need_worker(Duration::ZERO);
        }
    }

    /// Retired objects, wherever they wait.
    pub(super) fn retired(&self, locals: &[crate::sync::Shared<local::Local>]) -> usize {
        let sides: usize = locals.iter().map(|local| local.retired()).sum();
        sides + self.queue.objects()
    }

    /// Whoever hands in does a share of what is due: helps the time along, and reaps.
    fn after_handing_in(&self) {
        let waiting = self.queue.waiting();
        if waiting.newest == Ticket(0) {
            return;
        }
        TICKETS.push(waiting.newest);
        if grace::is_reaping_allowed() {
            self.reap(SHARE);
        }
        if waiting.batches > FLOOD {
            grace::wake_worker();
        }
    }
}
