//! Very many pools.

use core::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use sheaves::{Pool, PoolBox};

use crate::support::{Random, SEQ, heap, in_child, watched};

type Object = [u64; 30];

/// What the heap may have grown by, in blocks and bytes, whatever the number of pools: lists of the registry and
/// of threads keep their capacity, a thread keeps up to 8 dead locals between two sweeps, and the test harness has
/// threads of its own.
const SLACK: (isize, isize) = (200, 64 << 10);

#[track_caller]
fn assert_heap_is_back(before: (isize, isize)) {
    let after = heap();
    let grown = (after.0 - before.0, after.1 - before.1);
    assert!(
        grown.0 <= SLACK.0 && grown.1 <= SLACK.1,
        "the heap grew by {grown:?}"
    );
}

/// Builds, uses and drops one pool in one of several ways.
fn brief(round: usize) -> Option<PoolBox<Object>> {
    let word = round as u64;
    let pool = Pool::<Object>::new("brief");
    let boxed = pool.alloc([word; 30]);
    match round % 5 {
        0 => drop(boxed),
        1 => {
            drop(pool);
            drop(boxed);
        }
        2 => {
            let sheaf = pool.prefill(3).unwrap();
            drop((pool, sheaf, boxed));
        }
        3 => {
            drop(boxed);
            pool.close().unwrap();
        }
        _ => return Some(boxed),
    }
    None
}

/// Promise 5: ten thousand pools in one thread leave nothing on the heap.
#[test]
fn ten_thousand_pools_of_one_thread_leave_nothing() {
    in_child(
        "many::ten_thousand_pools_of_one_thread_leave_nothing",
        &[],
        || {
            (0..200).for_each(|round| drop(brief(round)));
            let before = heap();
            (0..10_000).for_each(|round| drop(brief(round)));
            assert_heap_is_back(before);
            assert!(sheaves::pools().is_empty());
        },
    );
}

/// Promises 2 and 5: the same in eight threads, which free each other's objects, most of them after the pool's
/// last handle. Dead locals are freed by the threads they belong to, while those go on.
#[test]
fn ten_thousand_pools_of_eight_threads_leave_nothing() {
    in_child(
        "many::ten_thousand_pools_of_eight_threads_leave_nothing",
        &[],
        || {
            watched("pools of eight threads", || {
                let round = || {
                    let swap: Mutex<Vec<PoolBox<Object>>> = Mutex::default();
                    std::thread::scope(|scope| {
                        let handles: Vec<_> = (0..8)
                            .map(|thread| {
                                scope.spawn({
                                    let swap = &swap;
                                    move || trade(thread, swap)
                                })
                            })
                            .collect();
                        handles
                            .into_iter()
                            .for_each(|handle| handle.join().unwrap());
                    });
                    drop(swap.into_inner().unwrap());
                };
                round();
                let before = heap();
                round();
                assert_heap_is_back(before);
                assert!(sheaves::pools().is_empty(), "{}", sheaves::slabinfo());
            });
        },
    );
}

fn trade(thread: usize, swap: &Mutex<Vec<PoolBox<Object>>>) {
    let mut random = Random::new(thread as u64);
    let lock = || swap.lock().unwrap_or_else(PoisonError::into_inner);
    for round in 0..10_000 / 8 {
        let pool = Pool::<Object>::builder("traded")
            .sheaf_capacity(4)
            .build()
            .unwrap();
        let mut boxes: Vec<_> = (0..1 + random.below(10))
            .map(|i| pool.alloc([(round + i) as u64; 30]))
            .collect();
        let last = if round % 3 == 0 { Some(pool) } else { None };
        lock().append(&mut boxes);
        for _ in 0..random.below(12) {
            let at = random.below(12);
            let boxed = {
                let mut swap = lock();
                (at < swap.len()).then(|| swap.swap_remove(at))
            };
            let Some(boxed) = boxed else { continue };
            assert!(boxed.iter().all(|word| *word == boxed[0]));
            // Makes a local of another thread's pool, if that has handles yet.
            drop(boxed.clone());
            drop(boxed);
        }
        drop(last);
    }
}

/// Promise 5: pools whose ids share an entry of a thread's table, used in turn by one who owns many of them, while
/// another thread drops some of them and shrinks the rest.
#[test]
fn pools_that_share_an_entry_are_told_apart() {
    watched("pools that share an entry", || {
        // Enough that each entry is shared by three, whatever its size below that.
        let mut pools: Vec<Pool<Object>> = (0..200).map(|_| Pool::new("shared_entry")).collect();
        for cycle in 0..3_u64 {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(SEQ) {
                        for pool in pools.iter().step_by(7) {
                            pool.shrink();
                        }
                    }
                });
                for first in 0..64 {
                    // Those 64 apart alternate.
                    let mut kept = Vec::new();
                    for turn in 0..20_u64 {
                        for pool in pools.iter().skip(first).step_by(64) {
                            kept.push((pool, turn, pool.alloc([turn ^ cycle; 30])));
                        }
                        if kept.len() > 20 {
                            let (pool, turn, boxed) = kept.swap_remove(kept.len() / 2);
                            assert!(pool.owns(&raw const *boxed));
                            assert_eq!(*boxed, [turn ^ cycle; 30]);
                        }
                    }
                    for (pool, turn, boxed) in kept {
                        assert_eq!(*boxed, [turn ^ cycle; 30]);
                        assert!(pool.owns(&raw const *boxed));
                    }
                }
                stop.store(true, SEQ);
            });
            assert!(pools.iter().all(|pool| pool.stats().live == 0));
            // Half of them go, others come in their place, with ids that no pool had.
            let mut at = 0;
            pools.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            pools.resize_with(200, || Pool::new("shared_entry"));
        }
    });
}

/// Promise 5: locals of closed pools are freed by the thread they belong to, which has pools it goes on with.
#[test]
fn dead_locals_are_freed_while_their_thread_lives() {
    in_child(
        "many::dead_locals_are_freed_while_their_thread_lives",
        &[],
        || {
            let stays = Pool::<Object>::new("stays");
            let thread = std::thread::spawn({
                let stays = stays.clone();
                move || {
                    let use_pools = |count: u64| {
                        for i in 0..count {
                            let pool = Pool::<Object>::new("goes");
                            drop(pool.alloc([i; 30]));
                            // The last handle goes elsewhere: that thread cannot free this one's local.
                            std::thread::spawn(move || drop(pool)).join().unwrap();
                            assert_eq!(stays.alloc([i; 30])[29], i);
                        }
                    };
                    use_pools(100);
                    let before = heap();
                    use_pools(3000);
                    assert_heap_is_back(before);
                }
            });
            thread.join().unwrap();
        },
    );
}
