//! The tight state: what a pool does at its limit, and how it comes back from there.

use core::time::Duration;
use std::sync::Barrier;
use std::time::Instant;

use sheaves::{AllocErrorKind, Pool};

use crate::support::{THREADS, watched};

/// Promise 3: refusing again and again is cheap: the threads are searched once, not at each refusal.
#[test]
fn a_pool_that_refuses_searches_once() {
    const REFUSALS: u32 = 100_000;
    for idle in [0, THREADS] {
        let builder = Pool::<u64>::builder("refuses").limit(1000);
        // So little that the idle threads come near the limit by what they hold, and not by what they fetch ahead.
        let pool = builder.sheaf_capacity(60).build().unwrap();
        let barrier = Barrier::new(idle + 1);
        std::thread::scope(|scope| {
            for _ in 0..idle {
                scope.spawn(|| {
                    drop((0..100).map(|i| pool.alloc(i)).collect::<Vec<_>>());
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            let kept: Vec<_> = (0..1000).map(|i| pool.try_alloc(i).unwrap()).collect();
            assert!(pool.try_alloc(0).is_err());
            let searches = pool.stats().limit_search;
            let start = Instant::now();
            for i in 0..REFUSALS {
                let error = pool.try_alloc(u64::from(i)).unwrap_err();
                assert_eq!(error.kind(), AllocErrorKind::LimitReached);
            }
            told("a refusal", start.elapsed(), REFUSALS, idle);
            let start = Instant::now();
            for _ in 0..REFUSALS {
                assert!(pool.prefill(2).is_err());
            }
            told("a refused prefill", start.elapsed(), REFUSALS, idle);
            let stats = pool.stats();
            assert_eq!(stats.limit_search, searches, "{stats:?}");
            assert!(searches <= 2, "{stats:?}");
            assert_eq!((stats.live, stats.transit), (1000, 0));
            barrier.wait();
            drop(kept);
        });
    }
}

fn told(what: &str, time: Duration, times: u32, idle: usize) {
    let ns = time.as_secs_f64() * 1e9 / f64::from(times);
    println!("{what} at a tight limit, {idle} threads with sheaves: {ns:.0} ns");
}

/// Promise 3, the way back: when enough came home, sheaves are used again.
#[test]
fn a_pool_that_is_no_longer_at_its_limit_parks_again() {
    for limit in [1, 2, 100, 1000, 10_000] {
        let pool = Pool::<u64>::builder("parks_again")
            .limit(limit)
            .build()
            .unwrap();
        for round in 0..5 {
            let kept: Vec<_> = (0..limit).map(|_| pool.try_alloc(round).unwrap()).collect();
            assert!(pool.try_alloc(0).is_err());
            drop(kept);
            // More frees than the pool wants to see before it trusts its luck.
            (0..1000).for_each(|_| drop(pool.try_alloc(round).unwrap()));
            let stats = pool.stats();
            assert!(stats.cached > 0, "limit {limit}, round {round}: {stats:?}");
            assert!(
                stats.limit_search <= 2 * (round + 1),
                "limit {limit}: {stats:?}"
            );
            let slow = stats.alloc_slowpath;
            (0..1000).for_each(|_| drop(pool.try_alloc(round).unwrap()));
            let slow = pool.stats().alloc_slowpath - slow;
            assert!(slow <= 2, "limit {limit}: {slow} of 1000 were slow");
        }
    }
}

/// Promise 3: threads that hold the pool just below its limit do not make it search all the time.
#[test]
fn work_near_the_limit_does_not_search_at_every_turn() {
    watched("near the limit", || {
        const LIMIT: usize = 4096;
        const CYCLES: u64 = 100_000;
        let pool = Pool::<u64>::builder("near").limit(LIMIT).build().unwrap();
        let kept: Vec<_> = (0..LIMIT - 4 * THREADS)
            .map(|_| pool.try_alloc(0).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for i in 0..CYCLES / THREADS as u64 {
                        let both = [pool.try_alloc(i), pool.try_alloc(i)];
                        assert!(both.iter().all(Result::is_ok), "{both:?}");
                    }
                });
            }
        });
        let stats = pool.stats();
        println!(
            "{} searches in {CYCLES} cycles near the limit",
            stats.limit_search
        );
        // Each search must be paid for by the 256 frees that a pool wants before it loosens.
        assert!(stats.limit_search <= 2 * CYCLES / 256 + 1, "{stats:?}");
        drop(kept);
    });
}

/// Promise 3: a thread that comes while the pool is tight, and stays, parks when it has loosened.
#[test]
fn a_thread_that_came_while_the_pool_was_tight_parks_later() {
    // A failed assertion would leave the other thread at a barrier.
    watched("came late", || {
        let pool = Pool::<u64>::builder("came_late")
            .limit(500)
            .build()
            .unwrap();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let mut kept: Vec<_> = (0..500).map(|i| pool.try_alloc(i).unwrap()).collect();
            assert!(pool.try_alloc(0).is_err());
            kept.pop();
            scope.spawn(|| {
                drop(pool.try_alloc(1).unwrap());
                assert_eq!(pool.stats().cached, 0, "a tight pool parks nothing");
                barrier.wait();
                barrier.wait();
                (0..10).for_each(|i| drop(pool.try_alloc(i).unwrap()));
                assert!(pool.stats().cached > 0);
                barrier.wait();
                barrier.wait();
            });
            barrier.wait();
            drop(kept);
            barrier.wait();
            barrier.wait();
            // And is found there.
            let all: Vec<_> = (0..500).map(|i| pool.try_alloc(i).unwrap()).collect();
            assert!(pool.try_alloc(0).is_err());
            drop(all);
            barrier.wait();
        });
    });
}
