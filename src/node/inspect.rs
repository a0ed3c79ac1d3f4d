//! Looking through the slabs of all nodes.
#![forbid(unsafe_code)]

use arrayvec::ArrayVec;

use super::{MAX_NODES, NodeCounts, Nodes};
use crate::base::layout::PAGE_SIZE;
use crate::slab::SlabSet;

impl Nodes {
    /// Looks at the slabs of one node after the other, with its lock held.
    pub(crate) fn inspect(&self, mut f: impl FnMut(&SlabSet)) {
        self.iter().for_each(|node| f(&node.inner.lock().slabs));
    }

    /// Locks all nodes, one after the other.
    pub(crate) fn hold_locks(&self) -> impl Iterator<Item = impl Sized + '_> {
        self.iter().map(|node| node.inner.lock())
    }

    /// Runs `f` while no slab can come or go.
    pub(crate) fn hold<R>(&self, f: impl FnOnce() -> R) -> R {
        let _first = self.first.inner.lock();
        if self.others.is_empty() {
            return f();
        }
        let others = self.others.iter().map(|node| node.inner.lock());
        let _others: ArrayVec<_, MAX_NODES> = others.collect();
        f()
    }

    /// What each node has, and whatever is kept with the first.
    pub(crate) fn counts_each(&self) -> impl Iterator<Item = NodeCounts> {
        self.iter().map(|node| {
            let inner = node.inner.lock();
            NodeCounts {
                slabs: inner.slabs.slabs(),
                slots: inner.slabs.slots(),
                out: inner.slabs.out(),
                blocks: inner.blocks,
                block_bytes: inner.block_pages * PAGE_SIZE,
                bytes: (inner.slabs.pages() + inner.block_pages) * PAGE_SIZE,
            }
        })
    }

    /// What all nodes have.
    pub(crate) fn counts(&self) -> NodeCounts {
        let add = |sum: NodeCounts, of_node: NodeCounts| NodeCounts {
            slabs: sum.slabs + of_node.slabs,
            slots: sum.slots + of_node.slots,
            out: sum.out + of_node.out,
            blocks: sum.blocks + of_node.blocks,
            block_bytes: sum.block_bytes + of_node.block_bytes,
            bytes: sum.bytes + of_node.bytes,
        };
        self.counts_each().fold(NodeCounts::default(), add)
    }
}
