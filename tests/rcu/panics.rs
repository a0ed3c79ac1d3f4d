//! Promise 1: a destructor that panics loses its object, no other of its batch, and unwinds out of nobody else's code,
//! whoever runs it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sheaves::{Pool, PoolBox, rcu};

use crate::isolated::isolated;
use crate::support::{Count, OnDrop, Token};

type Panicking = (Token, Option<OnDrop>);

/// Objects, of which one in so many panics.
const MANY: usize = 300;
const ONE_IN: u64 = 50;

/// Retires them; the thread reaps nothing meanwhile, since it is pinned.
fn retire(pool: &Pool<Panicking>, count: &Arc<Count>) {
    let _guard = rcu::pin();
    for id in 0..MANY as u64 {
        let panicking = (id % ONE_IN == 7).then(|| OnDrop::new(|| panic!("as it should")));
        PoolBox::retire(pool.alloc((Token::new(id, count), panicking)));
    }
}

/// Runs `body` in a process of its own, and then sees that each object was dropped, each panic told, and each slot freed.
fn on(path: &'static str, drains: bool, body: fn(&Pool<Panicking>, &Arc<Count>)) {
    isolated(path, || {
        sheaves::set_report_hook(Box::new(|_| {}));
        rcu::set_manual(!drains);
        let builder = Pool::builder("panicking").drain_interval(Duration::from_millis(5));
        let (pool, count) = (builder.build().expect("a possible pool"), Count::new());
        let result = catch_unwind(AssertUnwindSafe(|| body(&pool, &count)));
        assert!(result.is_ok(), "it unwound into its caller");
        assert_eq!(count.dropped(), MANY);
        pool.rcu_barrier().expect("nobody is pinned");
        let stats = pool.stats();
        let told = MANY as u64 / ONE_IN;
        assert_eq!((stats.retired, stats.live, stats.reports), (0, 0, told));
        pool.close().expect("nothing is left");
    });
}

#[test]
fn in_the_drain_thread() {
    on("panics::in_the_drain_thread", true, |pool, count| {
        retire(pool, count);
        let begin = Instant::now();
        while count.dropped() < MANY || pool.stats().retired > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "nobody came");
            thread::sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn in_a_barrier() {
    on("panics::in_a_barrier", false, |pool, count| {
        retire(pool, count);
        assert_eq!(count.dropped(), 0);
        pool.rcu_barrier().unwrap();
    });
}

#[test]
fn in_a_drain_by_hand() {
    on("panics::in_a_drain_by_hand", false, |pool, count| {
        retire(pool, count);
        while count.dropped() < MANY {
            rcu::drain();
        }
    });
}

/// Of a thread whose sheaf is handed in by its exit, and reaped by whoever comes by.
#[test]
fn of_a_thread_that_exits() {
    on("panics::of_a_thread_that_exits", false, |pool, count| {
        thread::scope(|scope| scope.spawn(|| retire(pool, count)).join().unwrap());
        pool.rcu_barrier().unwrap();
    });
}

/// By the threads that retire, when sheaves have piled up.
#[test]
fn in_a_flood() {
    on("panics::in_a_flood", false, |pool, count| {
        retire(pool, count);
        assert_eq!(count.dropped(), 0);
        // Who hands in more of the same pool reaps those, and these with them.
        let begin = Instant::now();
        while count.dropped() < MANY {
            assert!(begin.elapsed() < Duration::from_secs(60), "nobody came");
            let other = Count::new();
            for id in 0..100 {
                PoolBox::retire(pool.alloc((Token::new(id, &other), None)));
            }
        }
    });
}
