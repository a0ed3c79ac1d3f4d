//! Models of the engine's protocols on a fake of the layers below: places are counts behind locks.
//!
//! The words are the real ones; the steps are those of `limit`, `alloc`, `free` and `drain`, in their order.
#![cfg(all(test, loom))]
#![forbid(unsafe_code)]

mod ends;

use loom::sync::Arc;
use loom::thread;

use super::tightness::Tightness;
use crate::sync::Lock;

/// Where slots may be parked.
#[derive(Default)]
struct Place {
    parked: usize,
    closed: bool,
}

struct Node {
    free: usize,
    tight: bool,
}

/// A pool with two places besides the node: the local of one thread, and the barn.
struct World {
    tightness: Tightness,
    /// Taken by searches and by who ends them.
    list: Lock<()>,
    local: Lock<Place>,
    barn: Lock<Place>,
    node: Lock<Node>,
    /// What a twin leaves out.
    flaw: Flaw,
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// Slots are moved without a word.
    Unannounced,
    /// The generation changes after slots may be parked again.
    LateChange,
    /// A refusal is not looked at twice.
    Hasty,
}

impl World {
    /// A pool with a limit of one, whose slot is parked in the local.
    fn new(flaw: Flaw) -> Arc<Self> {
        Arc::new(Self {
            tightness: Tightness::new(),
            list: Lock::new(()),
            local: Lock::new(Place {
                parked: 1,
                closed: false,
            }),
            barn: Lock::new(Place::default()),
            node: Lock::new(Node {
                free: 0,
                tight: false,
            }),
            flaw,
        })
    }

    /// `take_slots` of one slot: whether there was one.
    fn alloc(&self) -> bool {
        loop {
            let before = self.tightness.generation();
            {
                let mut node = self.node.lock();
                if node.free > 0 {
                    node.free -= 1;
                    return true;
                }
            }
            let hasty = self.flaw == Flaw::Hasty && before.is_tight();
            if hasty || self.tightness.is_exact(before) {
                return false;
            }
            self.tighten();
        }
    }

    fn tighten(&self) {
        let list = self.list.lock();
        if self.tightness.generation().is_tight() {
            return;
        }
        self.node.lock().tight = true;
        self.barn.lock().closed = true;
        for place in [&self.local, &self.barn] {
            let parked = {
                let mut place = place.lock();
                place.closed = true;
                core::mem::take(&mut place.parked)
            };
            self.node.lock().free += parked;
        }
        self.tightness.wait_for_movers();
        self.tightness.become_tight();
        drop(list);
    }

    fn loosen(&self) {
        let Some(list) = self.list.try_lock() else {
            return;
        };
        if !self.tightness.generation().is_tight() {
            return;
        }
        if self.flaw != Flaw::LateChange {
            self.tightness.become_loose();
        }
        self.node.lock().tight = false;
        self.barn.lock().closed = false;
        self.local.lock().closed = false;
        if self.flaw == Flaw::LateChange {
            // Nothing keeps another thread from parking now.
            self.refill();
            self.tightness.become_loose();
        }
        drop(list);
    }

    fn start_moving(&self) {
        if self.flaw != Flaw::Unannounced {
            self.tightness.start_moving();
        }
    }

    fn stop_moving(&self) {
        if self.flaw != Flaw::Unannounced {
            self.tightness.stop_moving(0);
        }
    }

    /// Parks slots that are in hand, or puts them home where nothing may be parked.
    fn park(&self, place: &Lock<Place>, slots: usize) {
        let mut place = place.lock();
        if place.closed {
            drop(place);
            self.node.lock().free += slots;
        } else {
            place.parked += slots;
        }
    }

    /// A thread on its way out: what its local held goes to the barn.
    fn exit(&self) {
        self.start_moving();
        let slots = core::mem::take(&mut self.local.lock().parked);
        self.park(&self.barn, slots);
        self.stop_moving();
    }

    /// A thread that fills its sheaf from slabs: nothing is live by that.
    fn refill(&self) {
        self.start_moving();
        let slots = {
            let mut node = self.node.lock();
            if node.tight {
                0
            } else {
                core::mem::take(&mut node.free)
            }
        };
        self.park(&self.local, slots);
        self.stop_moving();
    }
}

fn search(scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(scene);
}

/// The slot is never live, so whoever asks for it gets it, wherever others carry it meanwhile.
fn found(flaw: Flaw, carry: fn(&World)) {
    search(move || {
        let world = World::new(flaw);
        let other = Arc::clone(&world);
        let carrying = thread::spawn(move || carry(&other));
        assert!(world.alloc(), "refused while nothing is live");
        carrying.join().unwrap();
        let left = [&world.local, &world.barn].map(|place| place.lock().parked);
        assert_eq!(
            (left, world.node.lock().free),
            ([0, 0], 0),
            "one slot was two"
        );
    });
}

#[test]
fn a_slot_that_is_carried_to_the_barn_is_found() {
    found(Flaw::None, World::exit);
}

#[test]
fn a_slot_that_is_parked_again_after_a_search_is_found() {
    found(Flaw::None, |world| {
        world.tighten();
        world.loosen();
        world.refill();
    });
}

#[test]
#[should_panic(expected = "refused while nothing is live")]
fn moving_without_a_word_loses_sight_of_a_slot() {
    found(Flaw::Unannounced, World::exit);
}

#[test]
#[should_panic(expected = "refused while nothing is live")]
fn a_change_that_is_told_late_makes_a_refusal_wrong() {
    found(Flaw::LateChange, |world| {
        world.tighten();
        world.loosen();
        world.refill();
    });
}

#[test]
#[should_panic(expected = "refused while nothing is live")]
fn a_refusal_that_is_not_looked_at_twice_is_wrong() {
    found(Flaw::Hasty, |world| {
        world.tighten();
        world.loosen();
        world.refill();
    });
}

/// Two threads that ask for one slot: one gets it, one is refused.
#[test]
fn one_slot_is_given_once() {
    search(|| {
        let world = World::new(Flaw::None);
        let other = Arc::clone(&world);
        let asking = thread::spawn(move || other.alloc());
        let mine = world.alloc();
        let theirs = asking.join().unwrap();
        assert!(mine != theirs, "given to both or to nobody");
    });
}
