//! Models of a node's bookkeeping on a fake of its slabs: two slabs of one slot each, as counts.
#![cfg(all(test, loom))]
#![forbid(unsafe_code)]

use loom::sync::Arc;
use loom::thread;

use super::quota::Quota;
use crate::sync::{AtomicUsize, Lock, Ordering};

/// What the node's lock guards: the bit of each slab, and whether the slab stands.
#[derive(Clone, Copy)]
struct Slab {
    free: bool,
    stands: bool,
}

struct Node {
    slabs: Lock<[Slab; 2]>,
    /// As `Node::bare`: slabs that stand and are not warm.
    bare: AtomicUsize,
    warm: [AtomicUsize; 2],
    /// A twin looks for an empty slab and takes it away in two holds of the lock.
    in_two_holds: bool,
}

impl Node {
    fn new(in_two_holds: bool) -> Arc<Self> {
        let slab = Slab {
            free: true,
            stands: true,
        };
        Arc::new(Self {
            slabs: Lock::new([slab; 2]),
            bare: AtomicUsize::new(0),
            warm: [AtomicUsize::new(0), AtomicUsize::new(0)],
            in_two_holds,
        })
    }

    /// `take` of one slot; the first of a slab sets it up.
    fn take(&self) -> Option<usize> {
        let mut slabs = self.slabs.lock();
        let at = slabs.iter().position(|slab| slab.free && slab.stands)?;
        slabs[at].free = false;
        // Relaxed: as in `Node::count_bare`.
        if self.warm[at].load(Ordering::Relaxed) == 0 {
            // Relaxed: as above.
            self.bare.fetch_add(1, Ordering::Relaxed);
        }
        Some(at)
    }

    /// `drain` of one slot that keeps no empty slab.
    fn put(&self, at: usize) {
        let mut slabs = self.slabs.lock();
        slabs[at].free = true;
        if self.in_two_holds {
            drop(slabs);
            slabs = self.slabs.lock();
        }
        slabs[at].stands = false;
    }

    /// `warm_up` of one slot in hand; whether it is warm after that.
    fn warm_up(&self, at: usize) -> bool {
        // Relaxed: as in `Node::warm_up`.
        if self.bare.load(Ordering::Relaxed) > 0 {
            // Relaxed: as in `populate_run_of`.
            if self.warm[at].fetch_max(1, Ordering::Relaxed) == 0 {
                // Relaxed: as above.
                self.bare.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // Relaxed: read by the one who wrote it, or synchronised by the lock that gave the slot.
        self.warm[at].load(Ordering::Relaxed) == 1
    }
}

fn search(scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(scene);
}

/// The bitmap against the lists: one thread puts the last slot of a slab home, one takes a slot, of which there is no
/// other. A slab whose slot is out stays.
fn a_slab_with_a_slot_out_stays(in_two_holds: bool) {
    search(move || {
        let node = Node::new(in_two_holds);
        let held = node.take().expect("both are free");
        let _kept = node.take().expect("one is free");
        let other = Arc::clone(&node);
        let putting = thread::spawn(move || other.put(held));
        let taken = node.take();
        putting.join().unwrap();
        if let Some(at) = taken {
            assert!(
                node.slabs.lock()[at].stands,
                "a slab went with its slot out"
            );
        }
    });
}

#[test]
fn an_emptied_slab_goes_or_is_drawn_on() {
    a_slab_with_a_slot_out_stays(false);
}

#[test]
#[should_panic(expected = "a slab went with its slot out")]
fn an_emptied_slab_that_goes_later_may_be_in_use() {
    a_slab_with_a_slot_out_stays(true);
}

/// Whoever borrows a slot has it warm, whatever others warm meanwhile.
#[test]
fn a_borrowed_slot_is_warm() {
    search(|| {
        let node = Node::new(false);
        let other = Arc::clone(&node);
        let borrow = |node: &Node| {
            let at = node.take().expect("there are two");
            assert!(node.warm_up(at), "a cold slot was lent");
        };
        let borrowing = thread::spawn(move || borrow(&other));
        borrow(&node);
        borrowing.join().unwrap();
    });
}

/// Two nodes and one limit. Whoever is refused was so while as many slots were out.
struct Limited {
    nodes: [Lock<usize>; 2],
    quota: Quota,
    /// What users have.
    live: AtomicUsize,
    /// A twin counts slots before it knows that its node has them.
    blind: bool,
}

impl Limited {
    /// One slot in each node, of which one may be out.
    fn new(blind: bool) -> Arc<Self> {
        Arc::new(Self {
            nodes: [Lock::new(1), Lock::new(1)],
            quota: Quota::new(1),
            live: AtomicUsize::new(0),
            blind,
        })
    }

    /// `None` where the limit refuses; else whether there was a slot.
    fn take(&self, at: usize) -> Option<bool> {
        let mut free = self.nodes[at].lock();
        if *free == 0 && !self.blind {
            return Some(false);
        }
        self.quota.take(1, 1)?;
        if *free == 0 {
            self.quota.put(1);
            return Some(false);
        }
        *free -= 1;
        drop(free);
        // Relaxed: counted.
        let before = self.live.fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "more than the limit");
        Some(true)
    }

    fn put(&self, at: usize) {
        // Relaxed: counted.
        self.live.fetch_sub(1, Ordering::Relaxed);
        *self.nodes[at].lock() += 1;
        self.quota.put(1);
    }
}

#[test]
fn two_nodes_keep_one_limit() {
    search(|| {
        let pool = Limited::new(false);
        let other = Arc::clone(&pool);
        let using = thread::spawn(move || {
            if other.take(1) == Some(true) {
                other.put(1);
            }
        });
        if pool.take(0) == Some(true) {
            pool.put(0);
        }
        using.join().unwrap();
        assert_eq!(pool.quota.out(), 0, "a slot that is home counts");
        assert_eq!(pool.take(1), Some(true), "refused while nothing is out");
    });
}

fn a_thread_that_gets_nothing_is_in_nobodys_way(blind: bool) {
    search(move || {
        let pool = Limited::new(blind);
        *pool.nodes[1].lock() = 0;
        let other = Arc::clone(&pool);
        let asking = thread::spawn(move || other.take(1));
        let mine = pool.take(0);
        asking.join().unwrap();
        assert_eq!(mine, Some(true), "refused while nothing is out");
    });
}

#[test]
fn slots_are_counted_when_they_are_known_to_be_there() {
    a_thread_that_gets_nothing_is_in_nobodys_way(false);
}

#[test]
#[should_panic(expected = "refused while nothing is out")]
fn slots_that_are_counted_too_early_are_in_the_way() {
    a_thread_that_gets_nothing_is_in_nobodys_way(true);
}
