//! Deferred free while allocations fail: nothing that is retired is lost, and readers' cells stay as they were.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaves::{
    AllocErrorKind, Fault, Pool, PoolBox, RcuCell, StableCell, StablePool, TypeStable, Unlinked,
    rcu, testing,
};

use crate::sweeps::{kind, sweep};

/// One test at a time, without the drain thread: it would meet faults that are meant for the test.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    crate::by_hand();
    one
}

#[test]
fn retired_objects() {
    let _one = alone();
    for n in [1, 7, 70] {
        sweep(n, |pool| {
            let boxes = (0..n).map(|i| pool.try_alloc([i; 8]).map_err(kind));
            let boxes: Vec<_> = boxes.collect::<Result<_, _>>()?;
            let guard = rcu::pin();
            let readers: Vec<_> = boxes.iter().map(PoolBox::as_ptr).collect();
            boxes.into_iter().for_each(PoolBox::retire);
            assert_eq!(pool.stats().retired, n);
            for (i, reader) in (0..n).zip(readers) {
                // SAFETY: the guard was pinned before the object was retired.
                assert_eq!(unsafe { *reader }, [i; 8], "written to under a reader");
            }
            drop(guard);
            pool.rcu_barrier().expect("nobody is pinned");
            assert_eq!(pool.stats().retired, 0);
            Ok(())
        });
    }
}

#[test]
fn objects_retired_without_a_barrier() {
    let _one = alone();
    sweep(5, |pool| {
        let boxes = (0..5).map(|i| pool.try_alloc([i; 8]).map_err(kind));
        for boxed in boxes.collect::<Result<Vec<_>, _>>()? {
            PoolBox::retire(boxed);
        }
        while pool.stats().retired > 0 {
            rcu::drain();
        }
        Ok(())
    });
}

#[test]
fn cells_that_are_replaced() {
    let _one = alone();
    sweep(3, |pool| {
        let mut cell = RcuCell::new(pool.try_alloc([1; 8]).map_err(kind)?);
        cell.replace(pool.try_alloc([2; 8]).map_err(kind)?);
        let old = cell.swap(pool.try_alloc([3; 8]).map_err(kind)?);
        assert_eq!((*old, *cell.get_mut()), ([2; 8], [3; 8]));
        let old = Unlinked::synchronize(old).map_err(|_| AllocErrorKind::WouldBlock)?;
        drop(old);
        drop(cell.into_inner());
        pool.rcu_barrier().expect("nobody is pinned");
        Ok(())
    });
}

/// A closure that panics since there is no object for it to give leaves the old one where it is.
#[test]
fn cells_that_are_updated() {
    let _one = alone();
    let pool = Pool::new("updated");
    let cell = RcuCell::new(pool.alloc(1_u64));
    let swept = testing::sweep(&pool, || {
        let before = *cell.load(&rcu::pin());
        let update = || cell.update(|old| pool.alloc(*old + 1));
        let result = catch_unwind(AssertUnwindSafe(update));
        let after = *cell.load(&rcu::pin());
        assert_eq!(after, before + u64::from(result.is_ok()));
        pool.rcu_barrier().expect("nobody is pinned");
        result.map_err(drop)
    });
    assert!(swept.expect("it succeeds without a fault").faults > 0);
    drop(cell);
    pool.rcu_barrier().expect("nobody is pinned");
    assert_eq!((pool.stats().live, pool.stats().retired), (0, 0));
}

/// Their pool takes a fault where it is built.
#[test]
fn type_stable_objects() {
    #[derive(Default)]
    struct Word(AtomicU64);
    // SAFETY: zeros are a valid integer.
    unsafe impl TypeStable for Word {}

    let _one = alone();
    for n in 1.. {
        let builder = Pool::builder("stable").fault(Fault::nth(n)).min_partial(0);
        let pool = StablePool::build(builder.sheaf_capacity(2)).expect("possible options");
        let mut refused = 0;
        {
            let cell = StableCell::empty();
            let boxes: Vec<_> = (0..20)
                .filter_map(|i| {
                    let made = pool.try_alloc(|word: &Word| word.0.store(i, SeqCst));
                    refused += u64::from(made.is_err());
                    made.ok()
                })
                .collect();
            assert!(refused <= 1);
            assert_eq!(pool.stats().live, 20 - refused);
            for boxed in boxes {
                let number = boxed.0.load(SeqCst);
                drop(cell.swap(Some(boxed)));
                let guard = rcu::pin();
                let seen = cell.load(&guard).expect("just put in");
                assert_eq!(seen.0.load(SeqCst), number);
            }
        }
        let faults = pool.stats().faults;
        assert_eq!(pool.stats().live, 0);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        if faults == 0 {
            assert!(n > 20, "each object was asked about");
            return;
        }
    }
}
