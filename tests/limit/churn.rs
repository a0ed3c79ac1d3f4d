//! Threads that come and go, shrink and flush while others count on the limit; and the last handle that goes.

use core::sync::atomic::AtomicBool;
use std::sync::Barrier;

use sheaves::{Pool, PoolBox};

use crate::support::{Gauge, Object, Random, SEQ, THREADS, awaited, must, scaled, watched};

/// Does what takes slots away from threads, until told to stop.
fn disturb(pool: &Pool<Object>, stop: &AtomicBool) {
    let mut round = 0_u32;
    while !stop.load(SEQ) {
        round += 1;
        match round % 4 {
            0 => drop(pool.stats()),
            1 => {
                pool.shrink();
            }
            2 => drop(sheaves::pools()),
            _ => pool.flush_thread(),
        }
        std::thread::yield_now();
    }
}

/// Promises 3 and 5: threads end with full sheaves, others shrink and flush, and nobody is refused.
#[test]
fn threads_that_end_lose_no_slot_of_the_limit() {
    watched("threads that end", || {
        for (share, capacity) in [(1, 60), (2, 1), (20, 60), (120, 60)] {
            let limit = share * THREADS;
            let builder = Pool::builder("ends").limit(limit);
            let pool = builder.sheaf_capacity(capacity).build().unwrap();
            let gauge = Gauge::new(limit);
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let disturber = scope.spawn(|| disturb(&pool, &stop));
                let lanes: Vec<_> = (0..THREADS)
                    .map(|lane| scope.spawn(move_lane(&pool, gauge, share, lane)))
                    .collect();
                lanes.into_iter().for_each(|lane| lane.join().unwrap());
                stop.store(true, SEQ);
                disturber.join().unwrap();
            });
            // Some threads are still on their way out.
            assert_eq!(gauge.live(), 0);
            pool.close().expect("nothing is live");
        }
    });
}

/// A lane is a row of threads, one after the other, of which at most one holds objects. The next starts when the
/// work of the last is done, while that one is still on its way out with slots in its sheaves.
fn move_lane<'a>(
    pool: &'a Pool<Object>,
    gauge: &'static Gauge,
    share: usize,
    lane: usize,
) -> impl FnOnce() + Send + 'a {
    move || {
        let mut random = Random::new(lane as u64);
        for _ in 0..scaled(400) {
            let steps = 1 + random.below(4);
            let flush = random.below(3) == 0;
            let work = move || {
                for _ in 0..steps {
                    let kept: Vec<_> = (0..share).map(|_| must(pool, gauge)).collect();
                    drop(kept);
                }
                if flush {
                    pool.flush_thread();
                }
            };
            // A scope waits for the work only, not for the destructors of thread-locals.
            std::thread::scope(|scope| drop(scope.spawn(work)));
        }
    }
}

/// Promise 3, and a box may be cloned after the last handle went: nor is it refused while that handle goes.
#[test]
fn a_clone_is_not_refused_while_the_last_handle_goes() {
    watched("clones at the end", || {
        for round in 0..scaled(4000) {
            const LIMIT: usize = 600;
            let builder = Pool::<u64>::builder("last_handle").limit(LIMIT);
            let pool = builder.sheaf_capacity(300).build().unwrap();
            let parked = Barrier::new(3);
            let over = Barrier::new(2);
            let kept = pool.alloc(7);
            std::thread::scope(|scope| {
                let idle = pool.clone();
                let (parked, over) = (&parked, &over);
                scope.spawn(move || {
                    // All the others are parked here when the last handle goes.
                    drop(
                        (0..LIMIT - 1)
                            .map(|_| idle.try_alloc(0).unwrap())
                            .collect::<Vec<_>>(),
                    );
                    drop(idle);
                    parked.wait();
                    over.wait();
                });
                scope.spawn(move || {
                    parked.wait();
                    for _ in 0..4 {
                        // Two live of 600.
                        let copy: PoolBox<u64> = awaited(|| kept.clone());
                        assert_eq!(*copy, 7, "round {round}");
                    }
                    over.wait();
                });
                parked.wait();
                drop(pool);
            });
        }
    });
}

/// What `close` says is so: a pool of which nothing is live closes, also while threads that used it are still on
/// their way out.
#[test]
fn a_pool_closes_while_its_threads_are_on_their_way_out() {
    watched("closes", || {
        for limit in [None, Some(1000)] {
            for round in 0..scaled(4000) {
                let mut builder = Pool::<u64>::builder("way_out");
                if let Some(limit) = limit {
                    builder = builder.limit(limit);
                }
                let pool = builder.build().unwrap();
                std::thread::scope(|scope| {
                    drop(scope.spawn(|| drop((0..110).map(|i| pool.alloc(i)).collect::<Vec<_>>())));
                });
                if let Err(busy) = pool.close() {
                    panic!("limit {limit:?}, round {round}: {busy}, and nothing is");
                }
            }
        }
    });
}
