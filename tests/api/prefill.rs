//! Prefilled sheaves.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::AtomicBool;
use std::panic::catch_unwind;

use sheaves::{AllocErrorKind, Order, Pool, PoolBox};

use crate::support::{Drops, Metered, SEQ, watched};

type Object = [u64; 30];

#[test]
fn at_least_n_slots_and_then_no_more() {
    for capacity in [0, 1, 7, 60] {
        let pool = Pool::<Object>::builder("prefill")
            .sheaf_capacity(capacity)
            .build()
            .unwrap();
        for n in [0, 1, 6, 7, 8, 59, 60, 61, 500] {
            let mut sheaf = pool.prefill(n).unwrap();
            let len = sheaf.len();
            assert!(len >= n && sheaf.capacity() >= len);
            assert!(
                n <= capacity || (len == n && sheaf.capacity() == n),
                "exactly {n}: {len}"
            );
            assert_eq!((pool.stats().prefilled, pool.stats().live), (len as u64, 0));
            let boxes: Vec<_> = (0..len)
                .map(|i| sheaf.alloc([i as u64; 30]).unwrap())
                .collect();
            assert!(sheaf.is_empty());
            assert_eq!(sheaf.alloc([7; 30]).unwrap_err().into_value(), [7; 30]);
            let made = sheaf.alloc_with(|| unreachable!("not called")).map(drop);
            assert!(made.is_err());
            assert!(
                boxes
                    .iter()
                    .zip(0..)
                    .all(|(boxed, i)| **boxed == [i; 30] && pool.owns(&raw const **boxed))
            );
            assert_eq!((pool.stats().prefilled, pool.stats().live), (0, len as u64));
            drop(boxes);
        }
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0, "sheaves of {capacity}");
    }
}

