//! Nodes of the tree, and the pointers between them.
//!
//! A node is never changed once others can see it, but for the pointers of an inner node: each is replaced as a whole.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::MutexGuard;

use arrayvec::ArrayVec;
use sheaves::rcu::Guard;

/// Ranges of a leaf and children of an inner node: both kinds take 256 bytes, as a node of the kernel's maple tree does.
pub(crate) const RANGES: usize = 10;
pub(crate) const CHILDREN: usize = 15;

/// From `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) value: u64,
}

/// The ranges of a leaf, in order. Copied as a whole: that is one copy of a known length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    len: usize,
    ranges: [Range; RANGES],
}

impl Leaf {
    pub(crate) fn new() -> Self {
        let none = Range {
            start: 0,
            end: 0,
            value: 0,
        };
        Self {
            len: 0,
            ranges: [none; RANGES],
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == RANGES
    }

    /// Puts a range in, for which there is room.
    pub(crate) fn insert(&mut self, at: usize, range: Range) {
        self.ranges.copy_within(at..self.len, at + 1);
        self.ranges[at] = range;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, at: usize) {
        self.ranges.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    /// Puts a range into a full leaf, whose upper half goes into another.
    pub(crate) fn split(&mut self, at: usize, range: Range) -> Self {
        const HALF: usize = RANGES / 2;
        let mut upper = Self::new();
        upper.len = RANGES - HALF;
        upper.ranges[..RANGES - HALF].copy_from_slice(&self.ranges[HALF..]);
        self.len = HALF;
        match at.checked_sub(HALF) {
            Some(at) => upper.insert(at, range),
            None => self.insert(at, range),
        }
        upper
    }
}

impl Deref for Leaf {
    type Target = [Range];

    fn deref(&self) -> &[Range] {
        &self.ranges[..self.len]
    }
}

/// Children with the least start that each may have. That of the first is not looked at: it has all below the second.
pub(crate) type Inner = ArrayVec<(u64, Link), CHILDREN>;

#[derive(Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    Inner(Inner),
}

const _: () = assert!(size_of::<Node>() == 256);

/// A node that nobody else can see yet.
///
/// # Invariants
///
/// 1. The node lives, and nobody else uses it.
#[derive(Debug)]
pub(crate) struct Fresh(NonNull<Node>);

impl Fresh {
    /// # Safety
    ///
    /// The node lives, and the caller gives it up.
    pub(crate) unsafe fn new(node: NonNull<Node>) -> Self {
        Self(node)
    }
}

impl Deref for Fresh {
    type Target = Node;

    fn deref(&self) -> &Node {
        // SAFETY: it lives, and nobody else uses it (invariant 1).
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Fresh {
    fn deref_mut(&mut self) -> &mut Node {
        // SAFETY: it lives, and nobody else uses it (invariant 1).
        unsafe { self.0.as_mut() }
    }
}

/// What keeps nodes that were found from being freed.
///
/// # Safety
///
/// While it is borrowed no node is freed that was reachable since it was made.
pub(crate) unsafe trait Proof {}

// SAFETY: nodes are retired after they were unlinked, and a guard keeps what was retired since it was made.
unsafe impl Proof for Guard {}
// SAFETY: only the owner of the lock unlinks nodes, and frees them when it has let go of it.
unsafe impl Proof for MutexGuard<'_, Locked> {}

/// What the lock of a map holds: its type tells the lock from others.
#[derive(Debug)]
pub(crate) struct Locked;

/// A pointer to a node of the map.
///
/// # Invariants
///
/// 1. A link that can be reached from a map's root has a node that is freed only after it was unlinked, and then after
///    a grace period; or when the map is dropped, so that nobody borrows it.
#[derive(Debug)]
pub(crate) struct Link(AtomicPtr<Node>);

impl Link {
    pub(crate) fn new(node: Fresh) -> Self {
        Self(AtomicPtr::new(node.0.as_ptr()))
    }

    /// The node, for as long as the proof holds.
    #[inline]
    pub(crate) fn get<'a>(&'a self, _proof: &'a impl Proof) -> &'a Node {
        // Acquire: pairs with the Release in `set`; the node is seen as it was made.
        let node = self.0.load(Acquire);
        // SAFETY: links are made of pointers of nodes; those are not freed while the proof is borrowed (invariant 1).
        unsafe { &*node }
    }

    /// The pointer, for one who may unlink the node.
    pub(crate) fn pointer(&self) -> NonNull<Node> {
        // Relaxed: the caller has the lock, under which it was written.
        NonNull::new(self.0.load(Relaxed)).expect("links are never null")
    }

    /// Puts another node in. Only for the owner of the map's lock.
    pub(crate) fn set(&self, node: Fresh, _lock: &MutexGuard<'_, Locked>) {
        // Release: pairs with the Acquire in `get`.
        self.0.store(node.0.as_ptr(), Release);
    }

    /// Puts the node in that another link has, which goes away.
    pub(crate) fn adopt(&self, other: &Self, _lock: &MutexGuard<'_, Locked>) {
        // Release: pairs with the Acquire in `get`.
        self.0.store(other.pointer().as_ptr(), Release);
    }
}

/// The same child, for a copy of its parent.
impl Clone for Link {
    fn clone(&self) -> Self {
        Self(AtomicPtr::new(self.pointer().as_ptr()))
    }
}

/// The entries with one more; and, if that is too many for one node, the upper half of them apart.
pub(crate) fn with<T, const N: usize>(
    mut entries: ArrayVec<T, N>,
    at: usize,
    entry: T,
) -> (ArrayVec<T, N>, Option<ArrayVec<T, N>>) {
    if !entries.is_full() {
        entries.insert(at, entry);
        return (entries, None);
    }
    let half = N / 2;
    let mut upper: ArrayVec<T, N> = entries.drain(half..).collect();
    match at.checked_sub(half) {
        Some(at) => upper.insert(at, entry),
        None => entries.insert(at, entry),
    }
    (entries, Some(upper))
}
