//! The plain model of a pool: lists of slots, and nothing that is there for speed.
//!
//! It says which slot each operation gives and where every other slot is. It is written from the documentation:
//! a slot is with a user, in a lent sheaf, in a thread's `main` or `spare`, in a full sheaf of the barn, or free in
//! its slab. There are no threads, locks, gates or pages here.
#![forbid(unsafe_code)]

use crate::slabs::{Place, Slabs};

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Memory,
    Limit,
}

/// Slots on top of each other; the last is taken first.
pub(crate) type Stack = Vec<Place>;

/// One thread's sheaves. `None`: it has no array there.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) thread: usize,
    pub(crate) main: Option<Stack>,
    /// Places of `main`'s array that cannot be used until it is exchanged: who takes slots out for the owner
    /// leaves the array as it is, so these stay behind.
    pub(crate) lost: usize,
    pub(crate) spare: Option<Stack>,
}

impl Local {
    fn pop(&mut self) -> Option<Place> {
        self.main.as_mut()?.pop()
    }

    /// Puts another array in the place of `main`.
    pub(crate) fn replace_main(&mut self, new: Option<Stack>) -> Option<Stack> {
        self.lost = 0;
        core::mem::replace(&mut self.main, new)
    }

    pub(crate) fn swap(&mut self) {
        let spare = self.spare.take();
        self.spare = self.replace_main(spare);
    }

    pub(crate) fn cached(&self) -> usize {
        self.main.iter().chain(&self.spare).map(Vec::len).sum()
    }
}

/// A sheaf that is lent out.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) slots: Stack,
    pub(crate) capacity: usize,
}

/// The pool is at its limit and parks nothing.
#[derive(Debug)]
pub(crate) struct Tight {
    /// It loosens when no more slots are out than this ...
    pub(crate) calm: usize,
    /// ... and enough came home since.
    came_home: usize,
}

/// Slots that must come home before a tight pool loosens.
const CALM_FREES: usize = if cfg!(sheaves_small) { 8 } else { 256 };

/// What free slots are asked of the slabs: at least `min`, better `max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shortage {
    /// The slabs have too few free slots: this many less than the least that is wanted.
    Slabs(usize),
    Limit,
}

/// What the free of a slot needs, if `main` and `spare` have no room.
enum Need {
    Array,
    Flush(Stack),
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) capacity: usize,
    pub(crate) max_full: usize,
    pub(crate) max_empty: usize,
    pub(crate) limit: usize,
    pub(crate) slabs: Slabs,
    /// In the order in which threads came; the last takes the place of one that goes.
    pub(crate) locals: Vec<Local>,
    pub(crate) full: Vec<Stack>,
    /// Empty arrays in the barn.
    pub(crate) empty: usize,
    pub(crate) tight: Option<Tight>,
    pub(crate) closed: bool,
}

/// The pieces that operations are made of.
impl Model {
    pub(crate) fn find(&self, thread: usize) -> Option<usize> {
        self.locals.iter().position(|local| local.thread == thread)
    }

    /// The thread's local, made if it has none.
    pub(crate) fn mine(&mut self, thread: usize) -> Option<usize> {
        if self.capacity == 0 || self.closed {
            return None;
        }
        if self.find(thread).is_none() {
            self.locals.push(Local {
                thread,
                main: None,
                lost: 0,
                spare: None,
            });
        }
        self.find(thread)
    }

    /// Slots go back to their slabs.
    pub(crate) fn home(&mut self, slots: impl IntoIterator<Item = Place>) {
        for place in slots {
            self.slabs.put(place);
            if let Some(tight) = &mut self.tight {
                tight.came_home += 1;
            }
        }
    }

    /// A tight pool loosens when enough came home: after an operation's steps, not among them.
    pub(crate) fn settle(&mut self) {
        let out = self.slabs.out();
        let calm = |tight: &Tight| tight.came_home >= CALM_FREES && out <= tight.calm;
        if !self.closed && self.tight.as_ref().is_some_and(calm) {
            self.tight = None;
        }
    }

    /// Free slots from slabs as they are.
    fn take(&mut self, want: Want, scraps: bool) -> Result<Stack, Shortage> {
        let allowed = self.limit - self.slabs.out();
        if allowed < want.min {
            return Err(Shortage::Limit);
        }
        let max = match self.tight {
            Some(_) => want.min,
            None => want.max.min(allowed),
        };
        let free = self.slabs.free();
        if free < want.min || (free < max && !scraps) {
            return Err(Shortage::Slabs(want.min.saturating_sub(free)));
        }
        Ok((0..max.min(free)).map(|_| self.slabs.take()).collect())
    }

    /// Free slots from slabs, which are made, and for which everything is searched. A slot of anybody's sheaf is
    /// found before anything is refused, and no memory is refused that the source would give.
    pub(crate) fn obtain(&mut self, want: Want) -> Result<Stack, Refusal> {
        // More than the least is worth one new slab, and no more.
        let (mut scraps, mut dry, mut searched) = (false, false, false);
        loop {
            match self.take(want, scraps) {
                Ok(slots) => return Ok(slots),
                Err(Shortage::Limit) if self.tight.is_some() => return Err(Refusal::Limit),
                Err(Shortage::Limit) => self.tighten(),
                Err(Shortage::Slabs(missing)) if !dry => {
                    dry = !self.slabs.grow(missing);
                    scraps = true;
                }
                // Slabs that the search empties go back to the source, which is asked again.
                Err(Shortage::Slabs(_)) if !searched => {
                    (dry, searched) = (false, true);
                    self.drain();
                }
                Err(Shortage::Slabs(_)) => return Err(Refusal::Memory),
            }
        }
    }

