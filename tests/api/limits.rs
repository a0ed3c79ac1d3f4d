//! Promise 3: a limit is exact.

use core::sync::atomic::AtomicUsize;
use std::sync::{Barrier, mpsc};

use sheaves::{AllocErrorKind, Pool, PoolBox};

use crate::support::{Random, SEQ, on_threads, watched};

#[test]
fn as_many_objects_as_the_limit_allows_and_not_one_more() {
    for limit in [1, 2, 59, 60, 61, 1000] {
        let pool = Pool::builder("limit").limit(limit).build().unwrap();
        let mut kept: Vec<_> = (0..limit)
            .map(|i| pool.try_alloc(i).expect("below the limit"))
            .collect();
        assert_eq!(
            pool.try_alloc(0).unwrap_err().kind(),
            AllocErrorKind::LimitReached
        );
        assert_eq!(
            pool.prefill(1).unwrap_err().kind(),
            AllocErrorKind::LimitReached
        );
        assert_eq!(
            pool.try_alloc_now(0).unwrap_err().kind(),
            AllocErrorKind::WouldBlock
        );
        assert_eq!(pool.stats().live, limit as u64);
        kept.pop();
        kept.push(pool.try_alloc(0).expect("one was freed"));
    }
}

#[test]
fn slots_parked_by_idle_threads_are_found() {
    let pool = Pool::builder("parked")
        .limit(64)
        .sheaf_capacity(16)
        .build()
        .unwrap();
    let (parked, wait) = mpsc::channel();
    let idle = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (pool, idle, parked) = (&pool, &idle, parked.clone());
            scope.spawn(move || {
                drop((0..32).map(|i| pool.alloc(i)).collect::<Vec<_>>());
                parked.send(()).unwrap();
                idle.wait();
            });
            // One after the other, so that each finds 32.
            wait.recv().unwrap();
        }
        let kept: Vec<_> = (0..64)
            .map(|i| pool.try_alloc(i).expect("all 64 are free"))
            .collect();
        assert!(pool.try_alloc(0).is_err());
        drop(kept);
        idle.wait();
    });
}

