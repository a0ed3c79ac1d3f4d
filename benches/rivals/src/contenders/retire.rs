//! Ways to free what readers may still see: the pool's, crossbeam-epoch's and seize's.
#![deny(unsafe_op_in_unsafe_fn)]

use std::alloc::{Layout, System, handle_alloc_error};
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_epoch as epoch;
use mimalloc::MiMalloc;
use seize::Collector;
use sheaves::{Order, Pool, PoolBox, rcu};

use super::raw::Named;
use crate::heap::Kind;
use crate::object::{MID_240, Object};

/// What is retired.
pub trait Record: Send + Sync + 'static {
    fn new(tag: u64) -> Self;

    /// The tag, read back.
    fn check(&self) -> u64;
}

/// 240 bytes without a destructor.
pub type Plain = Object<MID_240>;

impl Record for Plain {
    #[inline(always)]
    fn new(tag: u64) -> Self {
        Self::new(tag)
    }

    #[inline(always)]
    fn check(&self) -> u64 {
        Self::check(self)
    }
}

/// The same with one, which looks whether the object is still what it was: it was kept until then.
#[derive(Debug)]
pub struct Checked(Plain);

impl Record for Checked {
    #[inline(always)]
    fn new(tag: u64) -> Self {
        Self(Object::new(tag))
    }

    #[inline(always)]
    fn check(&self) -> u64 {
        self.0.check()
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        black_box(self.0.check());
    }
}

/// A way to free after a grace period, shared by threads.
pub trait Retire<T: Record>: Sync + 'static {
    const NAME: &'static str;
    const KIND: Kind;

    fn new() -> Self;

    /// Thread `number`, 0 or 1, allocates an object, reads it back and retires it, or the one that it replaces; the
    /// tag.
    fn turn(&self, number: usize, tag: u64) -> u64;

    /// Runs `body` as a reader, whom what is retired meanwhile waits for.
    fn pinned(&self, body: impl FnOnce());

    /// Frees what is still retired.
    fn settle(&self) {}
}

/// Who takes part.
pub trait VisitRetire<T: Record> {
    fn visit<R: Retire<T>>(&mut self);
}

/// All of them.
pub fn all<T: Record>(visitor: &mut impl VisitRetire<T>) {
    visitor.visit::<Nothing>();
    visitor.visit::<Ours<T>>();
    visitor.visit::<Hot<T>>();
    visitor.visit::<Epoch<System>>();
    visitor.visit::<Epoch<MiMalloc>>();
    visitor.visit::<Seize<System>>();
    visitor.visit::<Seize<MiMalloc>>();
}

/// The harness: an object that is nowhere.
pub struct Nothing;

impl<T: Record> Retire<T> for Nothing {
    const NAME: &'static str = "harness";
    const KIND: Kind = Kind::Harness;

    fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn turn(&self, _number: usize, tag: u64) -> u64 {
        black_box(&T::new(tag)).check()
    }

    fn pinned(&self, body: impl FnOnce()) {
        body();
    }
}

/// `PoolBox::retire`, of a pool with nothing configured.
pub struct Ours<T>(Pool<T>);

/// The same with 2 MiB slabs and sheaves of 256.
pub struct Hot<T>(Pool<T>);

pub const OURS: &str = "PoolBox";
pub const HOT: &str = "PoolBox, 2 MiB slabs, sheaves of 256";

