//! Pools, handles, boxes and threads that come and go.

use alloc::sync::Arc;
use std::sync::Mutex;

use sheaves::{Order, Pool, PoolBox};

use crate::support::{Metered, Random, isolated, on_threads};

type Object = [u64; 30];

#[test]
fn handles_are_counted() {
    let pool = Pool::<Object>::new("handles");
    assert_eq!(pool.handles(), 1);
    let other = pool.clone();
    assert!(pool == other && pool != Pool::new("handles"));
    let sheaf = pool.prefill(1).unwrap();
    let boxed = pool.alloc([0; 30]);
    assert_eq!(pool.handles(), 3);
    drop((sheaf, other, boxed));
    assert_eq!(pool.handles(), 1);
}

#[test]
fn close_says_what_is_in_the_way_and_gives_the_pool_back() {
    let source = Metered::new();
    let pool = Pool::<Object>::builder("busy")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let kept = [pool.alloc([1; 30]), pool.alloc([2; 30])];
    let busy = pool.close().unwrap_err();
    assert_eq!((busy.live(), busy.prefilled(), busy.handles()), (2, 0, 0));
    assert!(busy.to_string().contains('2'), "{busy}");
    let pool = busy.into_pool();
    drop(kept);
    let other = pool.clone();
    let busy = pool.close().unwrap_err();
    assert_eq!((busy.live(), busy.prefilled(), busy.handles()), (0, 0, 1));
    let pool = busy.into_pool();
    drop(other);
    let sheaf = pool.prefill(3).unwrap();
    let prefilled = sheaf.len();
    let busy = pool.close().unwrap_err();
    assert_eq!(
        (busy.live(), busy.prefilled(), busy.handles()),
        (0, prefilled, 1)
    );
    let pool = busy.into_pool();
    drop(sheaf);
    let block = allocator_api2::vec::Vec::<u8, _>::with_capacity_in(100, &pool);
    let address = block.as_ptr().addr();
    core::mem::drop(block);
    assert_ne!(address, 0);
    let raw = allocator_api2::boxed::Box::into_raw(allocator_api2::boxed::Box::new_in(
        [0_u8; 100],
        &pool,
    ));
    let busy = pool.close().unwrap_err();
    assert_eq!((busy.live(), busy.prefilled(), busy.handles()), (1, 0, 0));
    let pool = busy.into_pool();
    // SAFETY: it came from `into_raw` with a handle of this pool.
    drop(unsafe { allocator_api2::boxed::Box::from_raw_in(raw, &pool) });
    drop(pool.alloc([3; 30]));
    pool.close().unwrap();
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn close_ends_a_pool_whose_slots_are_parked_by_other_threads() {
    let pool = Pool::<Object>::new("parked");
    let barrier = std::sync::Barrier::new(2);
    let other = pool.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop((0..200).map(|i| other.alloc([i; 30])).collect::<Vec<_>>());
            drop(other);
            barrier.wait();
            barrier.wait();
        });
        barrier.wait();
        pool.close()
            .expect("sheaves of an idle thread are nobody's objects");
        barrier.wait();
    });
}

#[test]
fn objects_outlive_the_last_handle_on_many_threads() {
    for round in 0..20_usize {
        let source = Metered::new();
        let builder = Pool::<Object>::builder("orphans")
            .source(Arc::clone(&source))
            .order(Order::new(0));
        let pool = builder.sheaf_capacity(8).build().unwrap();
        let mut boxes: Vec<PoolBox<Object>> = (0..2000).map(|i| pool.alloc([i; 30])).collect();
        let mut random = Random::new(round as u64);
        for at in (1..boxes.len()).rev() {
            boxes.swap(at, random.below(at + 1));
        }
        let handle = Mutex::new(Some(pool));
        let parts = Mutex::new(boxes);
        on_threads(4, |thread| {
            let part = {
                let mut boxes = parts.lock().unwrap();
                let keep = boxes.len() - 500;
                boxes.split_off(keep)
            };
            let handle = (thread == round % 4).then(|| handle.lock().unwrap().take());
            for (i, boxed) in part.into_iter().enumerate() {
                assert!(boxed.iter().all(|word| *word == boxed[0]));
                if i == 100 {
                    drop(boxed.clone());
                }
                drop(boxed);
            }
            drop(handle);
        });
        assert_eq!(
            (source.blocks(), Arc::strong_count(&source)),
            (0, 1),
            "round {round}"
        );
    }
}

