//! Models of deferred free, on the clock that counts readers: a thread's rcu sheaf, the queue, and the reapers are
//! counts behind locks, in the order in which `local::rcu` and `cache::defer` take them. The tickets are the real ones.
#![cfg(all(test, loom))]
#![forbid(unsafe_code)]

use loom::sync::Arc;
use loom::thread;

use super::counting::Counting;
use super::tickets::{Clock, Ticket, Tickets};
use crate::sync::{AtomicUsize, Backoff, Lock, Ordering};

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// A sheaf is handed in after the lock was let go under which it was taken.
    LateHandIn,
    /// A closed cache's thread may begin another sheaf.
    NotTheLast,
    /// The stamp is read before the sheaf is taken.
    EarlyStamp,
}

/// One thread's sheaf, of one object at most.
#[derive(Default)]
struct Side {
    objects: usize,
    last: bool,
}

#[derive(Default)]
struct Queue {
    batches: Vec<(usize, Ticket)>,
    /// Retired past the sheaf.
    shared: usize,
    reaped: usize,
}

/// A cache with one thread's sheaf. Readers see one object, until it is unlinked.
struct World {
    tickets: Tickets<Counting>,
    list: Lock<()>,
    side: Lock<Side>,
    queue: Lock<Queue>,
    linked: AtomicUsize,
    freed: AtomicUsize,
    flaw: Flaw,
}

impl World {
    /// With objects in the sheaf.
    fn new(objects: usize, flaw: Flaw) -> Arc<Self> {
        Arc::new(Self {
            tickets: Tickets::new(Counting::new()),
            list: Lock::new(()),
            side: Lock::new(Side {
                objects,
                last: false,
            }),
            queue: Lock::new(Queue::default()),
            linked: AtomicUsize::new(1),
            freed: AtomicUsize::new(0),
            flaw,
        })
    }

    fn hand_in(&self, objects: usize) {
        if objects > 0 {
            let mut queue = self.queue.lock();
            let ticket = self.tickets.stamp();
            queue.batches.push((objects, ticket));
        }
    }

    /// The owner retires: a full sheaf is handed in and another begun.
    fn retire(&self) {
        let mut side = self.side.lock();
        if side.objects > 0 {
            let full = core::mem::take(&mut side.objects);
            if self.flaw == Flaw::LateHandIn {
                drop(side);
                self.hand_in(full);
                side = self.side.lock();
            } else {
                self.hand_in(full);
            }
        }
        if side.last {
            drop(side);
            self.queue.lock().shared += 1;
        } else {
            side.objects += 1;
        }
    }

    /// The owner goes: what it left is handed in.
    fn exit(&self) {
        let list = self.list.lock();
        let left = core::mem::take(&mut self.side.lock().objects);
        if self.flaw == Flaw::LateHandIn {
            drop(list);
            self.hand_in(left);
        } else {
            self.hand_in(left);
            drop(list);
        }
    }

    /// A drainer hands in the owner's sheaf; with `last` it begins no other.
    fn harvest(&self, last: bool) {
        let _list = self.list.lock();
        let early = self.tickets.stamp();
        if self.flaw == Flaw::EarlyStamp {
            // Somebody else is waiting for the same grace period.
            self.tickets.push(early);
        }
        let taken = {
            let mut side = self.side.lock();
            side.last |= last && self.flaw != Flaw::NotTheLast;
            core::mem::take(&mut side.objects)
        };
        if self.flaw == Flaw::EarlyStamp && taken > 0 {
            self.queue.lock().batches.push((taken, early));
        } else {
            self.hand_in(taken);
        }
    }

    /// Reaps what is due; whether anything is left.
    fn reap(&self) -> bool {
        let mut queue = self.queue.lock();
        let Some((objects, ticket)) = queue.batches.first().copied() else {
            return false;
        };
        self.tickets.push(ticket);
        if self.tickets.is_over(ticket) {
            queue.batches.remove(0);
            queue.reaped += objects;
            // Relaxed: what is seen of it is seen through the clock.
            self.freed.store(1, Ordering::Relaxed);
        }
        !queue.batches.is_empty()
    }

    fn barrier(&self) {
        self.harvest(false);
        let backoff = Backoff::new();
        while self.reap() {
            backoff.wait();
        }
    }

