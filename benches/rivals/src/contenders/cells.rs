//! Ways to replace an object that readers may be looking at: each thread has a cell of its own.
//!
//! Here arc-swap takes part too. It retires nothing: it counts references, and what it replaces is freed by whoever
//! lets go of it last.
#![deny(unsafe_op_in_unsafe_fn)]

use std::alloc::System;
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use crossbeam_epoch as epoch;
use mimalloc::MiMalloc;
use seize::Collector;
use sheaves::{Pool, RcuCell, rcu};

use super::retire::{
    NamedRetire, Record, Retire, VisitRetire, alloc, defer, free, read, reclaim, settle_epoch,
};
use crate::heap::Kind;

/// On cache lines of its own.
#[repr(align(128))]
struct Apart<T>(T);

/// A cell for each of two threads.
type Cells<T> = [Apart<T>; 2];

fn cells<T>(make: impl Fn() -> T) -> Cells<T> {
    [Apart(make()), Apart(make())]
}

/// All of them.
pub fn all<T: Record>(visitor: &mut impl VisitRetire<T>) {
    visitor.visit::<Words>();
    visitor.visit::<Ours<T>>();
    visitor.visit::<InEpoch<System, T>>();
    visitor.visit::<InEpoch<MiMalloc, T>>();
    visitor.visit::<InSeize<System, T>>();
    visitor.visit::<InSeize<MiMalloc, T>>();
    visitor.visit::<Swapped<T>>();
}

/// The harness: exchanges a word.
pub struct Words(Cells<AtomicU64>);

impl<T: Record> Retire<T> for Words {
    const NAME: &'static str = "harness";
    const KIND: Kind = Kind::Harness;

    fn new() -> Self {
        Self(cells(AtomicU64::default))
    }

    #[inline(always)]
    fn turn(&self, number: usize, tag: u64) -> u64 {
        let tag = black_box(&T::new(tag)).check();
        // AcqRel: as the contenders.
        black_box(self.0[number].0.swap(tag, Ordering::AcqRel));
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        body();
    }
}

/// `RcuCell::replace`.
pub struct Ours<T: Record>(Pool<T>, Cells<RcuCell<T>>);

impl<T: Record> Retire<T> for Ours<T> {
    const NAME: &'static str = super::retire::OURS;
    const KIND: Kind = Kind::Ours;

    fn new() -> Self {
        let pool = Pool::new("cells");
        let cells = cells(|| RcuCell::new(pool.alloc(T::new(0))));
        Self(pool, cells)
    }

    #[inline(always)]
    fn turn(&self, number: usize, tag: u64) -> u64 {
        let object = self.0.alloc(T::new(tag));
        let tag = black_box(&*object).check();
        self.1[number].0.replace(object);
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        let _guard = rcu::pin();
        body();
    }

    fn settle(&self) {
        self.0.rcu_barrier().expect("nobody is pinned");
    }
}

/// Cells of pointers to objects on a malloc.
struct Pointers<A: NamedRetire, T: Record>(Cells<AtomicPtr<T>>, PhantomData<A>);

impl<A: NamedRetire, T: Record> Pointers<A, T> {
    fn new() -> Self {
        Self(
            cells(|| AtomicPtr::new(alloc::<A, T>(0).as_ptr())),
            PhantomData,
        )
    }

    /// Puts a new object in: its tag, and the object that it replaces.
    #[inline(always)]
    fn replace(&self, number: usize, tag: u64) -> (u64, NonNull<T>) {
        let object = alloc::<A, T>(tag);
        let tag = read(object);
        // AcqRel: publishes the object; the other is seen as it was made.
        let old = self.0[number].0.swap(object.as_ptr(), Ordering::AcqRel);
        (
            tag,
            NonNull::new(old).expect("there is always an object in a cell"),
        )
    }
}

impl<A: NamedRetire, T: Record> Drop for Pointers<A, T> {
    fn drop(&mut self) {
        for cell in &mut self.0 {
            let last =
                NonNull::new(*cell.0.get_mut()).expect("there is always an object in a cell");
            // SAFETY: from `alloc` with this malloc; nobody has the cell any more.
            unsafe { free::<A, T>(last) };
        }
    }
}

/// An atomic pointer, and crossbeam-epoch's `defer_destroy` of what it had.
pub struct InEpoch<A: NamedRetire, T: Record>(Pointers<A, T>);

impl<A: NamedRetire, T: Record> Retire<T> for InEpoch<A, T> {
    const NAME: &'static str = A::EPOCH;
    const KIND: Kind = Kind::Other;

    fn new() -> Self {
        Self(Pointers::new())
    }

    #[inline(always)]
    fn turn(&self, number: usize, tag: u64) -> u64 {
        let guard = epoch::pin();
        let (tag, old) = self.0.replace(number, tag);
        defer::<A, T>(&guard, old);
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        let _guard = epoch::pin();
        body();
    }

    fn settle(&self) {
        settle_epoch();
    }
}

/// An atomic pointer, and seize's `retire` of what it had.
pub struct InSeize<A: NamedRetire, T: Record>(Collector, Pointers<A, T>);

impl<A: NamedRetire, T: Record> Retire<T> for InSeize<A, T> {
    const NAME: &'static str = A::SEIZE;
    const KIND: Kind = Kind::Other;

    fn new() -> Self {
        Self(Collector::new(), Pointers::new())
    }

    #[inline(always)]
    fn turn(&self, number: usize, tag: u64) -> u64 {
        let (tag, old) = self.1.replace(number, tag);
        // SAFETY: it has been taken out of its cell, and is freed as it was allocated.
        unsafe { self.0.retire(old.as_ptr(), reclaim::<A, T>) };
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        let _guard = self.0.enter();
        body();
    }
}

/// arc-swap's `ArcSwap::store`.
pub struct Swapped<T>(Cells<ArcSwap<T>>);

impl<T: Record> Retire<T> for Swapped<T> {
    const NAME: &'static str = "arc-swap, glibc";
    const KIND: Kind = Kind::Other;

    fn new() -> Self {
        Self(cells(|| ArcSwap::from_pointee(T::new(0))))
    }

    #[inline(always)]
    fn turn(&self, number: usize, tag: u64) -> u64 {
        let object = Arc::new(T::new(tag));
        let tag = black_box(&*object).check();
        self.0[number].0.store(object);
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        let _guards = (self.0[0].0.load(), self.0[1].0.load());
        body();
    }
}
