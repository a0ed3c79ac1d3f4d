//! An ordered map of ranges that do not overlap: a B-tree, which readers walk without locks.
//!
//! Writers take a lock, copy the nodes that change, and publish the copies by one store into the pointer above them.
//! What the copies replace is retired when the lock has been let go. All nodes that the worst case wants are set aside before
//! the lock is taken: nothing is allocated under it.
//!
//! A node that has become empty is taken out of its parent, and nodes are not merged otherwise.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrayvec::ArrayVec;
use sheaves::rcu::Guard;

use super::feed::Feed;
use super::node::{Inner, Leaf, Link, Locked, Node, Proof, Range, with};

/// Levels of the highest tree: more than 64-bit addresses can fill.
const HIGHEST: usize = 20;
/// Nodes that a change of the highest tree makes, and replaces, at most.
pub(crate) const WORST: usize = worst(HIGHEST);

/// Nodes that an insertion into a tree of so many levels makes at most: each level is split, and there is a new root.
const fn worst(levels: usize) -> usize {
    2 * levels + 1
}

/// The range overlaps one that is mapped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap(pub(crate) Range);

pub(crate) struct RangeMap<F: Feed> {
    root: Link,
    levels: AtomicUsize,
    writing: Mutex<Locked>,
    feed: F,
}

/// What a thread needs to change a map.
pub(crate) struct Writer<'a, F: Feed> {
    map: &'a RangeMap<F>,
    stock: F::Stock,
    /// Unlinked under the lock, to be retired after it.
    replaced: ArrayVec<NonNull<Node>, WORST>,
}

/// The inner nodes on the way to a leaf, and which child was taken in each.
type Path<'a> = ArrayVec<(&'a Link, &'a Inner, usize), HIGHEST>;

/// Where a range is, or would be.
struct Place<'a> {
    link: &'a Link,
    leaf: &'a Leaf,
    /// In the leaf.
    at: usize,
    /// Ranges of the leaves to the right start here or after it.
    beyond: u64,
}

/// Which child has ranges that start at `start`.
fn child(inner: &Inner, start: u64) -> usize {
    inner[1..].partition_point(|(least, _)| *least <= start)
}

impl<F: Feed> RangeMap<F> {
    pub(crate) fn new() -> Self {
        let feed = F::new();
        let mut stock = F::Stock::default();
        feed.fill(&mut stock, 1);
        let root = F::take(&mut stock, || Node::Leaf(Leaf::new()));
        F::rest(&mut stock);
        Self {
            root: Link::new(root),
            levels: AtomicUsize::new(1),
            writing: Mutex::new(Locked),
            feed,
        }
    }

    pub(crate) fn writer(&self) -> Writer<'_, F> {
        Writer {
            map: self,
            stock: F::Stock::default(),
            replaced: ArrayVec::new(),
        }
    }

    /// The range that `at` is in.
    pub(crate) fn get(&self, at: u64, guard: &Guard) -> Option<Range> {
        self.floor(at, guard).filter(|range| at < range.end)
    }

    /// All ranges, in order.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test of the map"))]
    pub(crate) fn ranges(&self, guard: &Guard) -> Vec<Range> {
        fn add(node: &Node, guard: &Guard, all: &mut Vec<Range>) {
            match node {
                Node::Leaf(leaf) => all.extend_from_slice(leaf),
                Node::Inner(inner) => {
                    for (_, link) in inner {
                        add(link.get(guard), guard, all);
                    }
                }
            }
        }
        let mut all = Vec::new();
        add(self.root.get(guard), guard, &mut all);
        all
    }

    /// The last range that starts at `at` or before.
    ///
    /// It may be in the leaf left of the one that has ranges that start at `at`: never further, since none is empty.
    fn floor(&self, at: u64, proof: &impl Proof) -> Option<Range> {
        let mut node = self.root.get(proof);
        let mut left = None;
        loop {
            match node {
                Node::Inner(inner) => {
                    let index = child(inner, at);
                    if index > 0 {
                        left = Some(&inner[index - 1].1);
                    }
                    node = inner[index].1.get(proof);
                }
                Node::Leaf(leaf) => {
                    let before = leaf.partition_point(|range| range.start <= at);
                    match before.checked_sub(1) {
                        Some(last) => return Some(leaf[last]),
                        // The second time all ranges start before.
                        None => node = left.take()?.get(proof),
                    }
                }
            }
        }
    }

    /// The leaf that has ranges that start at `start`; `path` gets the way there.
    #[inline]
    fn descend<'a>(&'a self, start: u64, path: &mut Path<'a>, proof: &'a impl Proof) -> Place<'a> {
        let mut link = &self.root;
        let mut beyond = u64::MAX;
        loop {
            match link.get(proof) {
                Node::Leaf(leaf) => {
                    let at = leaf.partition_point(|range| range.start < start);
                    return Place {
                        link,
                        leaf,
                        at,
                        beyond,
                    };
                }
                Node::Inner(inner) => {
                    let index = child(inner, start);
                    beyond = inner.get(index + 1).map_or(beyond, |(least, _)| *least);
                    path.push((link, inner, index));
                    link = &inner[index].1;
                }
            }
        }
    }

    /// A range that overlaps one that would stand at this place.
    fn overlap(&self, range: &Range, place: &Place<'_>, proof: &impl Proof) -> Option<Range> {
        let Place { leaf, at, .. } = place;
        let before = at.checked_sub(1).map(|before| leaf[before]);
        let after = leaf.get(*at).map_or(place.beyond, |after| after.start);
        match before {
            // The usual case: its neighbours are in the same leaf, or the next leaf begins after it.
            Some(before) if before.end <= range.start && range.end <= after => None,
            _ => {
                let found = self.floor(range.end - 1, proof);
                found.filter(|found| range.start < found.end)
            }
        }
    }
}