    /// A reader: what it sees stays for as long as it is pinned.
    fn read(&self) {
        let pinned = self.tickets.clock().pin();
        // Acquire: as in a cell's `load`.
        if self.linked.load(Ordering::Acquire) == 1 {
            // Relaxed: see `reap`.
            let freed = self.freed.load(Ordering::Relaxed);
            assert_eq!(freed, 0, "read after its end");
        }
        self.tickets.clock().unpin(pinned);
    }

    fn unlink_and_retire(&self) {
        // Release: as in a cell's `swap`.
        self.linked.store(0, Ordering::Release);
        self.retire();
    }
}

fn search(scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(scene);
}

/// One object was retired before the barrier; meanwhile its owner does something.
fn covered(flaw: Flaw, owner: fn(&World)) {
    search(move || {
        let world = World::new(1, flaw);
        let other = Arc::clone(&world);
        let owning = thread::spawn(move || owner(&other));
        world.barrier();
        assert!(world.queue.lock().reaped >= 1, "the barrier missed it");
        owning.join().unwrap();
    });
}

#[test]
fn a_barrier_covers_a_sheaf_that_is_being_handed_in() {
    covered(Flaw::None, World::retire);
}

#[test]
fn a_barrier_covers_what_an_exiting_thread_left() {
    covered(Flaw::None, World::exit);
}

#[test]
#[should_panic(expected = "the barrier missed it")]
fn a_sheaf_in_nobodys_hands_is_missed() {
    covered(Flaw::LateHandIn, World::retire);
}

#[test]
#[should_panic(expected = "the barrier missed it")]
fn what_is_left_in_nobodys_hands_is_missed() {
    covered(Flaw::LateHandIn, World::exit);
}

/// A close beside an owner that retires and a reaper: every object is somewhere, once, and none in the thread's sheaf.
fn closed(flaw: Flaw) {
    search(move || {
        let world = World::new(1, flaw);
        let others = [Arc::clone(&world), Arc::clone(&world)];
        let [owner, reaper] = others;
        let owning = thread::spawn(move || owner.retire());
        let reaping = thread::spawn(move || {
            reaper.reap();
        });
        world.harvest(true);
        owning.join().unwrap();
        reaping.join().unwrap();
        let queue = world.queue.lock();
        let waiting: usize = queue.batches.iter().map(|(objects, _)| objects).sum();
        assert_eq!(world.side.lock().objects, 0, "left behind");
        assert_eq!(waiting + queue.shared + queue.reaped, 2, "lost or doubled");
    });
}

#[test]
fn a_close_takes_all_while_others_retire_and_reap() {
    closed(Flaw::None);
}

#[test]
#[should_panic(expected = "left behind")]
fn a_sheaf_that_is_begun_beside_a_close_is_left_behind() {
    closed(Flaw::NotTheLast);
}

/// A sheaf is handed in by age while its owner fills it with what a reader sees.
fn aged(flaw: Flaw) {
    search(move || {
        let world = World::new(0, flaw);
        let others = [Arc::clone(&world), Arc::clone(&world)];
        let [owner, reader] = others;
        let owning = thread::spawn(move || owner.unlink_and_retire());
        let reading = thread::spawn(move || reader.read());
        world.harvest(false);
        world.reap();
        owning.join().unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn what_is_handed_in_while_it_fills_outlives_its_readers() {
    aged(Flaw::None);
}

#[test]
#[should_panic(expected = "read after its end")]
fn a_stamp_from_before_the_taking_is_too_early() {
    aged(Flaw::EarlyStamp);
}

/// Grace periods are over in their order, and each comes to its end.
#[test]
fn a_ticket_is_over_when_its_readers_are_gone() {
    search(|| {
        let world = World::new(0, Flaw::None);
        let other = Arc::clone(&world);
        let reading = thread::spawn(move || other.read());
        let ticket = world.tickets.stamp();
        let backoff = Backoff::new();
        while !world.tickets.is_over(ticket) {
            world.tickets.push(ticket);
            backoff.wait();
        }
        assert!(world.tickets.clock().done() >= ticket.0);
        reading.join().unwrap();
    });
}
