//! Promise 1: a page source runs under no lock and may use every function of the pool that calls it.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use sheaves::{Heap, Order, PageSource, Pool, PoolBox};

use crate::support::isolated;

pub(crate) type Object = [u64; 1200];

/// Everything that can be done to a pool, from within something that it called.
pub(crate) fn meddle(pool: &Pool<Object>) {
    let boxes: Vec<_> = (0..3).map(|i| pool.alloc([i; 1200])).collect();
    drop(boxes[0].clone());
    drop(pool.try_alloc_now([1; 1200]));
    let mut uninit = Vec::new();
    let _ = pool.try_alloc_uninit_bulk(20, &mut uninit);
    PoolBox::free_bulk(uninit);
    if let Ok(mut sheaf) = pool.prefill(5) {
        drop(sheaf.alloc([2; 1200]).map_err(drop));
        drop(sheaf.refill(80));
    }
    drop(boxes);
    drop(allocator_api2::vec::Vec::<u8, _>::with_capacity_in(
        100_000, pool,
    ));
    drop((pool.stats(), pool.handles(), pool.clone()));
    assert!(!pool.owns(core::ptr::null()));
    pool.flush_thread();
    pool.shrink();
    drop((sheaves::slabinfo(), sheaves::pools()));
    drop(pool.clone().close());
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Uses a pool, the very one that calls it, in every method.
#[derive(Default)]
struct Meddler {
    pool: Mutex<Option<Pool<Object>>>,
    calls: AtomicUsize,
    /// Takes the pool's handle away in this call.
    drop_at: AtomicUsize,
    panic_every: AtomicUsize,
}

impl Meddler {
    fn act(&self) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let depth = DEPTH.get();
        if depth > 0 {
            return;
        }
        let lock = || self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if call == self.drop_at.load(Ordering::SeqCst) {
            let pool = lock().take();
            return drop(pool);
        }
        let every = self.panic_every.load(Ordering::SeqCst);
        assert!(
            every == 0 || call % every != 0,
            "the meddling source panics"
        );
        let Some(pool) = lock().clone() else { return };
        DEPTH.set(depth + 1);
        meddle(&pool);
        DEPTH.set(depth);
    }
}

// SAFETY: blocks come from `Heap` and go back to it with the same layout.
unsafe impl PageSource for Meddler {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.act();
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
        self.act();
    }

    fn trim(&self) -> usize {
        self.act();
        0
    }
}

fn meddled(capacity: usize) -> (Pool<Object>, Arc<Meddler>) {
    let source = Arc::new(Meddler::default());
    let builder = Pool::builder("meddled")
        .source(Arc::clone(&source))
        .sheaf_capacity(capacity);
    let pool = builder
        .min_partial(0)
        .barn(1, 1)
        .order(Order::new(0))
        .build()
        .expect("a fine configuration");
    *source.pool.lock().expect("nobody panicked") = Some(pool.clone());
    (pool, source)
}

fn end(pool: Pool<Object>, source: &Arc<Meddler>) {
    DEPTH.set(0);
    let kept = source
        .pool
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(kept);
    assert_eq!(pool.stats().live, 0, "{:?}", pool.stats());
    pool.close().expect("nothing is out");
    assert_eq!(Arc::strong_count(source), 1);
}

#[test]
fn a_page_source_uses_the_pool_it_serves() {
    isolated("reentry::a_page_source_uses_the_pool_it_serves", || {
        for capacity in [0, 1, 6, 60] {
            let (pool, source) = meddled(capacity);
            let mut boxes: Vec<_> = (0..50).map(|i| pool.alloc([i; 1200])).collect();
            let mut sheaf = pool.prefill(30).unwrap();
            sheaf.refill(100).unwrap();
            assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 1200]));
            boxes.push(sheaf.alloc([50; 1200]).unwrap());
            drop(sheaf);
            let mut uninit = Vec::new();
            pool.try_alloc_uninit_bulk(100, &mut uninit).unwrap();
            drop(uninit);
            assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 1200]));
            pool.shrink();
            PoolBox::free_bulk(boxes);
            pool.flush_thread();
            pool.shrink();
            assert!(source.calls.load(Ordering::SeqCst) > 50);
            end(pool, &source);
        }
    });
}

