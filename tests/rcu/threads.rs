//! Promises 5 and 7: threads that retire and go.

use core::cell::RefCell;
use std::thread;

use sheaves::{Pool, PoolBox, rcu};

use crate::support::{Count, Token};

#[test]
fn a_thread_leaves_what_it_retired_to_the_others() {
    let (pool, count) = (Pool::new("left"), Count::new());
    for threads in 1..20 {
        thread::scope(|scope| {
            for _ in 0..threads % 3 + 1 {
                scope.spawn(|| {
                    for id in 0..7 {
                        PoolBox::retire(pool.alloc(Token::new(id, &count)));
                    }
                });
            }
        });
    }
    pool.rcu_barrier().unwrap();
    assert_eq!(
        count.dropped(),
        count.made.load(core::sync::atomic::Ordering::SeqCst)
    );
    // Gauges are exact only when the last threads are gone, which a scope does not wait for.
    pool.close().expect("nothing is live");
}

struct Late(RefCell<Vec<PoolBox<Token>>>);

impl Drop for Late {
    fn drop(&mut self) {
        let guard = rcu::pin();
        self.0.take().into_iter().for_each(PoolBox::retire);
        drop(guard);
        assert!(rcu::drain() < usize::MAX);
    }
}

thread_local! {
    static BEFORE: Late = const { Late(RefCell::new(Vec::new())) };
    static AFTER: Late = const { Late(RefCell::new(Vec::new())) };
}

/// Thread-locals whose destructors come before and after that of the thread's sheaves.
#[test]
fn destructors_of_thread_locals_may_retire() {
    let (pool, count) = (Pool::new("late"), Count::new());
    for _ in 0..10 {
        thread::scope(|scope| {
            let exiting = scope.spawn(|| {
                BEFORE.with(|_| ());
                let boxes = |n| {
                    (0..n)
                        .map(|id| pool.alloc(Token::new(id, &count)))
                        .collect()
                };
                let first: Vec<_> = boxes(150);
                PoolBox::retire(pool.alloc(Token::new(1, &count)));
                AFTER.with(|_| ());
                BEFORE.with(|late| late.0.replace(first));
                AFTER.with(|late| late.0.replace(boxes(150)));
            });
            exiting.join().unwrap();
        });
    }
    pool.rcu_barrier().unwrap();
    assert_eq!(count.dropped(), 10 * 301);
    assert_eq!((pool.stats().retired, pool.stats().live), (0, 0));
}

#[test]
fn many_pools_and_threads_come_and_go() {
    let count = Count::new();
    thread::scope(|scope| {
        for t in 0..4 {
            let count = &count;
            scope.spawn(move || {
                for round in 0..20 {
                    let builder = Pool::builder("many").sheaf_capacity((t + round) % 4);
                    let pool = builder.build().unwrap();
                    thread::scope(|scope| {
                        for _ in 0..2 {
                            scope.spawn(|| {
                                for id in 0..30 {
                                    PoolBox::retire(pool.alloc(Token::new(id, count)));
                                }
                            });
                        }
                    });
                    if round % 2 == 0 {
                        pool.rcu_barrier().unwrap();
                    }
                }
            });
        }
    });
    rcu::barrier().unwrap();
    assert_eq!(count.dropped(), 4 * 20 * 60);
}
