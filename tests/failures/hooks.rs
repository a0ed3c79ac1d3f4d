//! Promise 1: the report hook runs under no lock, may use every pool, cause reports itself, and panic.

use core::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use sheaves::{Heap, Pool, PoolBox, ReportKind, set_report_hook};

use crate::machine::on_one_node;
use crate::support::{SEQ, isolated, on_a_deep_stack, panics};

/// Frees the object behind a pointer a second time: misuse that only unsafe code can commit.
fn misuse(pool: &Pool<[u64; 30]>) -> usize {
    let raw = PoolBox::into_raw(pool.alloc([1; 30]));
    // SAFETY: taken back once.
    drop(unsafe { PoolBox::from_raw(raw) });
    // SAFETY: none: this is the misuse. The slab is there yet, since another object keeps it.
    drop(unsafe { PoolBox::from_raw(raw) });
    raw.addr()
}

/// A pool that tells of a double free at once, since nothing is parked.
fn strict() -> Pool<[u64; 30]> {
    let builder = Pool::builder("strict").sheaf_capacity(0);
    builder.source(Heap).build().expect("a pool")
}

/// Promise 1: hooks inside hooks, which use the pool that is reported and misuse it again.
#[test]
fn hooks_inside_hooks() {
    isolated("hooks::hooks_inside_hooks", || {
        for depth in [1, 1000] {
            for panics_at_bottom in [false, true] {
                let pool = strict();
                let _keeps_the_slab = pool.alloc([0; 30]);
                let inner = pool.clone();
                let now = AtomicUsize::new(0);
                set_report_hook(Box::new(move |report| {
                    assert_eq!(report.kind(), ReportKind::DoubleFree);
                    drop(inner.alloc([2; 30]));
                    if now.fetch_add(1, SEQ) + 1 < depth {
                        misuse(&inner);
                    } else {
                        // A hook may set another.
                        set_report_hook(Box::new(|_| {}));
                        assert!(!panics_at_bottom, "the innermost hook panics");
                    }
                }));
                on_a_deep_stack("hooks", || {
                    assert_eq!(
                        panics(|| {
                            misuse(&pool);
                        }),
                        panics_at_bottom
                    );
                });
                let stats = pool.stats();
                assert_eq!(stats.reports, depth as u64, "{stats:?}");
                assert_eq!(stats.live, 1, "what was freed twice is free: {stats:?}");
                drop(pool.alloc([3; 30]));
                set_report_hook(Box::new(|_| {}));
            }
        }
    });
}

/// Every slot of a batch that was freed twice is told, not only the first.
#[test]
fn each_double_free_of_a_batch_is_told() {
    isolated("hooks::each_double_free_of_a_batch_is_told", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hook = Arc::clone(&told);
        set_report_hook(Box::new(move |report| {
            let mut told = hook.lock().unwrap_or_else(PoisonError::into_inner);
            told.push((report.kind(), report.address()));
        }));
        for (capacity, count) in [(0, 5), (4, 3), (60, 40)] {
            let builder = Pool::builder("batch").sheaf_capacity(capacity);
            let pool: Pool<[u64; 30]> = on_one_node(builder.source(Heap));
            let _keeps_the_slab = pool.alloc([0; 30]);
            let raw: Vec<_> = (0..count)
                .map(|_| PoolBox::into_raw(pool.alloc([1; 30])))
                .collect();
            for _ in 0..2 {
                let boxes = raw.iter().map(|&raw| {
                    // SAFETY: none for the second time: this is the misuse.
                    unsafe { PoolBox::from_raw(raw) }
                });
                PoolBox::free_bulk(boxes);
                pool.shrink();
            }
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.sort_unstable_by_key(|&(_, address)| address);
            let mut expected: Vec<_> = raw
                .iter()
                .map(|raw| (ReportKind::DoubleFree, raw.addr()))
                .collect();
            expected.sort_unstable_by_key(|&(_, address)| address);
            assert_eq!(*told, expected, "capacity {capacity}");
            assert_eq!(pool.stats().reports, count as u64);
            told.clear();
        }
    });
}
