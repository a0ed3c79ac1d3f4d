//! All nodes of a cache as one.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;

use super::common::Common;
use super::want::Tight;
use super::{Drained, Node, Shortage, Supply, Want};
use crate::base::config::Config;
use crate::base::topology::Topology;
use crate::hook::counter::Counters;
use crate::page::{Hint, Source};
use crate::sheaf::Sheaf;
use crate::slab::{Blueprint, OwnerPtr, Slot, Surplus, Taken, home_of};

/// Slots that are looked at together for those of one home: the kernel's number for a flush, large enough to spread
/// the cost of a lock, small enough for the stack.
const BATCH: usize = if cfg!(sheaves_small) { 4 } else { 32 };

/// Every node of a cache.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(super) first: Node,
    /// Each on lines of its own.
    pub(super) others: Box<[CachePadded<Node>]>,
    pub(super) common: Common,
    topology: Topology,
}

/// The cache that has the nodes made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Founder {
    pub(crate) id: u32,
    pub(crate) owner: OwnerPtr,
    /// See [`Nature`](crate::slab::Nature).
    pub(crate) stable: bool,
}

/// Memory for the nodes of a topology.
#[derive(Debug)]
pub(crate) struct Room {
    topology: Topology,
    others: Vec<CachePadded<Node>>,
}

impl Room {
    pub(crate) fn for_nodes_of(topology: Topology) -> Option<Self> {
        let mut others = Vec::new();
        others.try_reserve_exact(topology.nodes() - 1).ok()?;
        Some(Self { topology, others })
    }
}

impl Founder {
    /// How slabs of a node are cut.
    pub(super) fn blueprint(self, config: &Config, home: u8) -> Blueprint {
        Blueprint {
            geometry: config.geometry,
            id: self.id,
            owner: self.owner,
            home,
            stable: self.stable,
            debug: config.debug,
        }
    }
}

impl Nodes {
    pub(crate) fn new(config: &Config, founder: Founder, source: &Source, room: Room) -> Self {
        let Room {
            topology,
            mut others,
        } = room;
        let here = topology.home();
        let node = |home: usize| {
            let reserve = if home == here { config.reserve } else { 0 };
            let home = u8::try_from(home).unwrap_or(0);
            Node::new(config, founder, home, reserve, source.clone())
        };
        others.extend((1..topology.nodes()).map(|home| node(home).into()));
        Self {
            first: node(0),
            common: Common::new(config.limit, !others.is_empty()),
            others: others.into_boxed_slice(),
            topology,
        }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether there is more than one.
    #[inline]
    pub(crate) fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        let others = self.others.iter().map(|node| &**node);
        core::iter::once(&self.first).chain(others)
    }

