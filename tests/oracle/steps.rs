//! The model's operations, one after the other as a user calls them.
#![forbid(unsafe_code)]

use crate::model::{Lent, Local, Model, Refusal, Stack, Want};
use crate::slabs::Place;

/// Slots that a bulk free collects before it parks them.
const BATCH: usize = if cfg!(sheaves_small) { 4 } else { 32 };

impl Model {
    /// One slot from slabs, past all sheaves.
    fn one(&mut self) -> Result<Place, Refusal> {
        let slots = self.obtain(Want { min: 1, max: 1 })?;
        Ok(slots[0])
    }

    pub(crate) fn alloc(&mut self, thread: usize) -> Result<Place, Refusal> {
        if self.tight.is_some() {
            return self.one();
        }
        let Some(at) = self.mine(thread) else {
            return self.one();
        };
        if let Some(place) = self.pop_or_trade(at) {
            return Ok(place);
        }
        // The empty spare is filled, else an empty sheaf of the barn, else a new one.
        if self.locals[at].spare.take().is_none() {
            self.get_empty();
        }
        let want = Want {
            min: 1,
            max: self.capacity,
        };
        let mut sheaf = match self.obtain(want) {
            Ok(slots) => slots,
            Err(refusal) => {
                self.put_empty();
                return Err(refusal);
            }
        };
        // Handed out in address order.
        sheaf.reverse();
        let place = sheaf.pop().expect("one at least");
        if self.tight.is_some() {
            self.put_empty();
            return Ok(place);
        }
        let local = &mut self.locals[at];
        if sheaf.is_empty() {
            local.spare = Some(sheaf);
        } else {
            local.lost = 0;
            local.spare = local.main.replace(sheaf);
        }
        Ok(place)
    }

    /// What is at hand: never a new slab, never another thread's.
    pub(crate) fn alloc_now(&mut self, thread: usize) -> Option<Place> {
        let at = self.find(thread).filter(|_| self.tight.is_none());
        if let Some(at) = at {
            let local = &mut self.locals[at];
            let has_some = |stack: &Option<Stack>| stack.as_ref().is_some_and(|s| !s.is_empty());
            if !has_some(&local.main) && !has_some(&local.spare) {
                if let Some(full) = self.full.pop() {
                    local.spare = Some(full);
                }
            }
            if has_some(&local.main) || has_some(&local.spare) {
                return self.pop_or_trade(at);
            }
        }
        let slots = self.at_once(Want { min: 1, max: 1 })?;
        Some(slots[0])
    }

    pub(crate) fn free(&mut self, thread: usize, place: Place) {
        let at = match self.tight {
            Some(_) => None,
            None => self.mine(thread),
        };
        match at {
            Some(at) => self.park(at, place),
            None => self.home([place]),
        }
        self.settle();
    }

    /// Slots from the thread's sheaves and the barn, up to `n`.
    fn gather(&mut self, at: Option<usize>, n: usize) -> Stack {
        let Some(at) = at else { return Stack::new() };
        (0..n).map_while(|_| self.pop_or_trade(at)).collect()
    }

    pub(crate) fn alloc_bulk(&mut self, thread: usize, n: usize) -> Result<Stack, Refusal> {
        if n == 0 {
            return Ok(Stack::new());
        }
        let at = self.mine(thread);
        let mut slots = self.gather(at, n);
        let missing = n - slots.len();
        if missing == 0 {
            return Ok(slots);
        }
        let want = |n| Want { min: n, max: n };
        if let Some(rest) = self.at_once(want(missing)) {
            slots.extend(rest);
            return Ok(slots);
        }
        self.home(slots.into_iter().rev());
        self.settle();
        self.obtain(want(n))
    }

    pub(crate) fn free_bulk(&mut self, thread: usize, slots: &[Place]) {
        // At a limit each slot is worth something before the next is freed.
        let most = if self.is_limited() { 1 } else { BATCH };
        for batch in slots.chunks(most) {
            if let [place] = batch {
                self.free(thread, *place);
                continue;
            }
            let mut rest = batch;
            if let (Some(at), None) = (self.mine(thread), &self.tight) {
                // The last is parked first.
                while let [before @ .., place] = rest {
                    if !self.park_without_flush(at, *place) {
                        break;
                    }
                    rest = before;
                }
            }
            self.home(rest.iter().copied());
            self.settle();
        }
    }

