//! A barn for each node, and what crosses between nodes.
//!
//! A thread trades at the barn of the node that it stands on. The fast path does not ask where a slot belongs, so a
//! thread's sheaves may hold slots of other nodes, which it frees and takes again. But no barn takes them in: a sheaf
//! that is about to change hands is looked through, and its *strange* slots go home first, those of a node in one hold
//! of its lock. So a thread that only frees what others allocate sends a whole sheaf at a time, and whoever trades
//! for a full sheaf gets slots of its own node. The kernel does not let such slots into sheaves at all, at the price
//! of a lock for each.
//!
//! On a node without memory what belongs to its home is not strange.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use super::limit::Moving;
use super::{Batch, Cache};
use crate::barn::Barn;
use crate::base::config::Config;
use crate::base::topology::Topology;
use crate::hook::counter::Counter;
use crate::sheaf::Sheaf;
use crate::slab::{Slot, home_of};

/// The barns of a cache.
#[derive(Debug)]
pub(super) struct Barns {
    first: Barn,
    /// Each on lines of its own.
    others: Box<[CachePadded<Barn>]>,
}

impl Barns {
    /// `None` if there is no memory for those of several nodes.
    pub(super) fn try_new(config: &Config, topology: &Topology) -> Option<Self> {
        let (full, empty) = config.barn;
        let barn = || Barn::new(full, empty);
        let mut others = Vec::new();
        others.try_reserve_exact(topology.nodes() - 1).ok()?;
        others.extend((1..topology.nodes()).map(|_| barn().into()));
        Some(Self {
            first: barn(),
            others: others.into_boxed_slice(),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Barn> {
        let others = self.others.iter().map(|barn| &**barn);
        core::iter::once(&self.first).chain(others)
    }

    /// The barn of a node.
    #[inline]
    fn at(&self, node: usize) -> &Barn {
        match node.checked_sub(1) {
            None => &self.first,
            Some(other) => &self.others[other],
        }
    }

    pub(super) fn close(&self) {
        self.iter().for_each(Barn::close);
    }

    pub(super) fn open(&self) {
        self.iter().for_each(Barn::open);
    }

    /// Full sheaves of any barn, until there are none.
    pub(super) fn take_full(&self) -> impl Iterator<Item = Sheaf> {
        self.iter()
            .flat_map(|barn| core::iter::from_fn(|| barn.get_full()))
    }

    /// Empty sheaves of any barn, until there are none.
    pub(super) fn take_empty(&self) -> impl Iterator<Item = Sheaf> {
        self.iter()
            .flat_map(|barn| core::iter::from_fn(|| barn.get_empty()))
    }

    /// Slots in all barns.
    pub(super) fn slots(&self) -> usize {
        self.iter().map(|barn| barn.counts().2).sum()
    }
}

impl Cache {
    /// The barn of the node that the running thread stands on.
    #[inline]
    pub(super) fn barn(&self) -> &Barn {
        self.barns.at(self.nodes.topology().here())
    }

    /// Whether some slot of a sheaf belongs to another node than the running thread draws on.
    #[inline]
    pub(super) fn has_strange(&self, sheaf: &Sheaf) -> bool {
        self.nodes.are_several() && self.looks_strange(sheaf)
    }

    #[cold]
    fn looks_strange(&self, sheaf: &Sheaf) -> bool {
        let home = self.nodes.topology().home();
        sheaf.iter().any(|slot| home_of(slot) != home)
    }
}

impl Moving<'_> {
    /// Sends the strange slots of a sheaf home.
    #[inline]
    pub(super) fn send_home(&mut self, sheaf: &mut Sheaf) {
        if self.cache().nodes.are_several() {
            self.send_strange(sheaf);
        }
    }

    /// Sends the strange slots of a batch home.
    #[inline]
    pub(super) fn send_home_of(&mut self, batch: &mut Batch) {
        if self.cache().nodes.are_several() {
            self.send_strange_of(batch);
        }
    }

    #[cold]
    fn send_strange_of(&mut self, batch: &mut Batch) {
        let home = self.cache().nodes.topology().home();
        let mut kept = 0;
        for at in 0..batch.len() {
            if home_of(&batch[at]) == home {
                batch.swap(kept, at);
                kept += 1;
            }
        }
        self.cache()
            .counters
            .add(Counter::FreeSlowpath, batch.len() - kept);
        self.put_home(batch.drain(kept..));
    }

    /// Makes room in a full sheaf: sends its strange slots home, or all if there are none.
    pub(super) fn make_room(&mut self, sheaf: &mut Sheaf) {
        self.send_home(sheaf);
        if sheaf.is_full() {
            self.flush(sheaf);
        }
    }

    #[cold]
    fn send_strange(&mut self, sheaf: &mut Sheaf) {
        let cache = self.cache();
        let home = cache.nodes.topology().home();
        let before = sheaf.len();
        self.put_home(sheaf.drain_if(|slot: &Slot| home_of(slot) != home));
        cache
            .counters
            .add(Counter::SheafFlush, before - sheaf.len());
    }
}
