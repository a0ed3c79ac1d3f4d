//! A cache's queue of retired objects.
//!
//! Sheaves that were handed in wait here in the order of their stamps, and leave in that order; what is with reapers is
//! noted until they are done. Objects that were retired by threads without a sheaf of their own are collected in one
//! that all share. Adding a sheaf needs room, which is made before, outside the lock.
#![forbid(unsafe_code)]

use alloc::collections::VecDeque;

use arrayvec::ArrayVec;

use crate::grace::{Remains, Retired, Ticket};
use crate::sheaf::Sheaf;
use crate::sync::{Guard, Lock};

/// Threads that reap one cache at a time. More would wait for each other in the barn.
const REAPERS: usize = 8;

/// Where sheaves wait.
#[derive(Debug)]
pub(crate) struct Queue(Lock<State>);

#[derive(Debug)]
struct State {
    batches: VecDeque<Batch>,
    /// Objects in `batches`.
    waiting: usize,
    /// The sheaf that all share, and when it was begun.
    shared: Option<(Remains, u64)>,
    /// The number of the last batch.
    last: u64,
    /// The numbers of those that are with reapers; 0 for what was marked in slabs.
    active: ArrayVec<u64, REAPERS>,
    /// Objects with reapers.
    reaping: usize,
    /// Objects marked in slabs, and the grace period that the last of them waits for.
    marked: (usize, Ticket),
}

/// A sheaf that was handed in.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) remains: Remains,
    pub(crate) ticket: Ticket,
    pub(crate) number: u64,
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Sheaves that were handed in.
    pub(crate) batches: usize,
    /// When the shared sheaf was begun.
    pub(crate) shared_since: Option<u64>,
    /// Objects marked in slabs.
    pub(crate) marked: usize,
    /// Objects with reapers.
    pub(crate) reaping: usize,
    /// The grace period that the last of the sheaves and marks waits for.
    pub(crate) newest: Ticket,
}