macro_rules! ours {
    ($way:ident, $name:expr, $pool:expr) => {
        impl<T: Record> Retire<T> for $way<T> {
            const NAME: &'static str = $name;
            const KIND: Kind = Kind::Ours;

            fn new() -> Self {
                Self($pool)
            }

            #[inline(always)]
            fn turn(&self, _number: usize, tag: u64) -> u64 {
                let object = self.0.alloc(T::new(tag));
                let tag = black_box(&*object).check();
                PoolBox::retire(object);
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
    };
}

ours!(Ours, OURS, Pool::new("retire"));
ours!(Hot, HOT, hot());

fn hot<T>() -> Pool<T> {
    Pool::builder("retire_hot")
        .order(Order::LARGE)
        .sheaf_capacity(256)
        .build()
        .expect("the options are possible")
}

/// An object on a malloc.
#[inline(always)]
pub(super) fn alloc<A: Named, T: Record>(tag: u64) -> NonNull<T> {
    let layout = const { Layout::new::<T>() };
    // SAFETY: the layout is not of size zero.
    let start = unsafe { A::ALLOC.alloc(layout) };
    let Some(start) = NonNull::new(start.cast::<T>()) else {
        handle_alloc_error(layout);
    };
    // SAFETY: just allocated for this.
    unsafe { start.write(T::new(tag)) };
    start
}

/// # Safety
///
/// The object came from [`alloc`] with the same malloc, and is given up.
#[inline(always)]
pub(super) unsafe fn free<A: Named, T: Record>(object: NonNull<T>) {
    // SAFETY: given up by the caller, and never dropped before.
    unsafe { object.drop_in_place() };
    // SAFETY: from this malloc, with this layout.
    unsafe { A::ALLOC.dealloc(object.as_ptr().cast(), const { Layout::new::<T>() }) };
}

#[inline(always)]
pub(super) fn read<T: Record>(object: NonNull<T>) -> u64 {
    // SAFETY: called by the owner of an object from `alloc`.
    black_box(unsafe { object.as_ref() }).check()
}

/// crossbeam-epoch's `defer_destroy` of a box. Said as the closure that it defers, so that the box may be on any
/// malloc; the bags of such closures are on the global one.
pub struct Epoch<A>(PhantomData<A>);

pub trait NamedRetire: Named {
    const EPOCH: &'static str;
    const SEIZE: &'static str;
}

pub const EPOCH_GLIBC: &str = "defer_destroy(Box), glibc";
pub const EPOCH_MIMALLOC: &str = "defer_destroy(Box), mimalloc";

impl NamedRetire for System {
    const EPOCH: &'static str = EPOCH_GLIBC;
    const SEIZE: &'static str = "seize, glibc";
}

impl NamedRetire for MiMalloc {
    const EPOCH: &'static str = EPOCH_MIMALLOC;
    const SEIZE: &'static str = "seize, mimalloc";
}

#[inline(always)]
pub(super) fn defer<A: Named, T: Record>(guard: &epoch::Guard, object: NonNull<T>) {
    let object = object.as_ptr();
    let free = move || {
        let object = NonNull::new(object).expect("it was made of one that is not null");
        // SAFETY: from `alloc` with this malloc; given up by whoever deferred this.
        unsafe { free::<A, T>(object) };
    };
    // SAFETY: nobody finds the object any more; it may be dropped on any thread.
    unsafe { guard.defer_unchecked(free) };
}

/// Until what was deferred before is done, that of threads that are gone too.
pub(super) fn settle_epoch() {
    static DONE: AtomicBool = AtomicBool::new(false);
    DONE.store(false, Ordering::Relaxed);
    // Relaxed: it carries nothing.
    epoch::pin().defer(|| DONE.store(true, Ordering::Relaxed));
    while !DONE.load(Ordering::Relaxed) {
        epoch::pin().flush();
    }
}

impl<A: NamedRetire, T: Record> Retire<T> for Epoch<A> {
    const NAME: &'static str = A::EPOCH;
    const KIND: Kind = Kind::Other;

    fn new() -> Self {
        Self(PhantomData)
    }

    #[inline(always)]
    fn turn(&self, _number: usize, tag: u64) -> u64 {
        let object = alloc::<A, T>(tag);
        let tag = read(object);
        defer::<A, T>(&epoch::pin(), object);
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

/// seize, with its own batches.
pub struct Seize<A>(Collector, PhantomData<A>);

/// # Safety
///
/// As for [`free`].
pub(super) unsafe fn reclaim<A: Named, T: Record>(object: *mut T, _collector: &Collector) {
    let object = NonNull::new(object).expect("only objects are retired");
    // SAFETY: passed on.
    unsafe { free::<A, T>(object) };
}

impl<A: NamedRetire, T: Record> Retire<T> for Seize<A> {
    const NAME: &'static str = A::SEIZE;
    const KIND: Kind = Kind::Other;

    fn new() -> Self {
        Self(Collector::new(), PhantomData)
    }

    #[inline(always)]
    fn turn(&self, _number: usize, tag: u64) -> u64 {
        let object = alloc::<A, T>(tag);
        let tag = read(object);
        // SAFETY: nobody finds the object any more, and this frees it as it was allocated.
        unsafe { self.0.retire(object.as_ptr(), reclaim::<A, T>) };
        tag
    }

    fn pinned(&self, body: impl FnOnce()) {
        let _guard = self.0.enter();
        body();
    }
}
