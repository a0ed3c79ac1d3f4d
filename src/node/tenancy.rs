//! What keeps a cache whose handles are gone.
#![forbid(unsafe_code)]

use crate::sync::{AtomicUsize, Ordering};

/// Whether a node's cache has lost its handles while something of the node was out.
///
/// Behind the node's lock. Slots and blocks that are out keep their cache in memory by one count that is left to
/// them all; whoever brings the last of them home is told so, once, and takes the count back. A node has a lease while
/// something of it is out. One to which all had come home may get another: a box that is out can be cloned.
#[derive(Debug, Default)]
pub(crate) struct Tenancy {
    orphaned: bool,
    leased: bool,
}

/// The leases of a cache's nodes, and one more while they are being told.
#[derive(Debug)]
pub(crate) struct Leases(AtomicUsize);

impl Leases {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The last handle is gone. Before any node is told.
    pub(crate) fn begin(&self) {
        self.add();
    }

    /// All nodes were told. Whether something is out, to which the count is left.
    pub(crate) fn are_left(&self) -> bool {
        !self.end()
    }

    fn add(&self) {
        // Relaxed: a count; who takes the last off it drops a share of the cache, as all others do who touched it
        // before.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it was the last.
    fn end(&self) -> bool {
        // Relaxed: as above.
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl Tenancy {
    /// The last handle is gone.
    pub(crate) fn orphan(&mut self, in_use: bool, leases: &Leases) {
        self.orphaned = true;
        if in_use {
            self.leased = true;
            leases.add();
        }
    }

    /// Something was taken out. In an orphaned cache whoever did that has something of it, so it has not ended.
    pub(crate) fn took(&mut self, leases: &Leases) {
        if self.orphaned && !self.leased {
            self.leased = true;
            leases.add();
        }
    }

    /// Something came home. Whether it was the last thing that kept an orphaned cache; true once.
    pub(crate) fn ends(&mut self, in_use: bool, leases: &Leases) -> bool {
        let is_home = self.leased && !in_use;
        self.leased &= !is_home;
        is_home && leases.end()
    }
}