    pub(crate) fn prefill(&mut self, thread: usize, n: usize) -> Result<Lent, Refusal> {
        let at = self.mine(thread);
        let mut lent = Lent {
            slots: Stack::new(),
            capacity: self.capacity,
        };
        if n > self.capacity {
            lent.capacity = n;
            lent.slots = self.gather(at, n);
        } else if n == 0 {
            lent.capacity = 0;
        } else if self.is_limited() {
            // What a borrower has besides would be missing elsewhere.
            self.get_empty();
            lent.slots = self.gather(at, n);
        } else {
            let nearest = at.and_then(|at| self.nearest(at, n));
            lent.slots = match nearest.or_else(|| self.full.pop()) {
                Some(slots) => slots,
                None => {
                    self.get_empty();
                    Stack::new()
                }
            };
        }
        if lent.slots.len() >= n {
            return Ok(lent);
        }
        if let Some(more) = self.at_once(self.missing(&lent, n)) {
            lent.slots.extend(more.iter().rev());
            return Ok(lent);
        }
        // What is at hand would be in the way of the search.
        self.home(lent.slots.drain(..));
        self.settle();
        match self.obtain(self.missing(&lent, n)) {
            Ok(more) => lent.slots.extend(more.iter().rev()),
            Err(refusal) => {
                self.put_away_lent(lent);
                return Err(refusal);
            }
        }
        Ok(lent)
    }

    /// The spare; but if only `main` holds enough, that, and the spare takes its place.
    fn nearest(&mut self, at: usize, n: usize) -> Option<Stack> {
        let local = &mut self.locals[at];
        let enough = |sheaf: &Option<Stack>| sheaf.as_ref().is_some_and(|sheaf| sheaf.len() >= n);
        if !enough(&local.spare) && enough(&local.main) {
            local.swap();
        }
        local.spare.take()
    }

    /// Sees to it that `n` slots are lent.
    pub(crate) fn refill(&mut self, lent: &mut Lent, n: usize) -> Result<(), Refusal> {
        if lent.slots.len() >= n {
            return Ok(());
        }
        if n > lent.capacity {
            if self.is_standard(lent.capacity) {
                self.put_empty();
            }
            lent.capacity = n.max(self.capacity);
        }
        let more = self.obtain(self.missing(lent, n))?;
        lent.slots.extend(more.iter().rev());
        Ok(())
    }

    /// What is missing until `n` slots are lent; without a limit, as many more as there is room for.
    fn missing(&self, lent: &Lent, n: usize) -> Want {
        let min = n - lent.slots.len();
        let room = lent.capacity - lent.slots.len();
        Want {
            min,
            max: if self.is_limited() { min } else { room },
        }
    }

    fn is_limited(&self) -> bool {
        self.limit < usize::MAX
    }

    fn is_standard(&self, capacity: usize) -> bool {
        capacity == self.capacity && capacity > 0
    }

    fn put_away_lent(&mut self, lent: Lent) {
        if self.is_standard(lent.capacity) {
            self.put_away(lent.slots);
        } else {
            self.home(lent.slots);
        }
    }

    pub(crate) fn give_back(&mut self, thread: usize, mut lent: Lent) {
        let at = self.mine(thread);
        match at {
            Some(at) if self.tight.is_none() && self.is_standard(lent.capacity) => {
                let local = &mut self.locals[at];
                match (&mut local.main, &mut local.spare) {
                    (none @ None, _) | (_, none @ None) => *none = Some(lent.slots),
                    // It takes what it has room for, from the top.
                    (_, Some(spare)) => {
                        let fits = lent.slots.len().min(self.capacity - spare.len());
                        spare.extend(lent.slots.drain(lent.slots.len() - fits..));
                        self.put_away_lent(lent);
                    }
                }
            }
            _ => self.put_away_lent(lent),
        }
        self.settle();
    }

    /// The bytes that were given back, in pages.
    pub(crate) fn shrink(&mut self) -> usize {
        let before = self.slabs.pages();
        self.drain();
        self.empty = 0;
        self.slabs.shrink();
        before - self.slabs.pages()
    }

    pub(crate) fn flush(&mut self, thread: usize) {
        let Some(at) = self.find(thread).filter(|_| self.tight.is_none()) else {
            return;
        };
        let local = &mut self.locals[at];
        let arrays = [local.replace_main(None), local.spare.take()];
        for array in arrays.into_iter().flatten() {
            self.home(array);
            self.put_empty();
        }
        self.settle();
    }

    /// The thread ends: its sheaves go to the barn or home.
    pub(crate) fn exit(&mut self, thread: usize) {
        let Some(at) = self.find(thread) else { return };
        let gone = self.locals.swap_remove(at);
        for array in [gone.main, gone.spare].into_iter().flatten() {
            self.put_away(array);
        }
        self.settle();
    }

    /// Arrays of sheaves that are not lent.
    pub(crate) fn arrays(&self) -> usize {
        let of_threads = |local: &Local| local.main.iter().chain(&local.spare).count();
        let threads: usize = self.locals.iter().map(of_threads).sum();
        threads + self.full.len() + self.empty
    }

    /// The last handle is gone.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        for local in core::mem::take(&mut self.locals) {
            for array in [local.main, local.spare].into_iter().flatten() {
                self.home(array);
            }
        }
        while let Some(full) = self.full.pop() {
            self.home(full);
        }
        self.empty = 0;
        self.slabs.retired = true;
        self.slabs.shrink();
    }
}
