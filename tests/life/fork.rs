//! The child of a fork.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Barrier;

use sheaves::{Pool, PoolBox};

use crate::support::{Random, SEQ, assert_sums, count_from, fork, in_child, reap, say, watched};

type Object = [u64; 30];

/// The pools that parents and children share, one of each kind.
struct Pools([Pool<Object>; 4]);

impl Pools {
    fn new() -> Self {
        let builder = || Pool::<Object>::builder("forked");
        Self([
            builder().build().unwrap(),
            builder().limit(3000).build().unwrap(),
            builder().sheaf_capacity(0).build().unwrap(),
            builder()
                .sheaf_capacity(2)
                .barn(1, 1)
                .min_partial(0)
                .build()
                .unwrap(),
        ])
    }
}

/// Uses the pools in every way there is, until told to stop; at most 300 objects at a time.
fn hammer(pools: &Pools, seed: usize, stop: &AtomicBool) {
    let mut random = Random::new(seed as u64);
    let mut kept: Vec<PoolBox<Object>> = Vec::new();
    let mut sheaf = None;
    while !stop.load(SEQ) {
        let pool = &pools.0[random.below(4)];
        match random.below(12) {
            0 => sheaf = Some(pool.prefill(random.below(20)).unwrap()),
            1 => sheaf = None,
            2 if random.below(8) == 0 => {
                pool.shrink();
            }
            2 => pool.flush_thread(),
            3 => drop(Pool::<u64>::new("brief").alloc(1)),
            4 => {
                let mut boxes = Vec::new();
                pool.try_alloc_uninit_bulk(40, &mut boxes).unwrap();
                PoolBox::free_bulk(boxes);
            }
            5 if random.below(50) == 0 => drop(sheaves::pools()),
            _ => kept.extend((0..30).map(|i| pool.alloc([i; 30]))),
        }
        if kept.len() > 250 || random.below(10) == 0 {
            let from = random.below(kept.len() + 1);
            kept.drain(from..).for_each(|boxed| {
                assert!(boxed.iter().all(|word| *word == boxed[0]));
            });
        }
    }
    drop(sheaf);
}

/// What a child does, with objects of its parent's.
fn child(pools: &Pools, inherited: &[PoolBox<Object>]) {
    for pool in &pools.0 {
        assert_sums(pool);
        assert!(inherited.iter().all(|boxed| **boxed == [7; 30]));
        let mut boxes: Vec<_> = (0..200).map(|i| pool.try_alloc([i; 30]).unwrap()).collect();
        assert_sums(pool);
        assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
        PoolBox::free_bulk(boxes.drain(..150));
        let mut sheaf = pool.prefill(70).unwrap();
        let boxed = sheaf.alloc([1; 30]).expect("it was prefilled");
        sheaf.free(boxed).expect("it has room");
        drop((sheaf, boxes));
        pool.flush_thread();
        pool.shrink();
        assert_sums(pool);
        let stats = pool.stats();
        assert_eq!((stats.cached, stats.barn), (0, 0), "{stats:?}");
        // Of the parent's threads only this one is here.
        assert!(stats.locals <= 1, "{stats:?}");
    }
    let own = Pool::<Object>::new("childs");
    let kept = own.alloc([5; 30]);
    assert_eq!(own.close().unwrap_err().live(), 1);
    drop(kept);
    // A child may have threads, which use the pools too.
    let used = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let pools = &pools.0;
            let used = &used;
            scope.spawn(move || {
                for pool in pools {
                    drop(
                        (0..150)
                            .map(|i| pool.try_alloc([i; 30]).unwrap())
                            .collect::<Vec<_>>(),
                    );
                    used.fetch_add(1, SEQ);
                }
            });
        }
    });
    assert_eq!(used.load(SEQ), 8);
    sheaves::shrink();
    assert!(sheaves::slabinfo().to_string().contains("forked"));
}

/// Forks `count` times from each of `forkers` threads while eight others hammer.
fn storm(forkers: usize, count: usize) {
    let pools = Pools::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hammers: Vec<_> = (0..8)
            .map(|seed| {
                scope.spawn({
                    let (pools, stop) = (&pools, &stop);
                    move || hammer(pools, seed, stop)
                })
            })
            .collect();
        let forkers: Vec<_> = (0..forkers)
            .map(|_| {
                scope.spawn(|| {
                    let mut inherited: Vec<_> =
                        pools.0.iter().map(|pool| pool.alloc([7; 30])).collect();
                    for round in 0..count {
                        let pid = fork(|| {
                            child(&pools, &inherited);
                            drop(core::mem::take(&mut inherited));
                            for pool in &pools.0 {
                                assert_sums(pool);
                            }
                        });
                        // The parent goes on meanwhile.
                        drop(
                            (0..100)
                                .map(|i| pools.0[round % 4].alloc([i; 30]))
                                .collect::<Vec<_>>(),
                        );
                        assert!(inherited.iter().all(|boxed| **boxed == [7; 30]));
                        reap(pid, &format!("fork {round}"));
                    }
                })
            })
            .collect();
        let results: Vec<_> = forkers.into_iter().map(|forker| forker.join()).collect();
        stop.store(true, SEQ);
        let results = results
            .into_iter()
            .chain(hammers.into_iter().map(|hammer| hammer.join()));
        results.for_each(|result| result.expect("no thread fails"));
    });
    // The parent is as it would be without children.
    for pool in pools.0 {
        assert_sums(&pool);
        let stats = pool.stats();
        assert_eq!(
            (stats.live, stats.prefilled, stats.locals),
            (0, 0, 0),
            "{stats:?}"
        );
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        pool.close().unwrap();
    }
}