/// Why the shared sheaf took no object in.
#[derive(Debug)]
pub(crate) enum Unshared {
    /// There is none.
    NoArray(Retired),
    /// It is full, and the queue has no room for it.
    NoRoom(Retired),
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self(Lock::new(State {
            batches: VecDeque::new(),
            waiting: 0,
            shared: None,
            last: 0,
            active: ArrayVec::new_const(),
            reaping: 0,
            marked: (0, Ticket(0)),
        }))
    }

    /// Sees to it that there is room for `n` sheaves more, for as long as nobody else fills it; whether there is memory.
    pub(crate) fn make_room(&self, n: usize) -> bool {
        loop {
            let wanted = {
                let state = self.0.lock();
                let wanted = state.batches.len() + n;
                if wanted <= state.batches.capacity() {
                    return true;
                }
                wanted.max(2 * state.batches.capacity())
            };
            let mut larger = VecDeque::new();
            if larger.try_reserve_exact(wanted).is_err() {
                return false;
            }
            let mut state = self.0.lock();
            if state.batches.len() < larger.capacity() {
                larger.append(&mut state.batches);
                core::mem::swap(&mut state.batches, &mut larger);
            }
        }
    }

    /// Hands in what `take` gives, stamped by `stamp` after that; `false`, without a call of either, if there is no
    /// room. Both run under the lock.
    pub(crate) fn hand_in(
        &self,
        take: impl FnOnce() -> Option<Remains>,
        stamp: impl FnOnce() -> Ticket,
    ) -> bool {
        let mut state = self.0.lock();
        if !state.has_room() {
            return false;
        }
        if let Some(remains) = take() {
            state.push(remains, stamp);
        }
        true
    }

    /// As [`Queue::hand_in`] of the shared sheaf, if it was begun at `until` or before.
    pub(crate) fn hand_in_shared(&self, until: u64, stamp: impl FnOnce() -> Ticket) -> bool {
        let mut state = self.0.lock();
        if state
            .shared
            .as_ref()
            .is_none_or(|(_, since)| *since > until)
        {
            return true;
        }
        if !state.has_room() {
            return false;
        }
        if let Some((remains, _)) = state.shared.take() {
            state.push(remains, stamp);
        }
        true
    }

    /// Puts an object into the shared sheaf; one that is full is handed in before.
    pub(crate) fn share(
        &self,
        retired: Retired,
        stamp: impl FnOnce() -> Ticket,
    ) -> Result<(), Unshared> {
        let mut state = self.0.lock();
        if state
            .shared
            .as_ref()
            .is_some_and(|(remains, _)| remains.is_full())
        {
            if !state.has_room() {
                return Err(Unshared::NoRoom(retired));
            }
            if let Some((full, _)) = state.shared.take() {
                state.push(full, stamp);
            }
        }
        match &mut state.shared {
            Some((remains, _)) => remains.push(retired).map_err(Unshared::NoArray),
            None => Err(Unshared::NoArray(retired)),
        }
    }

    /// Begins a shared sheaf; gives it back if there is one by now.
    pub(crate) fn begin_shared(&self, empty: Remains, now: u64) -> Option<Sheaf> {
        let mut state = self.0.lock();
        if state.shared.is_some() {
            return Some(empty.into_sheaf());
        }
        state.shared = Some((empty, now));
        None
    }

    /// Notes objects that were marked in slabs.
    pub(crate) fn note_marked(&self, n: usize, ticket: Ticket) {
        let mut state = self.0.lock();
        state.marked.0 += n;
        state.marked.1 = state.marked.1.max(ticket);
    }

    /// Gives the first sheaf to a reaper if its grace period `is_over`; [`Queue::finish`] ends that.
    pub(crate) fn take(&self, is_over: impl FnOnce(Ticket) -> bool) -> Option<Batch> {
        let mut state = self.0.lock();
        if state.active.is_full() || !is_over(state.batches.front()?.ticket) {
            return None;
        }
        let batch = state.batches.pop_front()?;
        state.waiting -= batch.remains.len();
        state.reaping += batch.remains.len();
        state.active.push(batch.number);
        Some(batch)
    }

    /// Lets a reaper take marked objects, if there are any; whether it may. [`Queue::found_marked`] comes next.
    pub(crate) fn take_marked(&self) -> bool {
        let mut state = self.0.lock();
        if state.marked.0 == 0 || state.active.is_full() {
            return false;
        }
        state.active.push(0);
        true
    }

    /// Tells how many marked objects the reaper has taken.
    pub(crate) fn found_marked(&self, n: usize) {
        let mut state = self.0.lock();
        state.marked.0 -= n;
        state.reaping += n;
    }

    /// Objects that a reaper had are not retired any more.
    pub(crate) fn reaped(&self, n: usize) {
        let mut state = self.0.lock();
        // Not there any more in a child that its reaper forked.
        state.reaping = state.reaping.saturating_sub(n);
    }

    /// A reaper is done with the batch of this number.
    pub(crate) fn finish(&self, number: u64) {
        let mut state = self.0.lock();
        if let Some(at) = state.active.iter().position(|active| *active == number) {
            state.active.swap_remove(at);
        }
    }

    /// The number of the last sheaf that was handed in.
    pub(crate) fn last(&self) -> u64 {
        self.0.lock().last
    }

    /// Whether all sheaves up to number `last` are reaped, and all marked objects.
    pub(crate) fn is_done(&self, last: u64) -> bool {
        let state = self.0.lock();
        state.marked.0 == 0
            && state
                .batches
                .front()
                .is_none_or(|batch| batch.number > last)
            && state.active.iter().all(|number| *number > last)
    }

    /// In a forked child: reapers are not there, and what they had is lost.
    pub(crate) fn forget_reapers(&self) {
        let mut state = self.0.lock();
        state.active.clear();
        state.reaping = 0;
    }

    pub(crate) fn waiting(&self) -> Waiting {
        let state = self.0.lock();
        let newest = state.batches.back().map_or(Ticket(0), |batch| batch.ticket);
        let marked = if state.marked.0 > 0 {
            state.marked.1
        } else {
            Ticket(0)
        };
        Waiting {
            batches: state.batches.len(),
            shared_since: state.shared.as_ref().map(|(_, since)| *since),
            marked: state.marked.0,
            reaping: state.reaping,
            newest: newest.max(marked),
        }
    }

    /// Retired objects here: waiting, shared, marked, or with reapers.
    pub(crate) fn objects(&self) -> usize {
        let state = self.0.lock();
        let shared = state
            .shared
            .as_ref()
            .map_or(0, |(remains, _)| remains.len());
        state.waiting + shared + state.marked.0 + state.reaping
    }

    /// Locks the queue.
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.lock()
    }

    fn lock(&self) -> Guard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.batches.len() < self.batches.capacity()
    }

    /// With the lock held throughout, so that batches are in the order of their stamps.
    fn push(&mut self, remains: Remains, stamp: impl FnOnce() -> Ticket) {
        self.last += 1;
        self.waiting += remains.len();
        self.batches.push_back(Batch {
            remains,
            ticket: stamp(),
            number: self.last,
        });
    }
}
