//! Who reclaims, and when.

use core::time::Duration;
use std::thread;
use std::time::Instant;

use sheaves::{Pool, PoolBox, rcu};

use crate::support::{Count, Token, alone};

/// Waits for what has to come without anybody's help.
fn wait_for(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not come");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A sheaf that never fills is handed in by age.
#[test]
fn the_drain_thread_reclaims_what_is_old() {
    let _alone = alone();
    let builder = Pool::builder("old").drain_interval(Duration::from_millis(20));
    let (pool, count) = (builder.build().unwrap(), Count::new());
    for round in 1..=3 {
        PoolBox::retire(pool.alloc(Token::new(1, &count)));
        wait_for(|| count.dropped() == round);
    }
    wait_for(|| pool.stats().retired == 0);
    assert_eq!(pool.config().drain_interval(), Duration::from_millis(20));
}

#[test]
fn an_idle_threads_sheaf_is_reclaimed() {
    let _alone = alone();
    let builder = Pool::builder("idle").drain_interval(Duration::from_millis(5));
    let (pool, count) = (builder.build().unwrap(), Count::new());
    let (send, receive) = std::sync::mpsc::channel::<()>();
    thread::scope(|scope| {
        let (pool, count) = (&pool, &count);
        scope.spawn(move || {
            PoolBox::retire(pool.alloc(Token::new(1, count)));
            receive.recv().unwrap();
        });
        wait_for(|| count.dropped() == 1);
        send.send(()).unwrap();
    });
}

/// The thread that stops, since it is told to, does not forget who allows it again in the same moment.
#[test]
fn a_thread_that_stops_hears_who_wants_it_again() {
    let _alone = alone();
    let builder = Pool::builder("wanted").drain_interval(Duration::ZERO);
    let (pool, count) = (builder.build().unwrap(), Count::new());
    for round in 1..=1000 {
        PoolBox::retire(pool.alloc(Token::new(1, &count)));
        rcu::set_manual(true);
        rcu::set_manual(false);
        wait_for(|| count.dropped() == round);
    }
}

#[test]
fn by_hand_two_drains_are_enough() {
    let _alone = alone();
    rcu::set_manual(true);
    let (pool, count) = (Pool::new("by_hand"), Count::new());
    for id in 0..30 {
        PoolBox::retire(pool.alloc(Token::new(id, &count)));
    }
    thread::scope(|scope| {
        let other = scope.spawn(|| PoolBox::retire(pool.alloc(Token::new(1, &count))));
        other.join().unwrap();
    });
    // Other tests' readers may hold up the time.
    while count.dropped() < 31 {
        rcu::drain();
    }
    // What a drain returns is not asserted: it counts what other tests have retired too.
    assert_eq!(pool.stats().retired, 0);
    rcu::set_manual(false);
}

/// Without readers the batches are as large as sheaves, unless another test hands them in before.
#[test]
fn batches_are_sheaves() {
    let attempt = || {
        let pool = Pool::builder("batches").sheaf_capacity(60).build().unwrap();
        for i in 0..6000_u64 {
            PoolBox::retire(pool.alloc(i));
        }
        pool.rcu_barrier().unwrap();
        let stats = pool.stats();
        assert_eq!(stats.rcu_reaped, 6000);
        stats.rcu_batch <= 110 && stats.batch_sizes[5] >= 90
    };
    assert!((0..100).any(|_| attempt()));
}