/// Promise 7: the child of a process whose threads are inside every kind of call uses all pools.
#[test]
fn a_child_uses_pools_that_were_hammered() {
    in_child("fork::a_child_uses_pools_that_were_hammered", &[], || {
        // Under AddressSanitizer a fork copies a shadow too and takes ten times as long.
        let default = if std::env::var_os("ASAN_OPTIONS").is_some() {
            40
        } else {
            200
        };
        let count = count_from("SHEAVES_TEST_FORKS", default);
        // A longer run is for somebody who watches it.
        if count <= 200 {
            watched("forks", || storm(1, count));
        } else {
            // SAFETY: takes back the alarm that the parent set for shorter runs.
            unsafe { libc::alarm(0) };
            storm(1, count);
        }
    });
}

/// Promise 7: several threads fork at once.
#[test]
fn several_threads_fork_at_once() {
    in_child("fork::several_threads_fork_at_once", &[], || {
        watched("forks at once", || storm(3, 20))
    });
}

/// Waits at the barrier when dropped.
struct WaitAtEnd<'a>(&'a Barrier);

impl Drop for WaitAtEnd<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Promise 3 in a child: what the parent's threads had parked is not lost to its limit.
#[test]
fn a_child_finds_what_threads_had_parked() {
    in_child("fork::a_child_finds_what_threads_had_parked", &[], || {
        let pool = Pool::<Object>::builder("parked")
            .limit(1000)
            .build()
            .unwrap();
        let barrier = Barrier::new(9);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    drop((0..120).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            // Also after a panic, or the threads would wait for ever.
            let _last = WaitAtEnd(&barrier);
            let child = fork(|| {
                // What is parked is the pool's, not that of threads that are not here.
                let stats = pool.stats();
                assert_eq!((stats.locals, stats.cached), (0, 0), "{stats:?}");
                // Other threads stood at the barrier: nothing is lost.
                let all: Vec<_> = (0..1000)
                    .map(|i| pool.try_alloc([i; 30]).unwrap())
                    .collect();
                assert!(pool.try_alloc([0; 30]).is_err());
                drop(all);
                pool.shrink();
                assert_eq!(pool.stats().bytes, 0);
            });
            reap(child, "with parked slots");
            let all: Vec<_> = (0..1000)
                .map(|i| pool.try_alloc([i; 30]).unwrap())
                .collect();
            assert!(pool.try_alloc([0; 30]).is_err());
            // The pool is tight now; so is the child's.
            let child = fork(|| {
                assert!(pool.try_alloc([0; 30]).is_err());
                assert_eq!(pool.stats().live, 1000);
            });
            reap(child, "at the limit");
            drop(all);
        });
    });
}

/// Promise 7: a child forks, and its child uses what is left.
#[test]
fn children_of_children_use_pools() {
    in_child("fork::children_of_children_use_pools", &[], || {
        let pools = Pools::new();
        let inherited: Vec<_> = pools.0.iter().map(|pool| pool.alloc([7; 30])).collect();
        let outer = fork(|| {
            child(&pools, &inherited);
            let inner = fork(|| child(&pools, &inherited));
            reap(inner, "the inner child");
            child(&pools, &inherited);
        });
        reap(outer, "the outer child");
        child(&pools, &inherited);
    });
}

/// Forks in its destructor, and lets the child end its thread as any other.
struct ForkAtEnd(Option<&'static Pool<Object>>);

impl Drop for ForkAtEnd {
    fn drop(&mut self) {
        let Some(pool) = self.0.take() else { return };
        let pid = fork(|| {
            drop((0..100).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
            pool.shrink();
            assert_sums(pool);
            // The fork was prepared for: what other threads had is taken back.
            assert_eq!(pool.stats().locals, 0);
        });
        reap(pid, "a child of a destructor");
        say("forked at the end");
    }
}

thread_local! {
    static BEFORE: RefCell<ForkAtEnd> = const { RefCell::new(ForkAtEnd(None)) };
}

/// Promise 7: a thread that has forked before forks again in the last destructor of its thread-locals, while
/// others hammer.
#[test]
fn a_destructor_of_a_thread_local_forks() {
    in_child(
        "fork::a_destructor_of_a_thread_local_forks",
        &["forked at the end"],
        || {
            watched("a fork in a destructor", || {
                let pools: &'static Pools = Box::leak(Box::new(Pools::new()));
                let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
                let hammers: Vec<_> = (0..4)
                    .map(|seed| std::thread::spawn(move || hammer(pools, seed, stop)))
                    .collect();
                let forker = std::thread::spawn(|| {
                    // The oldest thread-local is destroyed last.
                    BEFORE.with(|cell| cell.borrow_mut().0 = Some(&pools.0[0]));
                    drop(pools.0[0].alloc([1; 30]));
                    reap(fork(|| drop(pools.0[0].alloc([2; 30]))), "the first fork");
                });
                forker.join().unwrap();
                stop.store(true, SEQ);
                hammers
                    .into_iter()
                    .for_each(|hammer| hammer.join().unwrap());
            });
        },
    );
}
