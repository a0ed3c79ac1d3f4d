//! Threads that hand boxes to each other, each box stamped with who owns it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use sheaves::{Pool, PoolBox};

use crate::support::{Random, watched};

/// Told apart from anything a stale slot may hold.
const FREED: u64 = u64::MAX;

struct Token {
    owner: AtomicU64,
    serial: u64,
    body: [u64; 28],
}

impl Token {
    fn new(owner: u64, serial: u64) -> Self {
        Self {
            owner: AtomicU64::new(owner),
            serial,
            body: [serial ^ owner; 28],
        }
    }

    fn check(&self, owner: u64) {
        assert_eq!(
            self.owner.load(Ordering::Relaxed),
            owner,
            "serial {}",
            self.serial
        );
        assert!(self.body.iter().all(|word| *word == self.body[0]));
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let owner = self.owner.swap(FREED, Ordering::Relaxed);
        assert_ne!(owner, FREED, "serial {} was freed twice", self.serial);
    }
}

/// Allocates, holds, gives away and takes over, a million operations in all.
fn trade(pool: &Pool<Token>, operations: u64) {
    let (to_second, from_first) = sync_channel::<PoolBox<Token>>(100);
    let (to_first, from_second) = sync_channel::<PoolBox<Token>>(100);
    std::thread::scope(|scope| {
        let sides = [(1, to_second, from_second), (2, to_first, from_first)];
        let threads = sides.map(|(me, send, receive)| {
            scope.spawn(move || {
                let mut random = Random::new(me);
                let mut held: Vec<PoolBox<Token>> = Vec::new();
                for serial in 0..operations / 2 {
                    match random.below(5) {
                        0 | 1 if held.len() < 1000 => held.push(pool.alloc(Token::new(me, serial))),
                        2 if !held.is_empty() => {
                            let given = held.swap_remove(random.below(held.len()));
                            given.check(me);
                            given.owner.store(3 - me, Ordering::Relaxed);
                            // A full channel gives it back to its giver.
                            if let Err(error) = send.try_send(given) {
                                let (std::sync::mpsc::TrySendError::Full(back)
                                | std::sync::mpsc::TrySendError::Disconnected(back)) = error;
                                back.owner.store(me, Ordering::Relaxed);
                                held.push(back);
                            }
                        }
                        3 if !held.is_empty() => {
                            let freed = held.swap_remove(random.below(held.len()));
                            freed.check(me);
                            drop(freed);
                        }
                        _ => {
                            for taken in receive.try_iter().take(3) {
                                taken.check(me);
                                held.push(taken);
                            }
                        }
                    }
                    if serial % 10_000 == 0 {
                        held.iter().for_each(|boxed| boxed.check(me));
                        if serial % 50_000 == 0 {
                            pool.shrink();
                        }
                    }
                }
            })
        });
        // A scope by itself does not wait for destructors of thread-locals.
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
    });
    assert_eq!((pool.stats().live, pool.stats().locals), (0, 0));
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn a_million_operations_of_two_threads() {
    watched("trade", || trade(&Pool::new("trade"), 1_000_000));
}

#[test]
fn tiny_sheaves_meet_at_the_barn_all_the_time() {
    watched("tiny trade", || {
        for capacity in [0, 1, 2] {
            let builder = Pool::builder("tiny")
                .sheaf_capacity(capacity)
                .barn(2, 2)
                .min_partial(0);
            trade(&builder.build().unwrap(), 200_000);
        }
    });
}

#[test]
fn a_drainer_works_against_two_traders() {
    use core::sync::atomic::AtomicBool;
    watched("drained trade", || {
        let pool = Pool::builder("drained").sheaf_capacity(7).build().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    pool.shrink();
                    pool.stats();
                }
            });
            let traders = scope.spawn(|| {
                for i in 0..100_000_u64 {
                    let boxes = [
                        pool.alloc(Token::new(i, i)),
                        pool.alloc(Token::new(i, i + 1)),
                    ];
                    boxes.iter().for_each(|boxed| boxed.check(i));
                }
            });
            let result = traders.join();
            done.store(true, Ordering::Relaxed);
            result.unwrap();
        });
        pool.shrink();
        assert_eq!((pool.stats().live, pool.stats().bytes), (0, 0));
    });
}
