//! A limit under threads that park what others look for (promise 3).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sheaves::{Pool, PoolBox};

use crate::{CHOICES, Choices, Stamped, assert_home, tiny};

const LIMIT: usize = 24;
const THREADS: u64 = 4;
/// What a thread holds at most: together as many as the limit, and one more than that where it must fail.
const SHARE: usize = LIMIT / 4;

/// Allocates up to `most` objects and frees them, again and again; how often it was refused.
fn churn(name: u64, most: usize, pool: &Pool<Stamped<30>>, live: &AtomicUsize) -> usize {
    let mut choices = Choices::new(name);
    let mut held: Vec<PoolBox<Stamped<30>>> = Vec::new();
    let mut refused = 0;
    for _ in 0..CHOICES / 4 {
        if held.len() < most && choices.below(2) == 0 {
            match pool.try_alloc(Stamped::new(name)) {
                Ok(object) => {
                    let now = live.fetch_add(1, Ordering::Relaxed) + 1;
                    assert!(now <= LIMIT, "{now} objects are live");
                    held.push(object);
                }
                Err(_) => refused += 1,
            }
        } else if !held.is_empty() {
            let object = held.swap_remove(choices.below(held.len()));
            object.check(name);
            live.fetch_sub(1, Ordering::Relaxed);
            drop(object);
        }
    }
    live.fetch_sub(held.len(), Ordering::Relaxed);
    refused
}

fn churn_all(most: usize) -> usize {
    let pool = tiny::<30>("stress-limit")
        .limit(LIMIT)
        .build()
        .expect("a pool");
    let live = AtomicUsize::new(0);
    let refused = thread::scope(|scope| {
        let (pool, live) = (&pool, &live);
        let threads: Vec<_> = (1..=THREADS)
            .map(|name| scope.spawn(move || churn(name, most, pool, live)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it did well"))
            .sum()
    });
    assert_home(&pool);
    refused
}

#[test]
fn the_limit_is_never_exceeded() {
    churn_all(2 * LIMIT);
}

#[test]
fn nobody_is_refused_below_the_limit() {
    assert_eq!(churn_all(SHARE), 0, "refused though a slot was free");
}
