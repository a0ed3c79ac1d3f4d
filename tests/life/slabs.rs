//! How many slabs a pool needs when objects travel.

use std::sync::Arc;
use std::sync::mpsc;

use sheaves::{Order, Pool, PoolBox};

use crate::machine::on_one_node;
use crate::support::count_from;

type Object = [u64; 30];

/// Objects that are live at a time, at most: the length of the queue, one in the hands of each side.
const QUEUE: usize = 62;
const LIVE: usize = QUEUE + 2;

/// Allocations and frees of one run; more in `.ci/long`.
fn operations() -> u64 {
    let default = if cfg!(debug_assertions) {
        1_000_000
    } else {
        10_000_000
    };
    count_from("SHEAVES_TEST_STREAM", default) as u64
}

/// As `support::watched`, but no longer run is taken for a deadlock.
fn watched(what: &str, body: impl FnOnce()) {
    if operations() > 10_000_000 {
        return body();
    }
    crate::support::watched(what, body);
}

/// Slots that may be out at a time in a pool used by `threads` threads, if `live` objects are live at most.
///
/// Besides what is live, each thread keeps `main` and `spare`, and the barn its full sheaves. A sheaf is in hand
/// while it is refilled or flushed, one for each thread. `docs/VERIFICATION.md` derives this and the next.
fn bound_of_slots(pool: &Pool<Object>, live: usize, threads: usize) -> usize {
    let config = pool.config();
    live + (3 * threads + config.barn().0) * config.sheaf_capacity()
}

/// Slabs that may stand at a time.
///
/// A thread makes a slab when it finds fewer free slots than a sheaf has room for, so no more slots stand at that
/// moment than are out and in one sheaf. Each thread may be bringing one in.
fn bound_of_slabs(pool: &Pool<Object>, live: usize, threads: usize) -> usize {
    let slots = pool.config().slots_per_slab();
    let most = bound_of_slots(pool, live, threads) + pool.config().sheaf_capacity();
    most / slots + threads
}

/// The greatest number of slabs seen while one thread allocates and another frees.
fn stream(pool: &Arc<Pool<Object>>, operations: u64) -> u64 {
    let (send, receive) = mpsc::sync_channel::<PoolBox<Object>>(QUEUE);
    let producer = {
        let pool = Arc::clone(pool);
        std::thread::spawn(move || {
            let mut most = 0;
            for i in 0..operations {
                send.send(pool.alloc([i; 30])).expect("somebody receives");
                if i % 1024 == 0 {
                    most = most.max(pool.stats().slabs);
                }
            }
            most
        })
    };
    let consumer = std::thread::spawn(move || {
        let mut next = 0;
        for boxed in receive {
            assert_eq!((boxed[0], boxed[29]), (next, next));
            next += 1;
        }
        next
    });
    let most = producer.join().unwrap();
    assert_eq!(consumer.join().unwrap(), operations);
    most
}

/// Promise 5: what one thread allocates and another frees is used again, for ever.
#[test]
fn a_stream_of_objects_needs_few_slabs() {
    watched("a stream", || {
        for order in [Order::AUTO, Order::new(0)] {
            let builder = Pool::<Object>::builder("stream").order(order);
            let pool = Arc::new(builder.build().unwrap());
            let most = stream(&pool, operations() / 2);
            let bound = bound_of_slabs(&pool, LIVE, 2) as u64;
            println!(
                "{most} slabs at most in {} operations, {bound} allowed",
                operations()
            );
            assert!(
                most <= bound,
                "{most} slabs, {bound} are allowed: {:?}",
                pool.stats()
            );
            // What is emptied is kept here, so no more were ever made.
            let made = pool.stats().alloc_slab;
            assert!(made <= bound, "{made} slabs were made: {:?}", pool.stats());
            assert_eq!(pool.stats().live, 0);
            pool.shrink();
            assert_eq!(pool.stats().bytes, 0);
        }
    });
}

/// Promise 5: the same with small sheaves and barns, where the flush to slabs is the rule.
#[test]
fn a_stream_through_small_sheaves_needs_few_slabs() {
    watched("a stream through small sheaves", || {
        for (capacity, barn, min_partial) in [
            (0, (0, 0), 0),
            (1, (0, 0), 2),
            (8, (1, 1), 0),
            (60, (0, 0), 1),
        ] {
            let builder = Pool::<Object>::builder("small")
                .sheaf_capacity(capacity)
                .order(Order::new(0));
            let builder = builder.barn(barn.0, barn.1).min_partial(min_partial);
            let pool = Arc::new(on_one_node(builder));
            let most = stream(&pool, operations() / 50);
            let bound = bound_of_slabs(&pool, LIVE, 2) as u64;
            assert!(
                most <= bound,
                "{most} slabs, {bound} are allowed: {:?}",
                pool.stats()
            );
            pool.shrink();
            assert_eq!(pool.stats().bytes, 0);
        }
    });
}
