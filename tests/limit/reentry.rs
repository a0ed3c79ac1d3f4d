//! Page sources that use the pool they serve, while it is at its limit.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use sheaves::{AllocErrorKind, Heap, PageSource, Pool, PoolBox, PrefilledSheaf};

use crate::support::{SEQ, THREADS, assert_sums, scaled, watched};

type Small = [u64; 8];

/// A source that uses its pool in each of its calls.
#[derive(Debug, Default)]
struct Reenter {
    /// The pool, once it is there. Weak, or the source would keep its pool open.
    pool: OnceLock<Weak<Pool<Small>>>,
    calls: AtomicUsize,
    refused: AtomicUsize,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Reenter {
    fn reenter(&self) {
        let Some(pool) = self.pool.get().and_then(Weak::upgrade) else {
            return;
        };
        if DEPTH.get() > 0 {
            return;
        }
        DEPTH.set(1);
        let call = self.calls.fetch_add(1, SEQ);
        // Two at a time at most: the callers leave room for that much, or the pool is full and says so.
        let refused = match call % 5 {
            0 => pool.try_alloc([1; 8]).map(drop).is_err(),
            1 => {
                let both = [pool.try_alloc([1; 8]), pool.try_alloc([2; 8])];
                both.iter().any(Result::is_err)
            }
            2 => pool.prefill(1).map(drop).is_err(),
            3 => {
                pool.shrink();
                false
            }
            _ => {
                pool.flush_thread();
                let _ = pool.try_alloc_now([3; 8]).map(drop);
                assert!(pool.stats().slots < 1 << 20);
                false
            }
        };
        self.refused.fetch_add(usize::from(refused), SEQ);
        DEPTH.set(0);
    }
}

// SAFETY: every block is one of `Heap`, which gets it back with its layout.
unsafe impl PageSource for Reenter {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.reenter();
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
        self.reenter();
    }

    fn trim(&self) -> usize {
        self.reenter();
        0
    }
}

fn pool_with(source: &Arc<Reenter>, limit: usize, capacity: usize) -> Arc<Pool<Small>> {
    let builder = Pool::builder("reenter")
        .source(Arc::clone(source))
        .limit(limit);
    // No slab is kept, so that the source is called all the time.
    let builder = builder.sheaf_capacity(capacity).barn(1, 1).min_partial(0);
    let pool = Arc::new(builder.build().unwrap());
    assert!(source.pool.set(Arc::downgrade(&pool)).is_ok());
    pool
}

/// Promises 1 and 3: a source that takes slots while its pool wants more finds the limit as exact as anybody.
#[test]
fn a_source_may_use_its_pool_at_the_limit() {
    watched("a source at the limit", || {
        for limit in [1, 2, 3, 700, 1000] {
            for capacity in [0, 1, 60] {
                let source = Arc::new(Reenter::default());
                let pool = pool_with(&source, limit, capacity);
                for _ in 0..10 {
                    let kept: Vec<PoolBox<Small>> = (0..limit)
                        .map(|_| pool.try_alloc([5; 8]).unwrap())
                        .collect();
                    let error = pool.try_alloc([6; 8]).unwrap_err();
                    assert_eq!(error.kind(), AllocErrorKind::LimitReached);
                    assert_eq!(pool.stats().live, limit as u64);
                    drop(kept);
                    pool.shrink();
                    assert_sums(&pool);
                    assert_eq!(pool.stats().live, 0);
                }
                assert!(source.calls.load(SEQ) > 0);
            }
        }
    });
}

/// Promises 1 and 3: the same with eight threads, each of which leaves room for what its source calls take.
#[test]
fn sources_of_many_threads_may_use_their_pool_at_the_limit() {
    watched("sources of many threads", || {
        const SHARE: usize = 90;
        // What a thread's own source call may take at a time: two objects, or a prefilled sheaf.
        const EXTRA: usize = 8;
        let source = Arc::new(Reenter::default());
        let pool = pool_with(&source, (SHARE + EXTRA) * THREADS, EXTRA);
        std::thread::scope(|scope| {
            let work = || {
                scope.spawn(|| {
                    for round in 0..scaled(600) {
                        let kept: Vec<_> = (0..SHARE)
                            .map(|_| pool.try_alloc([5; 8]).unwrap())
                            .collect();
                        drop(kept);
                        if round % 8 == 0 {
                            pool.shrink();
                        }
                        let sheaf: PrefilledSheaf<Small> = pool.prefill(SHARE).unwrap();
                        assert_eq!(sheaf.len(), SHARE);
                        drop(sheaf);
                    }
                })
            };
            let threads: Vec<_> = (0..THREADS).map(|_| work()).collect();
            // A scope by itself does not wait for destructors of thread-locals.
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert_sums(&pool);
        assert!(source.calls.load(Ordering::SeqCst) > 100);
        assert_eq!(source.refused.load(SEQ), 0, "there was room for them");
    });
}
