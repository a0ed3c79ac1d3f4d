//! Promise 1: constructors, destructors, closures and iterators run under no lock and may use every function of
//! the pool that calls them.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sheaves::{Pool, PoolBox};

use crate::reentry::{Object, meddle};
use crate::support::isolated;

/// Uses its own pool when it is made and when it is dropped.
struct Busy {
    pool: Option<Pool<Self>>,
    depth: usize,
    child: Option<PoolBox<Self>>,
}

impl Busy {
    fn new(pool: &Pool<Self>, depth: usize) -> Self {
        let child = (depth > 0).then(|| pool.alloc_with(|| Self::new(pool, depth - 1)));
        Self {
            pool: Some(pool.clone()),
            depth,
            child,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let leaf = || Self {
            pool: None,
            depth: 0,
            child: None,
        };
        let boxes: Vec<_> = (0..20).map(|_| pool.alloc(leaf())).collect();
        if self.depth % 2 == 0 {
            PoolBox::free_bulk(boxes);
        }
        if let Ok(mut sheaf) = pool.prefill(3) {
            let boxed = sheaf.alloc_with(leaf);
            drop(boxed.map(|boxed| sheaf.free(boxed)));
        }
        pool.flush_thread();
        pool.shrink();
        drop(self.child.take());
    }
}

#[test]
fn constructors_and_destructors_use_their_own_pool() {
    isolated(
        "objects::constructors_and_destructors_use_their_own_pool",
        || {
            for capacity in [0, 1, 4, 60] {
                let pool = Pool::builder("busy")
                    .sheaf_capacity(capacity)
                    .min_partial(0)
                    .build()
                    .unwrap();
                let boxes: Vec<_> = (0..30)
                    .map(|i| pool.alloc_with(|| Busy::new(&pool, i % 5)))
                    .collect();
                PoolBox::free_bulk(boxes);
                let boxes: Vec<_> = (0..30)
                    .map(|i| pool.alloc(Busy::new(&pool, i % 5)))
                    .collect();
                drop(boxes);
                let mut sheaf = pool.prefill(4).unwrap();
                let boxed = sheaf
                    .alloc_with(|| Busy::new(&pool, 3))
                    .map_err(drop)
                    .unwrap();
                sheaf.free(boxed).map_err(drop).unwrap();
                drop(sheaf);
                pool.shrink();
                assert_eq!(
                    (pool.stats().live, pool.stats().bytes, pool.handles()),
                    (0, 0, 1)
                );
            }
        },
    );
}

#[test]
fn the_last_object_holds_the_last_handle() {
    struct Owner(#[expect(dead_code, reason = "held")] Pool<Self>);
    isolated("objects::the_last_object_holds_the_last_handle", || {
        for bulk in [false, true] {
            let source = crate::support::Metered::new();
            let pool = Pool::<Owner>::builder("circle")
                .source(Arc::clone(&source))
                .build()
                .unwrap();
            let boxes: Vec<_> = (0..100)
                .map(|_| pool.alloc_with(|| Owner(pool.clone())))
                .collect();
            drop(pool);
            if bulk {
                PoolBox::free_bulk(boxes)
            } else {
                drop(boxes)
            }
            assert_eq!(
                (source.blocks(), Arc::strong_count(&source)),
                (0, 1),
                "bulk: {bulk}"
            );
        }
    });
}

#[test]
fn iterators_and_closures_use_the_pool() {
    isolated("objects::iterators_and_closures_use_the_pool", || {
        let pool = Pool::<Object>::builder("iterated")
            .sheaf_capacity(6)
            .barn(1, 1)
            .build()
            .unwrap();
        for stop in [10, 40, 100] {
            let boxes = (0..100).map(|i| {
                meddle(&pool);
                assert!(i != stop, "the iterator stops");
                pool.alloc([i; 1200])
            });
            let ended = catch_unwind(AssertUnwindSafe(|| PoolBox::free_bulk(boxes)));
            assert_eq!(ended.is_err(), stop < 100);
            assert_eq!(pool.stats().live, 0);
        }
        let boxed = pool.alloc_with(|| {
            meddle(&pool);
            *pool.alloc_with(|| [7; 1200])
        });
        assert_eq!(*boxed, [7; 1200]);
        // The iterator owns the last handle and drops it before its last box.
        let mut handle = Some(pool);
        let mut last = Some(boxed);
        PoolBox::free_bulk(core::iter::from_fn(|| {
            drop(handle.take());
            last.take()
        }));
    });
}