#[test]
fn a_return_keeps_the_total_constant() {
    let pool = Pool::<Object>::builder("constant")
        .sheaf_capacity(60)
        .build()
        .unwrap();
    drop((0..500).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
    let total = pool.stats().slots;
    for round in 0..200 {
        let sheaf = pool.prefill(round % 100).unwrap();
        let stats = pool.stats();
        assert_eq!(
            stats.slots,
            stats.prefilled + stats.cached + stats.barn + stats.free,
            "{stats:?}"
        );
        if round % 2 == 0 {
            sheaf.give_back()
        } else {
            drop(sheaf)
        }
        assert_eq!(pool.stats().prefilled, 0);
    }
    assert_eq!(pool.stats().slots, total);
}

#[test]
fn refill_tops_up_and_grows() {
    let pool = Pool::<Object>::builder("refill")
        .sheaf_capacity(60)
        .build()
        .unwrap();
    for first in [0, 1, 60, 100] {
        for n in [0, 1, 30, 60, 61, 100, 101, 400] {
            let mut sheaf = pool.prefill(first).unwrap();
            let used: Vec<_> = (0..first / 2)
                .map(|_| sheaf.alloc([1; 30]).unwrap())
                .collect();
            let before = sheaf.len();
            sheaf.refill(n).unwrap();
            assert!(sheaf.len() >= n.max(before));
            assert_eq!(pool.stats().prefilled, sheaf.len() as u64);
            assert_eq!(pool.stats().live, used.len() as u64);
            let len = sheaf.len();
            let all: Vec<_> = (0..len)
                .map(|i| sheaf.alloc([i as u64; 30]).unwrap())
                .collect();
            let mut starts: Vec<_> = all.iter().chain(&used).map(PoolBox::as_ptr).collect();
            starts.sort_unstable();
            starts.dedup();
            assert_eq!(starts.len(), len + used.len());
        }
    }
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn a_failed_prefill_takes_nothing() {
    for n in [1, 60, 300, 2000] {
        let source = Metered::new();
        let builder = Pool::<Object>::builder("failing").source(Arc::clone(&source));
        let pool = builder
            .order(Order::new(0))
            .sheaf_capacity(60)
            .build()
            .unwrap();
        let per_slab = pool.config().slots_per_slab();
        let slabs = (n - 1) / per_slab;
        source.set_budget(Some(slabs));
        let error = pool.prefill(n).unwrap_err();
        assert_eq!(
            (error.kind(), error.pool()),
            (AllocErrorKind::OutOfMemory, "failing")
        );
        let stats = pool.stats();
        assert_eq!((stats.prefilled, stats.live), (0, 0), "{n}: {stats:?}");
        source.set_budget(None);
        let sheaf = pool.prefill(n).unwrap();
        assert!(sheaf.len() >= n);
        drop(sheaf);
        pool.close().unwrap();
        assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
    }
}

#[test]
fn a_failed_refill_leaves_the_sheaf_usable() {
    for n in [50, 60, 61, 1000] {
        let source = Metered::new();
        let builder = Pool::<Object>::builder("failing").source(Arc::clone(&source));
        let pool = builder
            .order(Order::new(0))
            .sheaf_capacity(60)
            .build()
            .unwrap();
        let mut sheaf = pool.prefill(60).unwrap();
        let mut used: Vec<_> = (0..50).map(|i| sheaf.alloc([i; 30]).unwrap()).collect();
        source.set_budget(Some(0));
        // What the first slab has left is less than what is asked.
        let rest: Vec<_> = core::iter::from_fn(|| pool.try_alloc([9; 30]).ok()).collect();
        let error = sheaf.refill(n).unwrap_err();
        assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
        assert!(sheaf.len() >= 10, "what it had");
        assert_eq!(pool.stats().prefilled, sheaf.len() as u64);
        used.extend((0..10).map(|i| sheaf.alloc([100 + i; 30]).unwrap()));
        let freed = used.pop().unwrap();
        sheaf.free(freed).unwrap();
        source.set_budget(None);
        sheaf.refill(n).unwrap();
        assert!(sheaf.len() >= n);
        drop((sheaf, used, rest));
        pool.close().unwrap();
        assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
    }
}

#[test]
fn free_takes_boxes_of_its_own_pool_while_there_is_room() {
    let drops = Drops::default();
    let pool = Pool::builder("own").sheaf_capacity(4).build().unwrap();
    let other = Pool::builder("other").sheaf_capacity(4).build().unwrap();
    let mut sheaf = pool.prefill(4).unwrap();
    let full = sheaf.free(pool.alloc(drops.object(1))).unwrap_err();
    assert_eq!((full.id, drops.count()), (1, 0), "untouched");
    let a = sheaf.alloc(drops.object(2)).unwrap();
    let foreign = sheaf.free(other.alloc(drops.object(3))).unwrap_err();
    assert_eq!((foreign.id, drops.count()), (3, 0), "untouched");
    let start = PoolBox::as_ptr(&a);
    sheaf.free(a).unwrap();
    assert_eq!((drops.count(), sheaf.len()), (1, 4));
    let again = sheaf.alloc(drops.object(4)).unwrap();
    assert_eq!(PoolBox::as_ptr(&again), start, "the warmest slot first");
    let bad = pool.alloc(drops.panicking(5));
    catch_unwind(AssertUnwindSafe(|| sheaf.free(bad).is_ok())).unwrap_err();
    assert_eq!(
        (sheaf.len(), pool.stats().prefilled),
        (4, 4),
        "the slot is in the sheaf all the same"
    );
    let mut none = pool.prefill(0).unwrap();
    drop(none.free(full).unwrap_err());
    drop((sheaf, again, foreign, none));
    assert_eq!((pool.stats().live, other.stats().live), (0, 0));
}

#[test]
fn a_sheaf_works_on_another_thread_and_without_handles() {
    let source = Metered::new();
    let pool = Pool::<Object>::builder("moves")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let mut sheaf = pool.prefill(100).unwrap();
    assert_eq!(pool.handles(), 2);
    drop(pool);
    let boxes = std::thread::spawn(move || {
        source.set_budget(Some(0));
        let boxes: Vec<_> = (0..100).map(|i| sheaf.alloc([i; 30]).unwrap()).collect();
        assert!(sheaf.refill(1).is_ok() || sheaf.is_empty());
        source.set_budget(None);
        sheaf.refill(5).unwrap();
        drop(sheaf);
        (boxes, source)
    });
    let (boxes, source) = boxes.join().unwrap();
    assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
    drop(boxes);
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn n_allocations_succeed_whatever_happens_elsewhere() {
    let source = Metered::new();
    let builder = Pool::<Object>::builder("promised")
        .source(Arc::clone(&source))
        .limit(200);
    let pool = builder.build().unwrap();
    let mut sheaf = pool.prefill(50).unwrap();
    source.set_budget(Some(0));
    let others: Vec<_> = core::iter::from_fn(|| pool.try_alloc([1; 30]).ok()).collect();
    assert_eq!(others.len() + sheaf.len(), 200, "one slab holds 272");
    pool.shrink();
    drop(pool);
    let boxes: Vec<_> = (0..50).map(|i| sheaf.alloc([i; 30]).unwrap()).collect();
    assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
}

#[test]
fn a_large_request_ends_while_another_thread_shrinks() {
    watched("requests against shrinks", || {
        let pool = Pool::<[u64; 1200]>::builder("eager")
            .order(Order::new(0))
            .build()
            .unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(SEQ) {
                    pool.shrink();
                }
            });
            for _ in 0..20 {
                // A slab holds six: four hundred slabs at once.
                drop(pool.prefill(2400).expect("memory is there"));
                let mut boxes = Vec::new();
                pool.try_alloc_uninit_bulk(2400, &mut boxes)
                    .expect("memory is there");
            }
            done.store(true, SEQ);
        });
    });
}