#[test]
fn a_page_source_panics_now_and_then() {
    isolated("reentry::a_page_source_panics_now_and_then", || {
        for capacity in [0, 6, 60] {
            for every in [2, 3, 7] {
                let (pool, source) = meddled(capacity);
                let mut boxes = Vec::new();
                source.panic_every.store(every, Ordering::SeqCst);
                let quietly = |body: &mut dyn FnMut()| drop(catch_unwind(AssertUnwindSafe(body)));
                for i in 0..20 {
                    quietly(&mut || boxes.push(pool.alloc([i; 1200])));
                    quietly(&mut || drop(pool.prefill(20)));
                    quietly(&mut || {
                        let mut uninit = Vec::new();
                        drop(pool.try_alloc_uninit_bulk(20, &mut uninit));
                    });
                    quietly(&mut || _ = pool.shrink());
                    if i % 3 == 0 {
                        quietly(&mut || drop(boxes.pop()));
                    }
                    DEPTH.set(0);
                }
                assert!(
                    boxes
                        .iter()
                        .all(|boxed| boxed.iter().all(|word| *word == boxed[0]))
                );
                source.panic_every.store(0, Ordering::SeqCst);
                drop(boxes);
                end(pool, &source);
            }
        }
    });
}

#[test]
fn a_page_source_drops_the_last_handle() {
    isolated("reentry::a_page_source_drops_the_last_handle", || {
        for at in 1..40 {
            let (pool, source) = meddled(6);
            source.calls.store(1000, Ordering::SeqCst);
            let mut boxes: Vec<_> = (0..10).map(|i| pool.alloc([i; 1200])).collect();
            let calls = source.calls.load(Ordering::SeqCst);
            drop(pool);
            // The handle that the source keeps is the last; clones need none.
            source.drop_at.store(calls + at, Ordering::SeqCst);
            for i in 0..60 {
                boxes.push(boxes[i % 10].clone());
            }
            assert!(
                boxes
                    .iter()
                    .all(|boxed| boxed.iter().all(|word| *word == boxed[0]))
            );
            drop(boxes);
            // Not under the lock, which the end of the pool asks for too.
            let last = source.pool.lock().unwrap().take();
            drop(last);
            assert_eq!(Arc::strong_count(&source), 1, "call {at}");
        }
    });
}

/// Shrinks the pool that is growing, as a source does that is short of memory itself.
struct Shrinker(Mutex<Option<Pool<Object>>>);

// SAFETY: blocks come from `Heap` and go back to it with the same layout.
unsafe impl PageSource for Shrinker {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        if let Some(pool) = self.0.lock().expect("nobody panicked").clone() {
            pool.shrink();
        }
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
    }
}

#[test]
fn a_page_source_shrinks_the_pool_that_is_growing() {
    isolated(
        "reentry::a_page_source_shrinks_the_pool_that_is_growing",
        || {
            for capacity in [6, 60] {
                let source = Arc::new(Shrinker(Mutex::new(None)));
                // A slab holds six.
                let builder = Pool::builder("shrinker").source(Arc::clone(&source));
                let pool = builder
                    .order(Order::new(0))
                    .sheaf_capacity(capacity)
                    .build()
                    .unwrap();
                *source.0.lock().unwrap() = Some(pool.clone());
                let boxes: Vec<_> = (0..20).map(|i| pool.alloc([i; 1200])).collect();
                let mut uninit = Vec::new();
                pool.try_alloc_uninit_bulk(20, &mut uninit).unwrap();
                let mut sheaf = pool.prefill(20).unwrap();
                sheaf.refill(80).unwrap();
                drop((boxes, uninit, sheaf));
                let last = source.0.lock().unwrap().take();
                drop(last);
            }
        },
    );
}