impl<'a, F: Feed> Writer<'a, F> {
    /// Maps a range, which must not be empty.
    pub(crate) fn map(&mut self, range: Range) -> Result<(), Overlap> {
        assert!(range.start < range.end, "an empty range");
        let lock = self.lock(worst);
        let mapped = self.insert(range, &lock);
        self.unlock(lock);
        mapped
    }

    /// Takes the range out that starts at `start`.
    pub(crate) fn unmap(&mut self, start: u64) -> Option<Range> {
        // One copy of the lowest node that stays.
        let lock = self.lock(|_| 1);
        let range = self.remove(start, &lock);
        self.unlock(lock);
        range
    }

    /// Takes the lock, with as many nodes set aside as `need` says for the levels that the tree has then.
    fn lock(&mut self, need: impl Fn(usize) -> usize) -> MutexGuard<'a, Locked> {
        let map = self.map;
        let mut levels = map.levels.load(Relaxed);
        loop {
            map.feed.fill(&mut self.stock, need(levels));
            let lock = map.writing.lock();
            let lock = lock.unwrap_or_else(PoisonError::into_inner);
            levels = map.levels.load(Relaxed);
            if F::has(&self.stock, need(levels)) {
                return lock;
            }
        }
    }

    /// Lets go of the lock, and then of what is not needed any more.
    fn unlock(&mut self, lock: MutexGuard<'a, Locked>) {
        drop(lock);
        F::rest(&mut self.stock);
        for node in self.replaced.drain(..) {
            // SAFETY: taken from the feed, as all nodes; it was unlinked by this writer, once, and by nobody else.
            unsafe { F::retire(node) };
        }
    }

    fn insert(&mut self, range: Range, lock: &MutexGuard<'_, Locked>) -> Result<(), Overlap> {
        let map = self.map;
        let mut path = Path::new();
        let place = map.descend(range.start, &mut path, lock);
        if let Some(found) = map.overlap(&range, &place, lock) {
            return Err(Overlap(found));
        }
        let Place {
            mut link, leaf, at, ..
        } = place;
        self.replaced.push(link.pointer());
        // Copied straight into the new node, and changed there.
        let mut node = F::take(&mut self.stock, || Node::Leaf(*leaf));
        let mut right = None;
        if let Node::Leaf(copy) = &mut *node {
            if leaf.is_full() {
                let upper = copy.split(at, range);
                right = Some((upper[0].start, Node::Leaf(upper)));
            } else {
                copy.insert(at, range);
            }
        }
        while let Some((least, second)) = right {
            let second = Link::new(F::take(&mut self.stock, || second));
            let Some((above, inner, index)) = path.pop() else {
                let children = [(0, Link::new(node)), (least, second)];
                let root = Node::Inner(children.into_iter().collect());
                node = F::take(&mut self.stock, || root);
                map.levels.fetch_add(1, Relaxed);
                break;
            };
            let mut copy = inner.clone();
            copy[index].1 = Link::new(node);
            let (left, more) = with(copy, index + 1, (least, second));
            self.replaced.push(above.pointer());
            node = F::take(&mut self.stock, || Node::Inner(left));
            right = more.map(|inner| (inner[0].0, Node::Inner(inner)));
            link = above;
        }
        link.set(node, lock);
        Ok(())
    }

    fn remove(&mut self, start: u64, lock: &MutexGuard<'_, Locked>) -> Option<Range> {
        let map = self.map;
        let mut path = Path::new();
        let Place {
            mut link, leaf, at, ..
        } = map.descend(start, &mut path, lock);
        let range = *leaf.get(at).filter(|found| found.start == start)?;
        self.replaced.push(link.pointer());
        if leaf.len() > 1 {
            let mut node = F::take(&mut self.stock, || Node::Leaf(*leaf));
            if let Node::Leaf(copy) = &mut *node {
                copy.remove(at);
            }
            link.set(node, lock);
            return Some(range);
        }
        // Nodes that nothing would be left in go with it.
        let copy = loop {
            let Some((above, inner, index)) = path.pop() else {
                map.levels.store(1, Relaxed);
                break Node::Leaf(Leaf::new());
            };
            self.replaced.push(above.pointer());
            link = above;
            if inner.len() > 1 {
                let mut copy = inner.clone();
                copy.remove(index);
                break Node::Inner(copy);
            }
        };
        link.set(F::take(&mut self.stock, || copy), lock);
        self.lower(lock);
        Some(range)
    }

    /// Takes roots away that have one child.
    fn lower(&mut self, lock: &MutexGuard<'_, Locked>) {
        let map = self.map;
        while let Node::Inner(inner) = map.root.get(lock) {
            let [(_, only)] = inner.as_slice() else {
                return;
            };
            self.replaced.push(map.root.pointer());
            map.root.adopt(only, lock);
            map.levels.fetch_sub(1, Relaxed);
        }
    }
}

impl<F: Feed> Drop for RangeMap<F> {
    fn drop(&mut self) {
        /// # Safety
        ///
        /// The node is reached from a root whose map is being dropped, and from nowhere else.
        unsafe fn free<F: Feed>(node: NonNull<Node>) {
            // SAFETY: nodes that are linked live, and this one is freed below.
            if let Node::Inner(inner) = unsafe { node.as_ref() } {
                for (_, link) in inner {
                    // SAFETY: children have one parent.
                    unsafe { free::<F>(link.pointer()) };
                }
            }
            // SAFETY: taken from the feed, as all nodes, and linked until now; nobody has the map any more.
            unsafe { F::free(node) };
        }
        // SAFETY: the root of this map.
        unsafe { free::<F>(self.root.pointer()) };
    }
}