    fn at(&self, home: usize) -> &Node {
        match home.checked_sub(1) {
            None => &self.first,
            // Another cache's slot, which is refused wherever it is put, may have a home that is none here.
            Some(other) => self.others.get(other).map_or(&self.first, |node| &**node),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.first.source
    }

    /// For whoever wants slots of the node that the running thread draws on.
    pub(crate) fn supply(&self) -> Supply {
        Supply::of(self.topology.home())
    }

    /// For whoever makes the slabs of the reserve: they belong where they are kept.
    pub(crate) fn supply_of_reserve(&self) -> Supply {
        let with_reserve = self.iter().position(|node| node.reserve > 0);
        Supply::of(with_reserve.unwrap_or(0))
    }

    /// Fills a sheaf with as many slots as `want` says and it has room for, in one hold of a node's lock.
    pub(crate) fn refill(
        &self,
        sheaf: &mut Sheaf,
        want: Want,
        supply: &mut Supply,
    ) -> Result<usize, Shortage> {
        let below = sheaf.len();
        let taken = self.take_slots(want, supply, |slot| {
            let pushed = sheaf.push(slot);
            debug_assert!(pushed.is_ok(), "there was room for that many");
        })?;
        sheaf.reverse_above(below);
        Ok(taken.count)
    }

    /// Takes `n` slots one by one, or none.
    pub(crate) fn take(
        &self,
        n: usize,
        supply: &mut Supply,
        sink: impl FnMut(Slot),
    ) -> Result<(), Shortage> {
        self.take_slots(Want::exactly(n), supply, sink).map(drop)
    }

    fn take_slots(
        &self,
        want: Want,
        supply: &mut Supply,
        mut sink: impl FnMut(Slot),
    ) -> Result<Taken, Shortage> {
        let node = self.at(supply.home);
        match node.take(&self.common, want, supply, &mut sink) {
            Err(shortage @ Shortage::Slabs { .. }) if self.are_several() => {
                self.take_elsewhere(want, supply, shortage, &mut sink)
            }
            taken => taken,
        }
    }

    /// Takes one slot of a node whose lock is not held.
    pub(crate) fn try_take(&self) -> Option<Slot> {
        let mut slot = None;
        let home = self.topology.home();
        let mut nodes = core::iter::once(self.at(home)).chain(self.away_from(home));
        nodes.find_map(|node| {
            let sink = |taken| slot = Some(taken);
            node.try_take(&self.common, Want::exactly(1), false, sink)
        });
        slot
    }

    /// Puts slots back into their slabs, those of a node in one hold of its lock, keeping `min_partial` slabs of each.
    pub(crate) fn drain(
        &self,
        slots: impl Iterator<Item = Slot>,
        drained: &mut Drained,
        counters: &Counters,
    ) {
        if !self.are_several() {
            return self.first.drain(&self.common, slots, drained, counters);
        }
        self.each_home(slots, |node, slots| {
            node.drain(&self.common, slots, drained, counters);
        });
    }

    /// Sorts slots by their nodes: calls `sink` with a node and slots of it, once with no slots too if there are none.
    pub(super) fn each_home(
        &self,
        slots: impl Iterator<Item = Slot>,
        mut sink: impl FnMut(&Node, &mut dyn Iterator<Item = Slot>),
    ) {
        let mut slots = slots;
        if !self.are_several() {
            return sink(&self.first, &mut slots);
        }
        let mut batch = ArrayVec::<Slot, BATCH>::new();
        loop {
            batch.extend(slots.by_ref().take(BATCH));
            let Some(last) = batch.last() else { return };
            let mut home = home_of(last);
            loop {
                let mut kept = 0;
                for at in 0..batch.len() {
                    if home_of(&batch[at]) != home {
                        batch.swap(kept, at);
                        kept += 1;
                    }
                }
                sink(self.at(home), &mut batch.drain(kept..));
                let Some(last) = batch.last() else { break };
                home = home_of(last);
            }
        }
    }

    /// From now on nothing but what is needed at once is given out. With `calm` slots out or fewer,
    /// [`Drained`] says so.
    pub(crate) fn tighten(&self, calm: usize) {
        self.common.start_tight();
        self.iter()
            .for_each(|node| node.inner.lock().tight = Some(Tight { calm }));
    }

    /// Gives out slots to be parked again.
    pub(crate) fn loosen(&self) {
        self.iter().for_each(|node| node.inner.lock().tight = None);
    }

    /// Takes out every empty slab but the reserve.
    pub(crate) fn shrink(&self, counters: &Counters) -> Option<Surplus> {
        let mut surplus = None;
        self.iter()
            .for_each(|node| node.shrink(&self.common, &mut surplus, counters));
        surplus
    }

    /// Keeps no slab from now on but those in use.
    pub(crate) fn retire(&self, counters: &Counters) -> Option<Surplus> {
        self.iter()
            .for_each(|node| node.inner.lock().retired = true);
        self.shrink(counters)
    }

    /// As [`Node::gather`], for the node whose slots are wanted.
    pub(crate) fn gather(
        &self,
        slots: usize,
        config: &Config,
        hint: Hint,
        supply: &mut Supply,
        counters: &Counters,
    ) -> bool {
        let node = self.at(supply.home);
        node.gather(slots, config, hint, supply, counters)
    }

    /// Brings new slabs in.
    pub(crate) fn bring_in(&self, supply: &mut Supply) {
        drop(self.at(supply.home).lock_with(supply));
    }

    /// Counts a block of pages in.
    #[cfg(any_allocator)]
    pub(crate) fn add_block(&self, pages: usize) {
        let mut inner = self.first.inner.lock();
        inner.blocks += 1;
        inner.block_pages += pages;
    }

    /// Counts a block of pages out; whether the cache ends with it.
    #[cfg(any_allocator)]
    pub(crate) fn remove_block(&self, pages: usize) -> bool {
        let mut inner = self.first.inner.lock();
        inner.blocks -= 1;
        inner.block_pages -= pages;
        inner.ended(&self.common)
    }

    /// Counts a block anew that has another number of pages now.
    #[cfg(any_allocator)]
    pub(crate) fn resize_block(&self, old: usize, new: usize) {
        let mut inner = self.first.inner.lock();
        inner.block_pages = inner.block_pages - old + new;
    }

    /// Declares that no handle is left. Whether something is still out, so that its return ends the cache.
    pub(crate) fn orphan(&self) -> bool {
        self.common.leases.begin();
        for node in self.iter() {
            let mut inner = node.inner.lock();
            let in_use = inner.in_use();
            inner.tenancy.orphan(in_use, &self.common.leases);
        }
        self.common.leases.are_left()
    }
}
