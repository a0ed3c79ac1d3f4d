//! Promise 1: a panic of a page source leaves the pool usable and loses nothing.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sheaves::{Pool, PoolBox};

use crate::support::{Metered, isolated, on_threads};

/// Objects of which a slab of order 0 holds six: a sheaf of 60 takes ten slabs.
type Object = [u64; 1200];

fn pool(source: &Arc<Metered>) -> Pool<Object> {
    let builder = Pool::builder("panics")
        .source(Arc::clone(source))
        .min_partial(0);
    builder
        .order(sheaves::Order::new(0))
        .sheaf_capacity(60)
        .build()
        .expect("a fine configuration")
}

fn panics(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

/// Everything that was given out is accounted for and goes back.
#[track_caller]
fn settled(pool: Pool<Object>, source: &Arc<Metered>) {
    let stats = pool.stats();
    assert_eq!((stats.live, stats.prefilled), (0, 0), "{stats:?}");
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0, "{:?}", pool.stats());
    assert_eq!(source.blocks(), 0);
    pool.close().expect("nothing is left");
    assert_eq!(
        Arc::strong_count(source),
        1,
        "the engine is gone, and its source with it"
    );
}

#[test]
fn alloc_when_the_source_panics_in_the_middle_of_a_fill() {
    isolated(
        "panics::alloc_when_the_source_panics_in_the_middle_of_a_fill",
        || {
            for nth in 1..=2 {
                let source = Metered::new();
                let pool = pool(&source);
                source.panic_in_alloc(nth);
                let panicked = panics(|| drop(pool.alloc([7; 1200])));
                assert_eq!(panicked, nth == 1, "one slab is enough for one object");
                drop(pool.alloc([8; 1200]));
                settled(pool, &source);
            }
        },
    );
}

#[test]
fn bulk_when_the_source_panics() {
    isolated("panics::bulk_when_the_source_panics", || {
        for nth in 1..=5 {
            let source = Metered::new();
            let pool = pool(&source);
            let mut boxes = vec![pool.alloc_uninit()];
            pool.flush_thread();
            source.panic_in_alloc(nth);
            assert!(panics(|| pool
                .try_alloc_uninit_bulk(100, &mut boxes)
                .unwrap()));
            // Not more than before, or else boxes that the caller owns and frees; nothing is lost.
            boxes.truncate(1);
            assert_eq!(pool.stats().live, 1);
            pool.try_alloc_uninit_bulk(100, &mut boxes).unwrap();
            drop(boxes);
            settled(pool, &source);
        }
    });
}

#[test]
fn prefill_when_the_source_panics() {
    isolated("panics::prefill_when_the_source_panics", || {
        for n in [1_usize, 30, 60, 61, 200] {
            // A slab has six slots.
            for nth in 1..=n.div_ceil(6).min(5) {
                let source = Metered::new();
                let pool = pool(&source);
                source.panic_in_alloc(nth);
                assert!(
                    panics(|| drop(pool.prefill(n).unwrap())),
                    "{n} slots, slab {nth}"
                );
                let mut sheaf = pool.prefill(n).unwrap();
                assert_eq!(pool.stats().prefilled, sheaf.len() as u64);
                drop(sheaf.alloc([1; 1200]).unwrap());
                drop(sheaf);
                settled(pool, &source);
            }
        }
    });
}

#[test]
fn refill_when_the_source_panics() {
    isolated("panics::refill_when_the_source_panics", || {
        for n in [60, 100] {
            for nth in 1..=5 {
                let source = Metered::new();
                let pool = pool(&source);
                let mut sheaf = pool.prefill(10).unwrap();
                while sheaf.len() > 3 {
                    drop(sheaf.alloc([1; 1200]).unwrap());
                }
                let held: Vec<_> = (0..500).map(|_| pool.alloc_uninit()).collect();
                pool.flush_thread();
                pool.shrink();
                source.panic_in_alloc(nth);
                assert!(panics(|| sheaf.refill(n).unwrap()), "to {n}, slab {nth}");
                assert!(sheaf.len() >= 3);
                assert_eq!(
                    pool.stats().prefilled,
                    sheaf.len() as u64,
                    "to {n}, slab {nth}"
                );
                sheaf.refill(n).unwrap();
                assert!(sheaf.len() >= n);
                drop((sheaf, held));
                settled(pool, &source);
            }
        }
    });
}

