//! Sizes, auto traits and variance of every public type.

use alloc::rc::Rc;
use core::cell::Cell;
use core::error::Error;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::MutexGuard;

use sheaves::{
    Align, AllocError, AllocErrorKind, BuildError, Builder, Busy, Config, DebugFlags, Exhausted,
    Heap, Hint, Order, ParseDebugFlagsError, Pool, PoolBox, PoolInfo, PrefilledSheaf, Report,
    ReportKind, SlabInfo, Stats,
};
use static_assertions::{assert_eq_size, assert_impl_all, assert_not_impl_any, const_assert_eq};

const_assert_eq!(size_of::<PoolBox<[u8; 100]>>(), 8);
assert_eq_size!(
    PoolBox<u8>,
    Option<PoolBox<u8>>,
    PoolBox<()>,
    Option<PoolBox<()>>
);
assert_eq_size!(PoolBox<[u64; 30]>, Option<PoolBox<[u64; 30]>>, *const u8);

// Handles hold no `T`.
assert_impl_all!(Pool<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Clone);
assert_impl_all!(Pool<Rc<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Clone);
assert_impl_all!(Pool<Cell<&'static mut u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Pool<core::marker::PhantomPinned>: Unpin);
assert_impl_all!(Builder<Rc<u8>>: Send, Unpin);
assert_impl_all!(PrefilledSheaf<u8>: Send, Unpin);
assert_impl_all!(PrefilledSheaf<Rc<u8>>: Send, Unpin);
assert_not_impl_any!(PrefilledSheaf<u8>: Clone, Copy);

// So do the allocators without size, and page sources may be shared.
const_assert_eq!(size_of::<sheaves::PoolOf<u8>>(), 0);
assert_impl_all!(sheaves::PoolOf<Rc<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Copy, Default);
assert_impl_all!(sheaves::Arena: Send, Sync, sheaves::PageSource);
assert_impl_all!(sheaves::Region: Send, Sync, sheaves::PageSource);
assert_impl_all!(sheaves::Metered<Heap>: Send, Sync, sheaves::PageSource);
assert_impl_all!(sheaves::Logged<Heap, fn(&sheaves::SourceCall)>: Send, Sync, sheaves::PageSource);
assert_impl_all!(sheaves::page::SourceFault: Send, Sync, Error);

// Boxes are to threads and panics as `Box` is.
assert_impl_all!(PoolBox<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(PoolBox<core::marker::PhantomPinned>: Unpin);
assert_not_impl_any!(PoolBox<Rc<u8>>: Send, Sync);
assert_impl_all!(PoolBox<Cell<u8>>: Send, UnwindSafe);
assert_not_impl_any!(PoolBox<Cell<u8>>: Sync, RefUnwindSafe);
assert_impl_all!(PoolBox<MutexGuard<'static, u8>>: Sync);
assert_not_impl_any!(PoolBox<MutexGuard<'static, u8>>: Send);
assert_not_impl_any!(PoolBox<&'static mut u8>: UnwindSafe);
assert_not_impl_any!(PoolBox<*const u8>: Send, Sync);
assert_not_impl_any!(PoolBox<Opaque>: Clone, PartialEq, PartialOrd, core::hash::Hash, core::fmt::Debug);
assert_not_impl_any!(PoolBox<u8>: Copy, Iterator, Error);

struct Opaque;

// Errors carry a value or none.
assert_impl_all!(AllocError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);
assert_impl_all!(AllocError<Vec<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);
assert_impl_all!(AllocError<Opaque>: Error);
assert_not_impl_any!(AllocError<Rc<u8>>: Send, Sync);
assert_impl_all!(Exhausted<Vec<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);
assert_impl_all!(Exhausted<Opaque>: Error);
assert_not_impl_any!(Exhausted<Rc<u8>>: Send, Sync);
assert_impl_all!(Busy<Pool<Rc<u8>>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);
assert_impl_all!(BuildError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);
assert_impl_all!(ParseDebugFlagsError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Error);

macro_rules! plain_data {
    ($($type:ty),* $(,)?) => {
        $(assert_impl_all!($type: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Clone, core::fmt::Debug);)*
    };
}

plain_data!(
    Align,
    AllocErrorKind,
    Config,
    DebugFlags,
    Heap,
    Hint,
    Order,
    PoolInfo,
    Report,
    ReportKind,
    SlabInfo,
    Stats,
);
#[cfg(unix)]
plain_data!(sheaves::Mmap);

/// Compiles only if boxes are covariant.
fn shorten<'short>(boxed: PoolBox<&'static str>, _: &'short str) -> PoolBox<&'short str> {
    boxed
}

fn shorten_pinned<'short>(
    boxed: core::pin::Pin<PoolBox<&'static str>>,
    _: &'short str,
) -> core::pin::Pin<PoolBox<&'short str>> {
    boxed
}

#[test]
fn boxes_are_covariant() {
    let pool = Pool::new("covariant");
    let local = String::from("local");
    let mut boxed = shorten(pool.alloc("static"), &local);
    *boxed = &local;
    assert_eq!(*boxed, "local");
    assert_eq!(*shorten_pinned(pool.alloc_pin("static"), &local), "static");
}

#[test]
fn sheaves_move_to_other_threads_whatever_they_hold() {
    let pool = Pool::<Rc<u8>>::new("not_send");
    let mut sheaf = pool.prefill(2).unwrap();
    let thread = std::thread::spawn(move || {
        assert_eq!(**sheaf.alloc(Rc::new(1)).unwrap(), 1);
        sheaf
    });
    thread.join().unwrap().give_back();
    assert_eq!(pool.stats().prefilled, 0);
}

#[test]
fn sheaves_are_as_safe_to_unwind_past_as_pools() {
    struct Probe<T>(core::marker::PhantomData<T>);
    impl<T: UnwindSafe + RefUnwindSafe> Probe<T> {
        fn holds(&self) -> bool {
            true
        }
    }
    trait Otherwise {
        fn holds(&self) -> bool {
            false
        }
    }
    impl<T> Otherwise for Probe<T> {}
    type Never = &'static mut u8;
    assert!(!Probe::<Never>(core::marker::PhantomData).holds());
    assert!(Probe::<Pool<u8>>(core::marker::PhantomData).holds());
    assert!(Probe::<PrefilledSheaf<u8>>(core::marker::PhantomData).holds());
}