#[test]
fn threads_that_share_a_limit_never_fail_below_it() {
    const THREADS: usize = 4;
    const EACH: usize = 3;
    watched("a shared limit", || {
        for capacity in [0, 1, 4, 60] {
            let builder = Pool::<usize>::builder("shared_limit").limit(THREADS * EACH);
            let pool = builder.sheaf_capacity(capacity).build().unwrap();
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let pool = &pool;
                    scope.spawn(move || {
                        for round in 0..2000 {
                            let kept: [_; EACH] = core::array::from_fn(|i| pool.try_alloc(i));
                            for result in &kept {
                                let failed = result.as_ref().err();
                                assert!(failed.is_none(), "thread {thread}, round {round}, sheaves of {capacity}: {failed:?}");
                            }
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn prefilling_shares_a_limit_exactly() {
    let pool = Pool::<u64>::builder("prefill_limit")
        .limit(100)
        .sheaf_capacity(60)
        .build()
        .unwrap();
    let mut sheaf = pool.prefill(40).unwrap();
    let held = sheaf.len();
    assert!((40..=60).contains(&held));
    let kept: Vec<_> = (0..100 - held as u64)
        .map(|i| pool.try_alloc(i).expect("below the limit"))
        .collect();
    assert_eq!(
        pool.try_alloc(0).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    assert_eq!(
        pool.prefill(1).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    assert_eq!(pool.stats().live + pool.stats().prefilled, 100);
    // What the sheaf holds stays its own, limit or not.
    let own: Vec<_> = (0..held as u64)
        .map(|i| sheaf.alloc(i).expect("prefilled"))
        .collect();
    sheaf.refill(1).unwrap_err();
    drop(kept);
    let mut sheaf = {
        drop(sheaf);
        pool.prefill(100 - held).unwrap()
    };
    sheaf.refill(100 - held).unwrap();
    assert_eq!(sheaf.len(), 100 - held);
    assert_eq!(
        sheaf.refill(101 - held).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    assert_eq!(sheaf.len(), 100 - held, "a failed refill loses nothing");
    drop(own);
    sheaf.refill(100).unwrap();
    assert_eq!(pool.stats().prefilled, 100);
}

#[test]
fn a_refill_needs_no_more_than_what_is_missing() {
    let pool = Pool::<u64>::builder("refill_limit")
        .limit(10)
        .sheaf_capacity(4)
        .build()
        .unwrap();
    let mut sheaf = pool.prefill(8).unwrap();
    sheaf.refill(10).unwrap();
    assert_eq!(sheaf.len(), 10);
    let first = sheaf.alloc(1).unwrap();
    assert!(sheaf.refill(10).is_err(), "nine and one live are ten");
    drop(first);
    sheaf.refill(10).unwrap();
}

/// One thread's share of a limit, used by every means.
fn use_share(pool: &Pool<u64>, share: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut held: Vec<PoolBox<u64>> = Vec::new();
    for round in 0..1500 {
        let room = share - held.len();
        match random.below(8) {
            0..3 if room > 0 => held.push(pool.try_alloc(seed).expect("within the share")),
            3 if room > 0 => {
                let mut uninit = Vec::new();
                let n = random.below(room + 1);
                pool.try_alloc_uninit_bulk(n, &mut uninit)
                    .expect("within the share");
                held.extend(uninit.into_iter().map(|boxed| PoolBox::write(boxed, seed)));
            }
            4 if room > pool.config().sheaf_capacity() => {
                // More than the capacity, so exactly that many.
                let mut sheaf = pool.prefill(room).expect("within the share");
                held.extend((0..room / 2).map(|_| sheaf.alloc(seed).expect("prefilled")));
                sheaf.refill(sheaf.len()).expect("there are that many");
            }
            5 => PoolBox::free_bulk(held.split_off(held.len() / 2)),
            6 if round % 50 == 0 => drop((pool.shrink(), pool.flush_thread(), pool.stats())),
            _ => drop(held.pop()),
        }
        assert!(held.iter().all(|boxed| **boxed == seed));
    }
}

#[test]
fn threads_use_their_shares_of_a_limit_by_every_means() {
    watched("shares of a limit", || {
        for capacity in [0, 1, 4, 60] {
            let builder = Pool::<u64>::builder("shares")
                .limit(4 * 25)
                .sheaf_capacity(capacity);
            let pool = builder.barn(2, 2).build().unwrap();
            for _ in 0..3 {
                on_threads(4, |thread| use_share(&pool, 25, thread as u64 + 1));
            }
            assert_eq!((pool.stats().live, pool.stats().prefilled), (0, 0));
            let all: Vec<_> = (0..100)
                .map(|i| pool.try_alloc(i).expect("all of it"))
                .collect();
            assert!(pool.try_alloc(0).is_err());
            drop(all);
            pool.shrink();
            assert_eq!(pool.stats().bytes, 0, "{:?}", pool.stats());
        }
    });
}

#[test]
fn never_more_than_the_limit_while_threads_compete() {
    watched("competition", || {
        for capacity in [0, 1, 60] {
            let builder = Pool::<u64>::builder("compete")
                .limit(50)
                .sheaf_capacity(capacity);
            let pool = builder.build().unwrap();
            let live = AtomicUsize::new(0);
            on_threads(4, |thread| {
                let mut random = Random::new(thread as u64 + 9);
                let mut held = Vec::new();
                for _ in 0..4000 {
                    if random.below(2) == 0 {
                        if let Ok(boxed) = pool.try_alloc(1) {
                            assert!(live.fetch_add(1, SEQ) < 50, "more than the limit are live");
                            held.push(boxed);
                        }
                    } else if let Some(boxed) = held.pop() {
                        live.fetch_sub(1, SEQ);
                        drop(boxed);
                    }
                }
                live.fetch_sub(held.len(), SEQ);
            });
            assert_eq!(pool.stats().live, 0);
        }
    });
}
