//! The global allocator fails while a pool needs memory of it: for sheaves, lists, what a thread has of its own, caches.
#![allow(missing_docs, reason = "tests")]

extern crate alloc;

mod failing;
mod others;
#[cfg(feature = "rcu")]
mod retired;

use alloc::sync::Arc;
use std::sync::Mutex;

use failing::{Plan, Source, failing_at, spared};
use sheaves::{Builder, Order, Pool, PoolBox, PrefilledSheaf};

type Object = [u64; 30];

/// One test at a time: the source counts for all.
static ONE: Mutex<()> = Mutex::new(());

/// The others wait.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn pool(source: &Arc<Source>, capacity: usize) -> Pool<Object> {
    builder(source, capacity).build().expect("memory is there")
}

fn builder(source: &Arc<Source>, capacity: usize) -> Builder<Object> {
    let builder = Pool::builder("oom")
        .source(Arc::clone(source))
        .sheaf_capacity(capacity);
    builder.barn(2, 2).min_partial(0).order(Order::new(0))
}

/// Runs `operation` again and again, with each allocation failing in turn, until none is left.
fn each_allocation_fails(
    what: &str,
    capacity: usize,
    mut operation: impl FnMut(&Pool<Object>) -> bool,
) {
    let _one = alone();
    for nth in 1.. {
        let source = Source::new();
        let pool = pool(&source, capacity);
        let (succeeded, failed) = failing_at(Plan::nth(nth), || operation(&pool));
        let stats = pool.stats();
        assert_eq!(
            (stats.live, stats.prefilled),
            (0, 0),
            "{what}, allocation {nth}: {stats:?}"
        );
        assert_eq!(
            stats.slots,
            stats.cached + stats.barn + stats.free,
            "{what}, allocation {nth}: {stats:?}"
        );
        // It works again when there is memory.
        assert!(operation(&pool), "{what}, allocation {nth}");
        pool.flush_thread();
        pool.shrink();
        let stats = pool.stats();
        assert_eq!(stats.bytes, 0, "{what}, allocation {nth}: {stats:?}");
        assert_eq!(
            stats.sheaf_alloc, stats.sheaf_free,
            "{what}, allocation {nth}: {stats:?}"
        );
        pool.close().expect("nothing is out");
        assert_eq!(source.blocks(), 0);
        assert_eq!(Arc::strong_count(&source), 1);
        if !failed {
            assert!(succeeded, "{what}: nothing failed");
            println!("{what}: {} allocations", nth - 1);
            return;
        }
    }
}

#[test]
fn single_objects() {
    for capacity in [0, 1, 5, 60] {
        each_allocation_fails("try_alloc", capacity, |pool| {
            pool.try_alloc([1; 30]).is_ok()
        });
        each_allocation_fails("try_alloc_uninit", capacity, |pool| {
            pool.try_alloc_uninit().is_ok()
        });
        each_allocation_fails("try_alloc_with", capacity, |pool| {
            pool.try_alloc_with(|| [1; 30]).is_ok()
        });
        each_allocation_fails("try_alloc_pin", capacity, |pool| {
            pool.try_alloc_pin([1; 30]).is_ok()
        });
        each_allocation_fails("try_alloc_now", capacity, |pool| {
            let _ = pool.try_alloc_now([1; 30]);
            true
        });
    }
}

#[test]
fn an_object_needs_none_of_it() {
    let _one = alone();
    let source = Source::new();
    let pool = pool(&source, 60);
    let (boxed, failed) = failing_at(Plan::all(), || pool.try_alloc([5; 30]).ok());
    assert!(failed, "memory was asked for");
    assert_eq!(
        *boxed.expect("no memory for a sheaf does not mean none for an object"),
        [5; 30]
    );
}

#[test]
fn frees_never_fail() {
    for capacity in [1, 5, 60] {
        for bulk in [false, true] {
            each_allocation_fails("frees", capacity, |pool| {
                let mut boxes: Vec<PoolBox<Object>> = spared(|| Vec::with_capacity(500));
                while boxes.len() < 500 {
                    boxes.extend(pool.try_alloc([boxes.len() as u64; 30]));
                }
                assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
                if bulk {
                    PoolBox::free_bulk(boxes)
                } else {
                    drop(boxes)
                }
                true
            });
        }
    }
}

#[test]
fn many_objects() {
    for capacity in [0, 5, 60] {
        for n in [1, 50, 500] {
            each_allocation_fails("bulk", capacity, |pool| {
                let mut boxes = Vec::new();
                let result = pool.try_alloc_uninit_bulk(n, &mut boxes);
                assert_eq!(boxes.len(), if result.is_ok() { n } else { 0 });
                PoolBox::free_bulk(boxes);
                result.is_ok()
            });
        }
    }
}

#[test]
fn prefilled_sheaves() {
    for capacity in [0, 5, 60] {
        for n in [0, 1, 5, 50, 300] {
            each_allocation_fails("prefill", capacity, |pool| {
                let first = pool.prefill(n);
                let second = pool.prefill(n);
                assert!(first.as_ref().map_or(n, PrefilledSheaf::len) >= n);
                first.is_ok() && second.is_ok()
            });
            each_allocation_fails("refill", capacity, |pool| {
                let Ok(mut sheaf) = pool.prefill(3) else {
                    return false;
                };
                let held = sheaf.len();
                let refilled = sheaf.refill(n);
                assert!(sheaf.len() >= if refilled.is_ok() { n.max(held) } else { held });
                drop(sheaf.alloc([1; 30]).expect("three at least"));
                refilled.is_ok()
            });
        }
    }
}

/// In a process of its own: where it fails it ends the process.
#[test]
fn the_end_of_a_pool_needs_no_memory() {
    const MARK: &str = "OOM_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        let source = Source::new();
        let pool = pool(&source, 5);
        drop((0..100).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
        failing_at(Plan::all(), || drop(pool));
        assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
        return;
    }
    let exe = std::env::current_exe().expect("tests have an executable");
    let mut child = std::process::Command::new(exe);
    child
        .args([
            "the_end_of_a_pool_needs_no_memory",
            "--exact",
            "--nocapture",
        ])
        .env(MARK, "1");
    let output = child.output().expect("the executable can be run again");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}
