//! The end of a cache with two nodes, as its counts; the words are the real [`Tenancy`] and [`Leases`].
#![forbid(unsafe_code)]

use loom::sync::Arc;
use loom::thread;

use super::search;
use crate::node::tenancy::{Leases, Tenancy};
use crate::sync::{AtomicUsize, Lock, Ordering};

/// A cache of two nodes as its counts: shares, and what is out of each.
struct Shared {
    shares: AtomicUsize,
    nodes: [Lock<(usize, Tenancy)>; 2],
    leases: Leases,
    ended: AtomicUsize,
    /// A twin counts no lease of its own while it tells the nodes.
    hasty: bool,
}

impl Shared {
    /// One handle's share, and slots that are out.
    fn new(out: [usize; 2], hasty: bool) -> Arc<Self> {
        Arc::new(Self {
            shares: AtomicUsize::new(1),
            nodes: out.map(|out| Lock::new((out, Tenancy::default()))),
            leases: Leases::new(),
            ended: AtomicUsize::new(0),
            hasty,
        })
    }

    fn keep(&self) {
        // Relaxed: as in `Arc`.
        let before = self.shares.fetch_add(1, Ordering::Relaxed);
        assert!(before > 0, "kept after the end");
    }

    fn let_go(&self) {
        // AcqRel: as in `Arc`, whose last share to go is the end.
        let before = self.shares.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "let go after the end");
        if before == 1 {
            // Relaxed: counted.
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last handle goes: `Cache::close`, then its share.
    fn close(&self) {
        self.keep();
        if !self.hasty {
            self.leases.begin();
        }
        for node in &self.nodes {
            let mut node = node.lock();
            let in_use = node.0 > 0;
            node.1.orphan(in_use, &self.leases);
        }
        if !self.hasty && !self.leases.are_left() {
            self.let_go();
        }
        self.let_go();
    }

    /// A box is cloned into a slot of a node, by who has one: `alloc_from_slab`.
    fn copy_to(&self, home: usize) {
        let mut node = self.nodes[home].lock();
        node.0 += 1;
        node.1.took(&self.leases);
    }

    /// A slot comes home: `free_slow`.
    fn free(&self, home: usize) {
        self.keep();
        let last = {
            let mut node = self.nodes[home].lock();
            node.0 -= 1;
            let in_use = node.0 > 0;
            node.1.ends(in_use, &self.leases)
        };
        if last {
            self.let_go();
        }
        self.let_go();
    }
}

/// Close against the last frees: whoever is last ends the cache, once, and nobody touches it after that.
fn the_last_to_come_home_ends(homes: [usize; 2], hasty: bool) {
    search(move || {
        let mut out = [0, 0];
        homes.iter().for_each(|home| out[*home] += 1);
        let cache = Shared::new(out, hasty);
        let freeing = homes.map(|home| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.free(home))
        });
        cache.close();
        freeing
            .into_iter()
            .for_each(|freeing| freeing.join().unwrap());
        // Relaxed: the threads are joined.
        assert_eq!(cache.ended.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn the_last_to_come_home_ends_the_cache_once() {
    the_last_to_come_home_ends([0, 0], false);
}

#[test]
fn the_last_of_two_nodes_ends_the_cache_once() {
    the_last_to_come_home_ends([0, 1], false);
}

#[test]
#[should_panic(expected = "after the end")]
fn a_node_that_is_told_last_may_be_told_of_nothing() {
    the_last_to_come_home_ends([0, 1], true);
}

/// A box that is cloned into a node to which all has come home.
#[test]
fn a_clone_keeps_the_cache() {
    search(|| {
        let cache = Shared::new([1, 1], false);
        let other = Arc::clone(&cache);
        let cloning = thread::spawn(move || {
            other.copy_to(0);
            other.free(1);
            other.free(0);
        });
        let freeing = Arc::clone(&cache);
        let freeing = thread::spawn(move || freeing.free(0));
        cache.close();
        cloning.join().unwrap();
        freeing.join().unwrap();
        // Relaxed: the threads are joined.
        assert_eq!(cache.ended.load(Ordering::Relaxed), 1);
    });
}