    /// Takes what slabs have at once, without making any.
    pub(crate) fn at_once(&mut self, want: Want) -> Option<Stack> {
        self.take(want, false).ok()
    }

    fn empty_locals(&mut self) {
        for at in 0..self.locals.len() {
            let local = &mut self.locals[at];
            let main: Stack = local
                .main
                .iter_mut()
                .flat_map(|main| main.drain(..))
                .collect();
            let spare: Stack = local
                .spare
                .iter_mut()
                .flat_map(|spare| spare.drain(..))
                .collect();
            local.lost += main.len();
            self.home(main);
            self.home(spare);
        }
    }

    /// All that is parked goes to slabs, and nothing is parked until the pool loosens.
    fn tighten(&mut self) {
        let parked = 2 * self.capacity * self.locals.len();
        let calm = (self.limit / 2).max(self.limit.saturating_sub(parked));
        self.tight = Some(Tight { calm, came_home: 0 });
        self.empty_locals();
        while let Some(full) = self.full.pop() {
            self.home(full);
        }
        self.settle();
    }

    /// All that is parked goes to slabs.
    pub(crate) fn drain(&mut self) {
        self.empty_locals();
        self.settle();
        while let Some(full) = self.full.pop() {
            self.home(full);
            self.put_empty();
        }
        self.settle();
    }

    /// An empty array goes to the barn, if it has room.
    pub(crate) fn put_empty(&mut self) {
        if self.tight.is_none() && !self.closed && self.empty < self.max_empty {
            self.empty += 1;
        }
    }

    pub(crate) fn get_empty(&mut self) -> bool {
        let some = self.empty > 0;
        self.empty -= usize::from(some);
        some
    }

    /// A sheaf that nobody wants goes to the barn if it is more than half full, else home.
    pub(crate) fn put_away(&mut self, sheaf: Stack) {
        let open = self.tight.is_none() && !self.closed;
        if 2 * sheaf.len() > self.capacity && open && self.full.len() < self.max_full {
            self.full.push(sheaf);
            return;
        }
        self.home(sheaf);
        self.put_empty();
    }

    /// A slot from `main`, from `spare`, or from a full sheaf of the barn.
    pub(crate) fn pop_or_trade(&mut self, at: usize) -> Option<Place> {
        if self.tight.is_some() {
            return None;
        }
        let local = &mut self.locals[at];
        if let Some(place) = local.pop() {
            return Some(place);
        }
        if local.spare.as_ref().is_some_and(|spare| !spare.is_empty()) {
            local.swap();
            return local.pop();
        }
        let full = self.full.pop()?;
        let traded = local.spare.take();
        local.spare = local.replace_main(Some(full));
        let place = local.pop();
        if traded.is_some() {
            self.put_empty();
        }
        place
    }

    /// A slot into `main`, into `spare`, or into an empty sheaf of the barn.
    fn push_or_trade(&mut self, at: usize, place: Place) -> Result<(), Need> {
        let capacity = self.capacity;
        let local = &mut self.locals[at];
        match &mut local.main {
            Some(main) if local.lost + main.len() < capacity => {
                main.push(place);
                return Ok(());
            }
            _ => {}
        }
        match local.spare.take() {
            None if self.empty == 0 => return Err(Need::Array),
            None => self.empty -= 1,
            Some(spare) if spare.len() < capacity => {
                local.spare = local.replace_main(Some(spare));
                local.main.as_mut().expect("it was the spare").push(place);
                return Ok(());
            }
            Some(full) if self.full.len() >= self.max_full => return Err(Need::Flush(full)),
            Some(full) if self.empty == 0 => {
                local.spare = Some(full);
                return Err(Need::Array);
            }
            Some(full) => {
                self.empty -= 1;
                self.full.push(full);
            }
        }
        local.spare = local.replace_main(Some(vec![place]));
        Ok(())
    }

    /// A slot into a new array; `main` becomes the spare, and the spare, if there is one, goes away.
    fn push_with_array(&mut self, at: usize, place: Place) {
        let local = &mut self.locals[at];
        let old = local.replace_main(Some(vec![place]));
        let excess = old.and_then(|old| local.spare.replace(old));
        if let Some(excess) = excess {
            self.put_away(excess);
        }
    }

    /// One slot into the sheaves of a thread.
    pub(crate) fn park(&mut self, at: usize, place: Place) {
        match self.push_or_trade(at, place) {
            Ok(()) => {}
            Err(Need::Array) => self.push_with_array(at, place),
            Err(Need::Flush(spare)) => {
                self.home(spare);
                self.push_with_array(at, place);
            }
        }
    }

    /// One of many slots into the sheaves of a thread, without flushing any; `false` if they are full.
    pub(crate) fn park_without_flush(&mut self, at: usize, place: Place) -> bool {
        match self.push_or_trade(at, place) {
            Ok(()) => {}
            Err(Need::Array) => self.push_with_array(at, place),
            Err(Need::Flush(spare)) => {
                self.locals[at].spare = Some(spare);
                return false;
            }
        }
        true
    }
}
