//! Pools come and go while threads still hold what is theirs.

use std::thread;

use sheaves::{Pool, PoolBox};

use crate::{CHOICES, Choices, Market, Stamped, assert_home, tiny};

const WORKERS: u64 = 3;
/// Pools, each used by every worker.
const POOLS: usize = CHOICES / 100;
/// Objects a worker makes in one pool: over the edges of its sheaves.
const OBJECTS: u64 = 14;

type Object = PoolBox<Stamped<30>>;

/// Uses each pool of a list, drops the handle, and leaves a part of the objects to the others.
fn work(name: u64, pools: Vec<Pool<Stamped<30>>>, left: &Market<Object>) {
    let mut choices = Choices::new(name);
    for pool in pools {
        let held: Vec<Object> = (0..OBJECTS)
            .map(|_| pool.alloc(Stamped::new(name)))
            .collect();
        // The last of the workers to come here closes the pool, over everyone's sheaves.
        drop(pool);
        for mut object in held {
            object.check(name);
            if choices.below(4) == 0 {
                object.stamp(0);
                left.put(object);
            }
        }
        let found = left.take();
        found.inspect(|object| object.check(0));
    }
}

#[test]
fn pools_are_dropped_under_their_objects() {
    let left = Market::new();
    let pools: Vec<_> = (0..POOLS)
        .map(|_| tiny::<30>("stress-brief").build().unwrap())
        .collect();
    thread::scope(|scope| {
        let left = &left;
        let workers: Vec<_> = (1..=WORKERS)
            .map(|name| {
                let pools = pools.clone();
                scope.spawn(move || work(name, pools, left))
            })
            .collect();
        drop(pools);
        // A scope waits for closures, a join also for the destructors of thread-locals.
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
    drop(left);
    let rest = sheaves::pools();
    assert!(
        rest.iter().all(|info| info.name() != "stress-brief"),
        "a pool outlived its objects"
    );
}

/// The ends of threads and the end of their pool meet.
#[test]
fn threads_end_while_their_pool_closes() {
    for round in 0..POOLS as u64 {
        let pool = tiny::<30>("stress-ends").build().unwrap();
        let threads: Vec<_> = (0..WORKERS)
            .map(|name| {
                let pool = pool.clone();
                thread::spawn(move || {
                    let objects: Vec<Object> = (0..OBJECTS)
                        .map(|_| pool.alloc(Stamped::new(name)))
                        .collect();
                    drop(pool);
                    objects.iter().for_each(|object| object.check(name));
                })
            })
            .collect();
        if round % 2 == 0 {
            drop(pool);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        } else {
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            assert_home(&pool);
            assert!(pool.close().is_ok());
        }
    }
    let rest = sheaves::pools();
    assert!(
        rest.iter().all(|info| info.name() != "stress-ends"),
        "a pool outlived its objects"
    );
}
