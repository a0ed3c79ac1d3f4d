//! The map of the example `range_map`, fed by pools and by mallocs: five ranges are mapped, looked up, and unmapped.
#![deny(unsafe_op_in_unsafe_fn)]

#[path = "../../../../examples/range_map/feed.rs"]
#[allow(dead_code)] // its feeds on the global allocator have no part here
mod feed;
#[path = "../../../../examples/range_map/map.rs"]
mod map;
#[path = "../../../../examples/range_map/node.rs"]
mod node;
#[path = "../../../../examples/range_map/stress.rs"]
mod stress;

use std::alloc::{Layout, System, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

use arrayvec::ArrayVec;
use crossbeam_epoch as epoch;
use mimalloc::MiMalloc;

use super::{Entry, timed};
use crate::contenders::raw::Named;
use crate::heap::Kind;
use feed::{Bulk, Feed, Kept, Prefilled};
use map::WORST;
use node::{Fresh, Node};
use stress::{Stress, filled};

pub const PREFILLED: &str = "prefilled sheaf";
pub const KEPT: &str = "prefilled sheaf, kept";
pub const BULK: &str = "bulk, worst case";
pub const GLIBC: &str = "Box, worst case, glibc";
pub const MIMALLOC: &str = "Box, worst case, mimalloc";

/// Ranges that stay mapped.
const RESIDENT: u64 = 100;
/// Cycles between two looks at the clock.
const CYCLES: usize = 500;

/// The ways to feed it. The first two of the mallocs allocate under the map's lock.
pub fn entries() -> Vec<Entry> {
    vec![
        entry::<Prefilled>(PREFILLED, Kind::Ours),
        entry::<Kept>(KEPT, Kind::Ours),
        entry::<Bulk>(BULK, Kind::Ours),
        entry::<Needed<System>>("Box, when needed, glibc", Kind::Malloc),
        entry::<Needed<MiMalloc>>("Box, when needed, mimalloc", Kind::Malloc),
        entry::<Ahead<System>>(GLIBC, Kind::Malloc),
        entry::<Ahead<MiMalloc>>(MIMALLOC, Kind::Malloc),
    ]
}

fn entry<F: Feed>(name: &'static str, kind: Kind) -> Entry {
    Entry {
        name,
        kind,
        turn: Box::new(run::<F>),
    }
}

/// Nanoseconds a cycle.
fn run<F: Feed>(budget: Duration) -> f64 {
    let map = filled::<F>(RESIDENT);
    let mut stress = Stress::new(RESIDENT);
    let mut writer = map.writer();
    timed(budget, CYCLES, || {
        for _ in 0..CYCLES {
            stress.cycle(&map, &mut writer);
        }
    })
}

#[inline]
fn alloc<A: Named>() -> NonNull<Node> {
    let layout = const { Layout::new::<Node>() };
    // SAFETY: a node is not of size zero.
    let start = unsafe { A::ALLOC.alloc(layout) };
    NonNull::new(start.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
///
/// The node's memory came from [`alloc`] with the same malloc, and is given up.
#[inline]
unsafe fn dealloc<A: Named>(node: NonNull<Node>) {
    // SAFETY: from this malloc, with this layout. Nodes own no memory.
    unsafe { A::ALLOC.dealloc(node.as_ptr().cast(), const { Layout::new::<Node>() }) };
}

fn write(slot: NonNull<Node>, node: Node) -> Fresh {
    // SAFETY: from `alloc`, and nobody else's.
    unsafe { slot.write(node) };
    // SAFETY: it was just made, and is given up.
    unsafe { Fresh::new(slot) }
}

/// crossbeam-epoch's `defer_destroy` of a box, as the closure that it defers.
///
/// # Safety
///
/// As for [`dealloc`], and nobody who is not pinned yet can find the node.
unsafe fn defer<A: Named>(node: NonNull<Node>) {
    let node = node.as_ptr();
    let free = move || {
        let node = NonNull::new(node).expect("it was made of one that is not null");
        // SAFETY: as the caller says.
        unsafe { dealloc::<A>(node) };
    };
    // SAFETY: nobody finds the node any more; it may be freed on any thread.
    unsafe { epoch::pin().defer_unchecked(free) };
}

/// A box when a node is needed.
struct Needed<A>(PhantomData<fn() -> A>);

impl<A: Named> Feed for Needed<A> {
    type Stock = ();

    fn new() -> Self {
        Self(PhantomData)
    }

    fn fill(&self, _stock: &mut (), _n: usize) {}

    fn has(_stock: &(), _n: usize) -> bool {
        true
    }

    fn take(_stock: &mut (), make: impl FnOnce() -> Node) -> Fresh {
        write(alloc::<A>(), make())
    }

    fn rest(_stock: &mut ()) {}

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: as the caller says; `take` allocated it.
        unsafe { defer::<A>(node) };
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: as the caller says; `take` allocated it.
        unsafe { dealloc::<A>(node) };
    }
}

/// As many boxes as the worst case wants, before the lock; the rest is freed after it.
struct Ahead<A>(PhantomData<fn() -> A>);

impl<A: Named> Feed for Ahead<A> {
    type Stock = ArrayVec<Slot<A>, WORST>;

    fn new() -> Self {
        Self(PhantomData)
    }

    fn fill(&self, stock: &mut Self::Stock, n: usize) {
        while stock.len() < n {
            stock.push(Slot(alloc::<A>(), PhantomData));
        }
    }

    fn has(stock: &Self::Stock, n: usize) -> bool {
        stock.len() >= n
    }

    fn take(stock: &mut Self::Stock, make: impl FnOnce() -> Node) -> Fresh {
        let slot = stock.pop().expect("the worst case was set aside");
        write(slot.leak(), make())
    }

    fn rest(stock: &mut Self::Stock) {
        stock.clear();
    }

    unsafe fn retire(node: NonNull<Node>) {
        // SAFETY: as the caller says; `fill` allocated it.
        unsafe { defer::<A>(node) };
    }

    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: as the caller says; `fill` allocated it.
        unsafe { dealloc::<A>(node) };
    }
}

/// A box with nothing in it.
struct Slot<A: Named>(NonNull<Node>, PhantomData<fn() -> A>);

impl<A: Named> Slot<A> {
    fn leak(self) -> NonNull<Node> {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl<A: Named> Drop for Slot<A> {
    fn drop(&mut self) {
        // SAFETY: from `alloc`, and nobody else's.
        unsafe { dealloc::<A>(self.0) };
    }
}
