//! The gate with one rule broken at a time: a search that could not fail would show nothing.
//!
//! A gate of indices over loom's cells, with a drainer, as small as the protocol allows. Sound, it passes; with
//! any [`Flaw`] the search finds a race, or a slot that is lost or doubled.
#![forbid(unsafe_code)]

use loom::cell::Cell;
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::search;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Rule 1: the owner looks at the bound, then marks `top`.
    LookBeforeMark,
    /// Rule 1: nothing orders the mark before the look.
    NoLightBarrier,
    /// Rule 1: the owner that is refused writes nothing back.
    KeepsMark,
    /// Rule 2: the store that clears the mark publishes nothing.
    IdleRelaxed,
    /// Rule 4: nothing orders the shutting before the look at `top`.
    NoHeavyBarrier,
    /// Rule 4: the drainer does not wait, and goes by the place that it saw before.
    NoWait,
    /// Rule 5: the drainer writes `top` instead of moving the floor.
    DrainerWritesTop,
    /// Rule 5: the drainer takes the slots and leaves the floor.
    FloorStays,
    /// The bounds publish nothing, see `bounds_need_not_publish`.
    BoundsRelaxed,
}

const MARK: usize = usize::MAX;
const SHUT_FLOOR: usize = isize::MAX as usize;

struct Twin {
    flaw: Flaw,
    top: AtomicUsize,
    floor: AtomicUsize,
    end: AtomicUsize,
    /// 0 is an empty place. Taking from one is told at the end of the scene: a panic while another thread of
    /// the model holds a lock would end the process.
    places: [Cell<usize>; 3],
    /// The lock, and the floor behind it.
    shelf: Mutex<usize>,
}

impl Twin {
    fn new(flaw: Flaw, items: usize) -> Self {
        let place = |at: usize| Cell::new(if at < items { at + 1 } else { 0 });
        Self {
            flaw,
            top: AtomicUsize::new(items),
            floor: AtomicUsize::new(0),
            end: AtomicUsize::new(3),
            places: core::array::from_fn(place),
            shelf: Mutex::new(0),
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn unless(&self, flaw: Flaw, ordering: Ordering) -> Ordering {
        if self.has(flaw) {
            Ordering::Relaxed
        } else {
            ordering
        }
    }

    /// Marks `top` and looks at a bound; both as read.
    fn enter(&self, bound: &AtomicUsize) -> (usize, usize) {
        let top = self.top.load(Ordering::Relaxed);
        let acquire = self.unless(Flaw::BoundsRelaxed, Ordering::Acquire);
        let early = self.has(Flaw::LookBeforeMark).then(|| bound.load(acquire));
        self.top.store(MARK, Ordering::Relaxed);
        if !self.has(Flaw::NoLightBarrier) {
            fence(Ordering::SeqCst);
        }
        (top, early.unwrap_or_else(|| bound.load(acquire)))
    }

    fn refuse(&self, top: usize) {
        if !self.has(Flaw::KeepsMark) {
            self.top.store(top, Ordering::Release);
        }
    }

    fn leave(&self, top: usize) {
        self.top
            .store(top, self.unless(Flaw::IdleRelaxed, Ordering::Release));
    }

    fn pop(&self) -> Option<usize> {
        let (top, floor) = self.enter(&self.floor);
        if top as isize <= floor as isize {
            self.refuse(top);
            return None;
        }
        let item = self.places[top - 1].replace(0);
        self.leave(top - 1);
        Some(item)
    }

    fn push(&self, item: usize) -> Result<(), usize> {
        let (top, end) = self.enter(&self.end);
        if top >= end {
            self.refuse(top);
            return Err(item);
        }
        self.places[top].set(item);
        self.leave(top + 1);
        Ok(())
    }

    fn set(&self, floor: usize, end: usize) {
        let release = self.unless(Flaw::BoundsRelaxed, Ordering::Release);
        self.floor.store(floor, release);
        self.end.store(end, release);
    }

    /// Where the stack ends, once the owner is outside.
    fn place(&self) -> usize {
        loop {
            let top = self.top.load(Ordering::Acquire);
            if top != MARK {
                return top;
            }
            thread::yield_now();
        }
    }

    fn drain(&self) -> Vec<usize> {
        let seen = self.has(Flaw::NoWait).then(|| self.place());
        let shelf = self.shelf.lock().expect("no panic under it");
        self.set(SHUT_FLOOR, 0);
        drop(shelf);
        if !self.has(Flaw::NoHeavyBarrier) {
            fence(Ordering::SeqCst);
        }
        if seen.is_none() {
            self.place();
        }
        let mut floor = self.shelf.lock().expect("no panic under it");
        let top = seen.unwrap_or_else(|| self.place());
        let found = (*floor..top)
            .map(|place| self.places[place].replace(0))
            .collect();
        match self.flaw {
            Flaw::DrainerWritesTop => self.top.store(*floor, Ordering::Release),
            Flaw::FloorStays => {}
            _ => *floor = top,
        }
        self.set(*floor, self.places.len());
        found
    }
}

/// The owner takes, puts back and takes; two drains run meanwhile. Every item must turn up once.
fn scene(flaw: Flaw) {
    search(move || {
        let twin = Arc::new(Twin::new(flaw, 2));
        let other = Arc::clone(&twin);
        let owner = thread::spawn(move || {
            let mut hands = Vec::new();
            if let Some(item) = twin.pop() {
                hands.extend(twin.push(item).err());
            }
            hands.extend(twin.pop());
            hands
        });
        let mut found = other.drain();
        found.extend(other.drain());
        found.extend(owner.join().expect("it did well"));
        found.extend(other.places.iter().map(Cell::get).filter(|item| *item != 0));
        found.sort_unstable();
        assert_eq!(found, [1, 2], "an item was lost or doubled");
    });
}

macro_rules! twins {
    ($($name:ident, $flaw:ident, $told:literal;)*) => { $(
        #[test]
        #[should_panic(expected = $told)]
        fn $name() {
            scene(Flaw::$flaw);
        }
    )* };
}

twins! {
    an_early_look_fails, LookBeforeMark, "lost or doubled";
    no_light_barrier_fails, NoLightBarrier, "Causality violation";
    a_mark_that_stays_fails, KeepsMark, "exceeded";
    a_relaxed_idle_store_fails, IdleRelaxed, "Causality violation";
    no_heavy_barrier_fails, NoHeavyBarrier, "Causality violation";
    no_wait_fails, NoWait, "Causality violation";
    a_drainer_that_writes_top_fails, DrainerWritesTop, "lost or doubled";
    a_floor_that_stays_fails, FloorStays, "lost or doubled";
}

#[test]
fn the_sound_gate_passes() {
    scene(Flaw::None);
}

/// The owner never touches a place that a drainer emptied before it has held the lock, so the Release and the
/// Acquire of the bounds order nothing that the lock does not. They cost nothing, and ThreadSanitizer, which
/// knows no fences, wants them.
#[test]
fn bounds_need_not_publish() {
    scene(Flaw::BoundsRelaxed);
}
