//! Page sources that fail at every possible call, give less than was asked for, and give memory as they found it.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use sheaves::{AllocErrorKind, Heap, Order, PageSource, Pool, PoolBox};

use crate::support::{SEQ, Unkind, assert_home, watched};

type Object = [u64; 30];

/// One of every call that may ask the source; what succeeded is whole, what failed gave everything back.
fn use_everything(pool: &Pool<Object>) {
    let mut boxes: Vec<PoolBox<Object>> = Vec::new();
    for i in 0..700 {
        match pool.try_alloc([i; 30]) {
            Ok(boxed) => boxes.push(boxed),
            Err(error) => {
                assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
                assert_eq!(error.into_value(), [i; 30]);
            }
        }
    }
    let mut bulk = Vec::new();
    let before = pool.stats().live;
    match pool.try_alloc_uninit_bulk(400, &mut bulk) {
        Ok(()) => assert_eq!(bulk.len(), 400),
        Err(_) => assert_eq!((bulk.len(), pool.stats().live), (0, before)),
    }
    if let Ok(mut sheaf) = pool.prefill(300) {
        let _ = sheaf.refill(600);
        for i in 0..300 {
            boxes.push(sheaf.alloc([i; 30]).expect("300 were promised"));
        }
    }
    let mut numbers = allocator_api2::vec::Vec::new_in(pool);
    for i in 0..5000_u64 {
        if numbers.try_reserve(1).is_err() {
            break;
        }
        numbers.push(i);
    }
    assert!((0..).zip(&numbers).all(|(i, &number)| i == number));
    assert!(boxes.iter().all(|boxed| boxed[0] == boxed[29]));
}

/// Promise 1's other half: whichever call of the source fails, once or from then on, nothing is lost.
#[test]
fn a_source_that_fails_at_the_nth_call() {
    watched("a source that fails", || {
        for capacity in [0, 8, 60] {
            for and_after in [false, true] {
                for nth in 1.. {
                    let source = Arc::new(Unkind::failing_at(nth, and_after));
                    let builder = Pool::builder("failing").sheaf_capacity(capacity);
                    let built = builder
                        .order(Order::new(0))
                        .reserve(300)
                        .source(Arc::clone(&source))
                        .build();
                    let Ok(pool) = built else {
                        assert_eq!(source.bytes.load(SEQ), 0, "a refused pool kept pages");
                        continue;
                    };
                    use_everything(&pool);
                    assert_eq!(pool.stats().live, 0, "{:?}", pool.stats());
                    drop(pool);
                    assert_eq!(source.bytes.load(SEQ), 0, "call {nth} lost pages");
                    if source.calls.load(SEQ) < nth {
                        break;
                    }
                }
            }
        }
    });
}

/// A source that gives no more than the least that holds an object.
#[test]
fn a_source_that_gives_less_than_was_asked_for() {
    let source = Arc::new(Unkind::up_to(1 << 16));
    let pool: Pool<Object> = Pool::builder("less")
        .order(Order::LARGE)
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    use_everything(&pool);
    assert!(pool.stats().order_fallback > 0, "{:?}", pool.stats());
    assert_home(&pool);
    assert_eq!(source.bytes.load(SEQ), 0);
}

/// Memory is dirty when it comes and when it goes, and the pool minds neither.
#[test]
fn a_source_whose_memory_is_dirty() {
    for order in [Order::new(0), Order::AUTO, Order::new(4)] {
        let source = Arc::new(Unkind::new());
        let pool: Pool<Object> = Pool::builder("dirty")
            .order(order)
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        for _ in 0..3 {
            use_everything(&pool);
            assert_home(&pool);
            assert_eq!(source.bytes.load(SEQ), 0);
        }
    }
}

/// Takes all that its pool may give whenever a slab comes back, so that the pool looks for slots everywhere.
#[derive(Default)]
struct Greedy {
    pool: OnceLock<Pool<Large>>,
    refusals: AtomicUsize,
}

/// Of which a page holds three.
type Large = [u8; 20_000];

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: pages are the heap's.
unsafe impl PageSource for &'static Greedy {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
        let Some(pool) = self.pool.get().filter(|_| !INSIDE.replace(true)) else {
            return;
        };
        let mut taken = Vec::new();
        while let Ok(uninit) = pool.try_alloc_uninit() {
            taken.push(uninit);
        }
        self.refusals.fetch_add(1, SEQ);
        drop(taken);
        INSIDE.set(false);
    }
}

/// Promises 1 and 3: a page source that is given a slab back may come to the limit, where its pool waits for all who
/// have slots in hand: whoever gives the slab back must not be one of them.
#[test]
fn a_source_that_gets_a_slab_back_comes_to_the_limit() {
    const LIMIT: usize = 50;
    watched("a greedy source", || {
        // With many slabs kept, only a shrink gives them back.
        for (capacity, min_partial) in [(1, 0), (4, 0), (9, 0), (4, 100)] {
            let source: &'static Greedy = Box::leak(Box::default());
            let pool: Pool<Large> = Pool::builder("greedy")
                .order(Order::new(0))
                .sheaf_capacity(capacity)
                .barn(0, 0)
                .min_partial(min_partial)
                .limit(LIMIT)
                .source(source)
                .build()
                .unwrap();
            source.pool.set(pool.clone()).expect("it was not set");
            let boxes = || (0..40).map(|_| pool.alloc_uninit()).collect::<Vec<_>>();
            drop(boxes());
            pool.shrink();
            PoolBox::free_bulk(boxes());
            pool.flush_thread();
            drop((boxes(), pool.prefill(5)));
            let elsewhere = boxes();
            std::thread::scope(|scope| {
                let thread = scope.spawn(move || drop(elsewhere));
                thread.join().expect("it did well");
            });
            assert!(source.refusals.load(SEQ) > 0);
            INSIDE.set(true);
            assert_home(&pool);
            INSIDE.set(false);
        }
    });
}