#[test]
fn free_when_the_source_panics() {
    isolated("panics::free_when_the_source_panics", || {
        let source = Metered::new();
        let pool = Pool::builder("panics")
            .source(Arc::clone(&source))
            .min_partial(0)
            .sheaf_capacity(6);
        let pool = pool
            .barn(1, 1)
            .order(sheaves::Order::new(0))
            .build()
            .unwrap();
        let mut boxes: Vec<PoolBox<Object>> = (0..200).map(|i| pool.alloc([i; 1200])).collect();
        let mut panicked = 0;
        while let Some(boxed) = boxes.pop() {
            source.panic_in_free(1);
            panicked += usize::from(panics(|| drop(boxed)));
            source.panic_in_free(0);
        }
        assert!(panicked > 10, "slabs went back while objects were freed");
        settled(pool, &source);
    });
}

#[test]
fn bulk_free_when_the_source_panics() {
    isolated("panics::bulk_free_when_the_source_panics", || {
        let source = Metered::new();
        let pool = Pool::builder("panics")
            .source(Arc::clone(&source))
            .min_partial(0)
            .sheaf_capacity(6);
        let pool = pool
            .barn(1, 1)
            .order(sheaves::Order::new(0))
            .build()
            .unwrap();
        let boxes: Vec<PoolBox<Object>> = (0..200).map(|i| pool.alloc([i; 1200])).collect();
        source.panic_in_free(2);
        assert!(panics(|| PoolBox::free_bulk(boxes)));
        settled(pool, &source);
    });
}

#[test]
fn shrink_when_the_source_panics() {
    isolated("panics::shrink_when_the_source_panics", || {
        for nth in 1..=5 {
            let source = Metered::new();
            let pool = pool(&source);
            drop((0..100).map(|i| pool.alloc([i; 1200])).collect::<Vec<_>>());
            source.panic_in_free(nth);
            panics(|| _ = pool.shrink());
            source.panic_in_free(0);
            drop(pool.alloc([1; 1200]));
            settled(pool, &source);
        }
    });
}

#[test]
fn the_end_of_a_pool_when_the_source_panics() {
    isolated("panics::the_end_of_a_pool_when_the_source_panics", || {
        for nth in 1..=5 {
            let source = Metered::new();
            let pool = pool(&source);
            drop((0..200).map(|i| pool.alloc([i; 1200])).collect::<Vec<_>>());
            source.panic_in_free(nth);
            panics(|| drop(pool));
            assert_eq!(source.blocks(), 0, "slab {nth}: all memory is back");
            assert_eq!(
                Arc::strong_count(&source),
                1,
                "slab {nth}: the engine is gone"
            );
        }
    });
}

#[test]
fn the_last_object_when_the_source_panics() {
    isolated("panics::the_last_object_when_the_source_panics", || {
        let source = Metered::new();
        let pool = pool(&source);
        let kept = pool.alloc([5; 1200]);
        drop(pool);
        assert_eq!(source.blocks(), 1);
        source.panic_in_free(1);
        panics(|| drop(kept));
        assert_eq!(source.blocks(), 0);
        assert_eq!(Arc::strong_count(&source), 1, "the engine is gone");
    });
}

#[test]
fn a_thread_ends_when_the_source_panics() {
    isolated("panics::a_thread_ends_when_the_source_panics", || {
        let source = Metered::new();
        let pool = Pool::builder("panics")
            .source(Arc::clone(&source))
            .min_partial(0)
            .sheaf_capacity(6);
        let pool = pool
            .barn(0, 0)
            .order(sheaves::Order::new(0))
            .build()
            .unwrap();
        on_threads(1, |_| {
            drop((0..6).map(|i| pool.alloc([i; 1200])).collect::<Vec<_>>());
            source.panic_in_free(1);
        });
        source.panic_in_free(0);
        settled(pool, &source);
    });
}

#[test]
fn build_when_the_source_panics_or_fails_in_the_reserve() {
    isolated(
        "panics::build_when_the_source_panics_or_fails_in_the_reserve",
        || {
            for fails in [false, true] {
                let source = Metered::new();
                let builder = Pool::<Object>::builder("panics")
                    .source(Arc::clone(&source))
                    .reserve(60);
                let builder = builder.order(sheaves::Order::new(0));
                if fails {
                    source.set_budget(Some(3));
                    builder.build().unwrap_err();
                } else {
                    source.panic_in_alloc(4);
                    assert!(panics(|| drop(builder.build())));
                }
                assert_eq!(source.blocks(), 0, "fails {fails}");
                assert_eq!(Arc::strong_count(&source), 1, "fails {fails}");
            }
        },
    );
}