#[test]
fn a_reserve_goes_back_with_its_pool() {
    for keeps_one in [false, true] {
        let source = Metered::new();
        let builder = Pool::<Object>::builder("reserve")
            .source(Arc::clone(&source))
            .reserve(1000);
        let pool = builder.order(Order::new(0)).build().unwrap();
        assert!(source.blocks() >= 4);
        pool.shrink();
        assert!(source.blocks() >= 4, "kept through a shrink");
        let kept = keeps_one.then(|| pool.alloc([1; 30]));
        drop(pool);
        drop(kept);
        assert_eq!(source.blocks(), 0, "an object was kept: {keeps_one}");
        assert_eq!(Arc::strong_count(&source), 1);
    }
}

#[test]
fn thousands_of_pools_come_and_go() {
    let source = Metered::new();
    let mut survivors = Vec::new();
    for round in 0..3000_u64 {
        let pool = Pool::<Object>::builder("brief")
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        let boxes: Vec<_> = (0..3).map(|i| pool.alloc([round + i; 30])).collect();
        if round % 100 == 0 {
            survivors.push((round, pool.alloc([round; 30])));
        }
        if round % 2 == 0 {
            drop(pool);
            drop(boxes);
        } else {
            drop(boxes);
            drop(pool);
        }
    }
    assert_eq!(source.blocks(), survivors.len());
    assert!(
        survivors
            .iter()
            .all(|(round, boxed)| **boxed == [*round; 30])
    );
    drop(survivors);
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn a_thread_alternates_between_more_pools_than_its_table_has_room_for() {
    let source = Metered::new();
    let build = |_| {
        Pool::<Object>::builder("many")
            .source(Arc::clone(&source))
            .build()
            .unwrap()
    };
    let pools: Vec<Pool<Object>> = (0..200).map(build).collect();
    let mut boxes = Vec::new();
    for round in 0..70_u64 {
        for (at, pool) in pools.iter().enumerate() {
            boxes.push((at, round, pool.alloc([round ^ at as u64; 30])));
        }
        if round % 3 == 2 {
            let keep = boxes.len() / 2;
            for (at, round, boxed) in boxes.drain(keep..) {
                assert_eq!(*boxed, [round ^ at as u64; 30]);
                assert!(pools[at].owns(&raw const *boxed));
            }
        }
    }
    for (at, pool) in pools.iter().enumerate() {
        let mine = boxes.iter().filter(|entry| entry.0 == at).count();
        assert_eq!((pool.stats().live, pool.stats().locals), (mine as u64, 1));
    }
    drop(boxes);
    pools.into_iter().for_each(|pool| pool.close().unwrap());
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn pools_are_built_and_dropped_by_many_threads() {
    isolated(
        "lifecycle::pools_are_built_and_dropped_by_many_threads",
        || {
            let source = Metered::new();
            let boxes = Mutex::new(Vec::new());
            on_threads(4, |thread| {
                for round in 0..100 {
                    let pool = Pool::<Object>::builder("built")
                        .source(Arc::clone(&source))
                        .build()
                        .unwrap();
                    let boxed = pool.alloc([thread as u64 * 1000 + round; 30]);
                    let handle = pool.clone();
                    let other = std::thread::spawn(move || drop(handle.alloc([0; 30])));
                    drop(pool);
                    drop((sheaves::pools(), sheaves::shrink()));
                    other.join().unwrap();
                    // Freed by whoever comes by.
                    let old = {
                        let mut boxes = boxes.lock().unwrap();
                        boxes.push(boxed);
                        if boxes.len() > 10 {
                            boxes.split_off(5)
                        } else {
                            Vec::new()
                        }
                    };
                    assert!(
                        old.iter()
                            .all(|boxed| boxed.iter().all(|word| *word == boxed[0]))
                    );
                }
            });
            drop(boxes);
            assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
        },
    );
}
