//! Retiring one object, wherever and whatever it is.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use sheaves::{Builder, Pool, PoolBox, ReportKind, rcu};

use crate::support::{Count, OnDrop, Token, alone, check};

fn shapes() -> Vec<Builder<Token>> {
    let builder = || Pool::builder("shapes");
    vec![
        builder(),
        builder().sheaf_capacity(0),
        builder().sheaf_capacity(1).barn(0, 0),
        builder().sheaf_capacity(7).barn(1, 1),
        builder().zero_on_free(),
        builder().debug(sheaves::DebugFlags::SANITY),
        builder().limit(1000),
    ]
}

#[test]
fn each_is_dropped_once_after_a_barrier() {
    for builder in shapes() {
        let (pool, count) = (builder.build().unwrap(), Count::new());
        for round in 1..=3 {
            for id in 0..200 {
                PoolBox::retire(pool.alloc(Token::new(id, &count)));
            }
            // Before the barrier the drain thread may be inside, and gauges are exact only while nobody is.
            pool.rcu_barrier().unwrap();
            assert_eq!(count.dropped(), round * 200);
            let stats = pool.stats();
            check(&stats);
            assert_eq!((stats.live, stats.retired), (0, 0));
        }
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
}

#[test]
fn nothing_is_dropped_while_pinned() {
    for builder in shapes() {
        let (pool, count) = (builder.build().unwrap(), Count::new());
        let guard = rcu::pin();
        for id in 0..500 {
            PoolBox::retire(pool.alloc(Token::new(id, &count)));
            rcu::drain();
        }
        assert_eq!(count.dropped(), 0);
        assert_eq!((pool.stats().retired, pool.stats().live), (500, 0));
        drop(guard);
        pool.rcu_barrier().unwrap();
        assert_eq!(count.dropped(), 500);
    }
}

/// Promises 3 and 11: retired objects count, and nothing is refused before they fill the limit.
#[test]
fn a_limit_counts_what_is_retired() {
    let (pool, count) = (
        Pool::builder("limited").limit(10).build().unwrap(),
        Count::new(),
    );
    let guard = rcu::pin();
    for id in 0..10 {
        PoolBox::retire(
            pool.try_alloc(Token::new(id, &count))
                .expect("below the limit"),
        );
    }
    let refused = pool.try_alloc(Token::new(10, &count));
    drop(refused.unwrap_err());
    assert_eq!(pool.stats().retired, 10);
    drop(guard);
    pool.rcu_barrier().unwrap();
    assert!(pool.try_alloc(Token::new(11, &count)).is_ok());
}

/// Promise 8, and promise 1: a chain of objects that retire each other.
#[test]
fn a_destructor_may_retire() {
    struct Link(
        #[expect(dead_code, reason = "dropped")] Option<Next>,
        Arc<AtomicUsize>,
    );
    struct Next(Option<PoolBox<Link>>);
    impl Drop for Next {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(PoolBox::retire);
        }
    }
    impl Drop for Link {
        fn drop(&mut self) {
            self.1.fetch_add(1, SeqCst);
        }
    }
    let (pool, count) = (Pool::new("chain"), Arc::new(AtomicUsize::new(0)));
    let mut first = None;
    for _ in 0..300 {
        first = Some(pool.alloc(Link(Some(Next(first.take())), Arc::clone(&count))));
    }
    PoolBox::retire(first.unwrap());
    while pool.stats().retired > 0 {
        pool.rcu_barrier().unwrap();
    }
    assert_eq!(count.load(SeqCst), 300);
}

#[test]
fn a_destructor_may_use_pools() {
    let pool = Pool::<OnDrop>::new("busy");
    let other = Pool::<u64>::builder("other")
        .sheaf_capacity(2)
        .build()
        .unwrap();
    for i in 0..200 {
        let (own, other) = (pool.clone(), other.clone());
        PoolBox::retire(pool.alloc(OnDrop::new(move || {
            let kept: Vec<_> = (0..5).map(|n| other.alloc(n + i)).collect();
            own.stats();
            drop(other.prefill(3).unwrap());
            other.shrink();
            assert_eq!(*kept[4], 4 + i);
        })));
    }
    pool.rcu_barrier().unwrap();
    assert_eq!(other.stats().live, 0);
}

/// A panic loses one object and no batch, unwinds out of nobody's code, and is told.
#[test]
fn a_destructor_that_panics_is_told_and_no_more() {
    let _alone = alone();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    sheaves::set_report_hook(Box::new(move |report| {
        let told = (
            report.kind(),
            report.pool().map(str::to_owned),
            report.text().map(str::to_owned),
        );
        telling.lock().unwrap().push(told);
        panic!("a hook that panics too");
    }));
    let (pool, count) = (
        Pool::<(Token, Option<OnDrop>)>::new("panicking"),
        Count::new(),
    );
    let result = catch_unwind(AssertUnwindSafe(|| {
        for id in 0..300 {
            let panicking = (id % 50 == 7).then(|| OnDrop::new(|| panic!("as it should")));
            PoolBox::retire(pool.alloc((Token::new(id, &count), panicking)));
        }
        pool.rcu_barrier().unwrap();
    }));
    assert!(result.is_ok());
    assert_eq!(count.dropped(), 300);
    let stats = pool.stats();
    assert_eq!((stats.retired, stats.live, stats.reports), (0, 0, 6));
    let expected = (
        ReportKind::Destructor,
        Some("panicking".to_owned()),
        Some("as it should".to_owned()),
    );
    assert_eq!(*told.lock().unwrap(), vec![expected; 6]);
    sheaves::set_report_hook(Box::new(|report| eprintln!("{report}")));
}

/// Boxes of what was never made, among others.
#[test]
fn a_slot_without_an_object_is_retired_too() {
    let (pool, count) = (Pool::new("bare"), Count::new());
    // Nobody else's drain comes in between.
    let guard = rcu::pin();
    let bare: PoolBox<MaybeUninit<Token>> = pool.alloc_uninit();
    PoolBox::retire(bare);
    PoolBox::retire(pool.alloc(Token::new(1, &count)));
    assert_eq!(pool.stats().retired, 2);
    drop(guard);
    pool.rcu_barrier().unwrap();
    assert_eq!((pool.stats().retired, pool.stats().live), (0, 0));
    assert_eq!(count.dropped(), 1);
}

#[test]
fn sizes_from_one_byte_to_megabytes_are_retired() {
    fn check<T: Send + 'static>(make: impl Fn() -> T, n: usize) {
        let pool = Pool::new("sizes");
        let boxes: Vec<_> = (0..n).map(|_| pool.alloc_with(&make)).collect();
        boxes.into_iter().for_each(PoolBox::retire);
        pool.rcu_barrier().unwrap();
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
    check(|| (), 500);
    check(|| 1_u8, 5000);
    check(|| [1_u8; 4096], 100);
    check(|| [1_u8; 70_000], 5);
}

#[test]
fn what_is_reaped_goes_round() {
    let pool = Pool::<[u64; 30]>::new("round");
    for _ in 0..200 {
        for _ in 0..100 {
            PoolBox::retire(pool.alloc([1; 30]));
        }
        pool.rcu_barrier().unwrap();
    }
    let stats = pool.stats();
    assert!(stats.alloc_slab < 20, "{stats:?}");
    assert_eq!(stats.free_rcu_sheaf, 20_000);
    assert_eq!(stats.batch_sizes.iter().sum::<u64>(), stats.rcu_batch);
    assert_eq!(stats.rcu_reaped, 20_000);
}
