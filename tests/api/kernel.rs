//! What the design of sheaves promises about traffic: who visits the barn, and who the slabs.

use std::sync::mpsc::sync_channel;

use sheaves::{Pool, PoolBox};

use crate::machine::on_one_node;

type Object = [u64; 30];

#[test]
fn a_producer_and_a_consumer_trade_whole_sheaves() {
    const OBJECTS: u64 = 200_000;
    let pool = on_one_node(Pool::<Object>::builder("stream").sheaf_capacity(60));
    let (send, receive) = sync_channel::<PoolBox<Object>>(30);
    let (warm, wait) = sync_channel(0);
    let producer = {
        let pool = pool.clone();
        move || {
            for i in 0..OBJECTS {
                if i == OBJECTS / 2 {
                    let _ = warm.send(pool.stats());
                }
                send.send(pool.alloc([i; 30])).unwrap();
            }
        }
    };
    let (before, after) = std::thread::scope(|scope| {
        let producer = scope.spawn(producer);
        let consumer = scope.spawn(move || receive.into_iter().for_each(drop));
        let before = wait.recv().unwrap();
        producer.join().unwrap();
        consumer.join().unwrap();
        (before, pool.stats())
    });
    let sheaves = OBJECTS / 2 / 60;
    let got = after.barn_get - before.barn_get;
    let put = after.barn_put - before.barn_put;
    assert!(
        (sheaves - 20..=sheaves + 20).contains(&got),
        "{got} got, not {sheaves}: {before:?} {after:?}"
    );
    assert!(
        (sheaves - 20..=sheaves + 20).contains(&put),
        "{put} put, not {sheaves}: {before:?} {after:?}"
    );
    // The threads' exits, and not the stream, may flush a sheaf or two.
    assert!(after.sheaf_flush - before.sheaf_flush <= 120, "{after:?}");
    assert_eq!(
        after.alloc_slab, before.alloc_slab,
        "no new slab in a steady state"
    );
    assert!(after.sheaf_refill - before.sheaf_refill <= 120, "{after:?}");
    assert_eq!(after.live, 0);
}

#[test]
fn a_burst_larger_than_sheaves_and_barn_reaches_the_slabs() {
    // Main and spare, and ten full sheaves in the barn.
    const KEPT: u64 = 720;
    for burst in [721_u64, 780, 1000, 5000] {
        let builder = Pool::<Object>::builder("burst").sheaf_capacity(60);
        let pool = on_one_node(builder.barn(10, 10));
        let boxes: Vec<_> = (0..burst).map(|i| pool.alloc([i; 30])).collect();
        let left = pool.stats().cached;
        drop(boxes);
        let stats = pool.stats();
        let over = burst + left - KEPT;
        assert!(stats.barn_put_fail > 0, "{stats:?}");
        // Whole sheaves go: what is flushed is at least what is too much, and less than a sheaf more.
        assert!(
            (over..over + 60).contains(&stats.sheaf_flush),
            "{burst}: {over} too many, {stats:?}"
        );
        assert_eq!(stats.cached + stats.barn, burst + left - stats.sheaf_flush);
    }
    let builder = Pool::<Object>::builder("no_burst").sheaf_capacity(60);
    let pool = on_one_node(builder.barn(10, 10));
    drop((0..660).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
    assert_eq!(
        (pool.stats().barn_put_fail, pool.stats().sheaf_flush),
        (0, 0)
    );
}

#[test]
fn alternation_at_a_boundary_swaps_two_sheaves() {
    let pool = Pool::<Object>::builder("boundary")
        .sheaf_capacity(60)
        .build()
        .unwrap();
    let mut boxes: Vec<_> = (0..120).map(|i| pool.alloc([i; 30])).collect();
    drop(boxes.split_off(60));
    let before = pool.stats();
    for round in 0..1000 {
        let more: Vec<_> = (0..3).map(|_| pool.alloc([round; 30])).collect();
        drop(more);
        drop((boxes.pop(), boxes.pop()));
        boxes.extend([pool.alloc([round; 30]), pool.alloc([round; 30])]);
    }
    let after = pool.stats();
    assert_eq!(
        after.barn_get + after.barn_put,
        before.barn_get + before.barn_put
    );
    assert_eq!(
        after.sheaf_refill + after.sheaf_flush,
        before.sheaf_refill + before.sheaf_flush
    );
}

#[test]
fn partly_filled_slabs_are_used_first() {
    let pool = Pool::<Object>::builder("fullest")
        .order(sheaves::Order::new(0))
        .min_partial(0)
        .build()
        .unwrap();
    let per_slab = pool.config().slots_per_slab();
    let mut boxes: Vec<_> = (0..per_slab * 4)
        .map(|i| pool.alloc([i as u64; 30]))
        .collect();
    boxes.sort_by_key(|boxed| PoolBox::as_ptr(boxed).addr());
    // Slabs with 1, 1, 1 and all but one objects.
    let mut kept: Vec<_> = Vec::new();
    for (at, boxed) in boxes.into_iter().enumerate() {
        if at % per_slab == 0 || (at / per_slab == 3 && at % per_slab != 7) {
            kept.push(boxed);
        }
    }
    pool.shrink();
    let fullest = kept.last().map(|boxed| PoolBox::as_ptr(boxed).addr() >> 16);
    let next = pool.alloc([0; 30]);
    assert_eq!(Some(PoolBox::as_ptr(&next).addr() >> 16), fullest);
}
