//! What was refused leaves nothing behind.

use std::sync::Barrier;

use sheaves::{AllocErrorKind, Pool, PoolBox};

use crate::support::{Gated, assert_sums};

/// Live and prefilled slots, when nobody is inside a call.
fn taken<T>(pool: &Pool<T>) -> (u64, u64) {
    assert_sums(pool);
    let stats = pool.stats();
    (stats.live, stats.prefilled)
}

/// Promise 3: a refused bulk takes nothing, whether its slots were parked or not.
#[test]
fn a_refused_bulk_takes_nothing() {
    for (limit, kept, capacity) in [
        (1, 1, 60),
        (2, 1, 1),
        (100, 40, 4),
        (1000, 300, 60),
        (1000, 999, 0),
    ] {
        let builder = Pool::<usize>::builder("bulk").limit(limit);
        let pool = builder.sheaf_capacity(capacity).build().unwrap();
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    drop((0..limit / 2).map(|i| pool.alloc(i)).collect::<Vec<_>>());
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            let mut own: Vec<PoolBox<usize>> = (0..kept).map(|i| pool.alloc(i)).collect();
            let mut boxes = Vec::new();
            for n in [limit - kept + 1, limit, limit + 1, usize::MAX / 64] {
                let error = pool.try_alloc_uninit_bulk(n, &mut boxes).unwrap_err();
                let wanted = if n > 1 << 40 {
                    AllocErrorKind::OutOfMemory
                } else {
                    AllocErrorKind::LimitReached
                };
                assert_eq!((error.kind(), boxes.len()), (wanted, 0));
                assert_eq!(taken(&pool), (kept as u64, 0));
                assert_eq!(pool.handles(), 1);
            }
            // The rest can be had in one go, and after that not one.
            pool.try_alloc_uninit_bulk(limit - kept, &mut boxes)
                .unwrap();
            assert_eq!(taken(&pool), (limit as u64, 0));
            let before = boxes.len();
            pool.try_alloc_uninit_bulk(1, &mut boxes).unwrap_err();
            pool.try_alloc_uninit_bulk(0, &mut boxes).unwrap();
            assert_eq!(boxes.len(), before);
            PoolBox::free_bulk(boxes.drain(..));
            own.clear();
            assert_eq!(taken(&pool), (0, 0));
            barrier.wait();
        });
    }
}

/// Promise 3: a refused prefill takes nothing, leaves no handle, and does not spoil the sheaf it looked at.
#[test]
fn a_refused_prefill_takes_nothing() {
    for (limit, kept, capacity) in [
        (1, 1, 60),
        (2, 1, 1),
        (100, 40, 4),
        (1000, 300, 60),
        (1000, 950, 60),
    ] {
        let builder = Pool::<usize>::builder("prefill").limit(limit);
        let pool = builder.sheaf_capacity(capacity).build().unwrap();
        // Parks a spare for the prefill to look at.
        drop(
            (0..limit.min(3 * capacity))
                .map(|i| pool.alloc(i))
                .collect::<Vec<_>>(),
        );
        let own: Vec<PoolBox<usize>> = (0..kept).map(|i| pool.alloc(i)).collect();
        for _ in 0..3 {
            for n in [limit - kept + 1, limit + 1] {
                let error = pool.prefill(n).unwrap_err();
                assert_eq!(error.kind(), AllocErrorKind::LimitReached);
                assert_eq!(taken(&pool), (kept as u64, 0));
                assert_eq!(pool.handles(), 1);
            }
        }
        let sheaf = pool.prefill(limit - kept).unwrap();
        assert_eq!(taken(&pool), (kept as u64, sheaf.len() as u64));
        drop((own, sheaf));
        assert_eq!(taken(&pool), (0, 0));
        pool.close().unwrap();
    }
}

/// A prefill that finds part of what it wants, and then no memory, gives that part back.
#[test]
fn a_prefill_without_memory_takes_nothing() {
    let source = std::sync::Arc::new(Gated::default());
    let builder = Pool::<[u64; 64]>::builder("dry").source(std::sync::Arc::clone(&source));
    let pool = builder.sheaf_capacity(16).build().unwrap();
    let mut own: Vec<_> = (0..100).map(|_| pool.alloc([1; 64])).collect();
    source.shut(true);
    let slots = usize::try_from(pool.stats().slots).unwrap();
    for n in [slots - 99, slots, 10 * slots] {
        let error = pool.prefill(n).unwrap_err();
        assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
        assert_eq!((taken(&pool), pool.handles()), ((100, 0), 1));
        let error = pool.try_alloc_uninit_bulk(n, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
        assert_eq!(taken(&pool), (100, 0));
    }
    // All that is there can be had.
    let sheaf = pool.prefill(slots - 100).unwrap();
    assert_eq!(sheaf.len(), slots - 100);
    own.clear();
    drop(sheaf);
    assert_eq!(taken(&pool), (0, 0));
}

/// A failed refill keeps what it had and may keep what it got; nothing is lost.
#[test]
fn a_failed_refill_loses_nothing() {
    let pool = Pool::<u64>::builder("refill")
        .limit(50)
        .sheaf_capacity(8)
        .build()
        .unwrap();
    let own: Vec<_> = (0..30).map(|i| pool.alloc(i)).collect();
    let mut sheaf = pool.prefill(10).unwrap();
    for n in [21, 50, 51, 1000] {
        let error = sheaf.refill(n).unwrap_err();
        assert_eq!(error.kind(), AllocErrorKind::LimitReached);
        assert!((10..=20).contains(&sheaf.len()));
        assert_eq!(taken(&pool), (30, sheaf.len() as u64));
    }
    sheaf.refill(20).unwrap();
    assert_eq!((sheaf.len(), taken(&pool)), (20, (30, 20)));
    assert!(pool.try_alloc(0).is_err());
    drop(own);
    sheaf.refill(50).unwrap();
    assert_eq!(taken(&pool), (0, 50));
    drop(sheaf);
    assert_eq!(taken(&pool), (0, 0));
}
