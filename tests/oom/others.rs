//! What is not allocated by an operation on one object: pools, what threads have of their own, other layouts.

use alloc::sync::Arc;

use sheaves::{BuildError, Pool, PoolBox};

use crate::Object;
use crate::failing::{Plan, Source, failing_at};

#[test]
fn pools_that_cannot_be_built() {
    let _one = crate::alone();
    for reserve in [0, 300] {
        for nth in 1.. {
            let source = Source::new();
            let builder = crate::builder(&source, 5).reserve(reserve);
            let (result, failed) = failing_at(Plan::nth(nth), || builder.build());
            match result {
                Ok(pool) => {
                    drop(pool.alloc([1; 30]));
                    pool.close().expect("nothing is out");
                }
                Err(error) => assert!(matches!(error, BuildError::OutOfMemory { .. }), "{error}"),
            }
            assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
            if !failed {
                assert!(nth > 3, "a cache, a handle and an entry in the registry");
                break;
            }
        }
    }
}

type Operation = fn(&Pool<Object>, PoolBox<Object>) -> bool;

/// Whatever a thread does first needs sheaves of its own, and goes on without them.
#[test]
fn threads_that_are_new_to_a_pool() {
    let operations: [Operation; 4] = [
        |pool, _| pool.try_alloc([1; 30]).is_ok(),
        |pool, _| pool.prefill(3).is_ok(),
        |pool, _| pool.try_alloc_now([1; 30]).is_ok(),
        |_, boxed| {
            drop(boxed);
            true
        },
    ];
    let _one = crate::alone();
    for (which, operation) in operations.into_iter().enumerate() {
        for nth in 1.. {
            let source = Source::new();
            let pool = crate::pool(&source, 5);
            let boxed = pool.alloc([2; 30]);
            let thread = || {
                let once = || operation(&pool, boxed);
                let (succeeded, failed) = failing_at(Plan::nth(nth), once);
                drop(pool.alloc([3; 30]));
                (succeeded, failed)
            };
            let (succeeded, failed) = std::thread::scope(|scope| {
                let thread = scope.spawn(thread);
                thread.join().expect("it does not panic")
            });
            let stats = pool.stats();
            assert_eq!((stats.live, stats.prefilled), (0, 0), "{which}, {nth}");
            pool.close().expect("nothing is out");
            assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
            if !failed {
                assert!(succeeded, "operation {which}");
                break;
            }
        }
    }
}

/// Arrays of objects, small layouts and whole pages: each kind has a cache, which is made when it is first asked for.
#[cfg(feature = "allocator-api2-02")]
#[test]
fn other_layouts() {
    use allocator_api2::alloc::{Allocator, Layout};

    let layouts = [
        Layout::new::<[Object; 3]>(),
        Layout::new::<[u8; 100]>(),
        Layout::new::<[u8; 100_000]>(),
    ];
    for capacity in [0, 5] {
        for layout in layouts {
            crate::each_allocation_fails("other layouts", capacity, |pool| {
                let Ok(block) = pool.allocate(layout) else {
                    return false;
                };
                // SAFETY: allocated by this pool with this layout, and not used any more.
                unsafe { pool.deallocate(block.cast(), layout) };
                true
            });
        }
    }
}
