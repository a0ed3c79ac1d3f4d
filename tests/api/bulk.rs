//! Many objects at once: all or nothing on the way out, all of them on the way in.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sheaves::{AllocErrorKind, Order, Pool, PoolBox};

use crate::machine::on_one_node;
use crate::support::{Drops, Metered};

#[test]
fn every_number_is_served() {
    for capacity in [0, 1, 7, 60] {
        let pool = Pool::<[u64; 30]>::builder("numbers")
            .sheaf_capacity(capacity)
            .build()
            .unwrap();
        let mut boxes = vec![pool.alloc_uninit()];
        let mut expected = 1;
        for n in 0..=300 {
            pool.try_alloc_uninit_bulk(n, &mut boxes).unwrap();
            expected += n;
            assert_eq!(boxes.len(), expected);
            if n % 3 == 0 {
                PoolBox::free_bulk(boxes.drain(expected - n..));
                expected -= n;
            }
            assert_eq!(pool.stats().live, expected as u64);
        }
        let mut starts: Vec<_> = boxes.iter().map(PoolBox::as_ptr).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), expected, "no slot twice");
        PoolBox::free_bulk(boxes);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
}

#[test]
fn nothing_is_nothing() {
    let source = Metered::new();
    let pool = Pool::<u64>::builder("nothing")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let mut boxes = Vec::new();
    pool.try_alloc_uninit_bulk(0, &mut boxes).unwrap();
    PoolBox::free_bulk(boxes);
    PoolBox::<u64>::free_bulk(core::iter::empty());
    assert_eq!((source.blocks(), pool.stats().slots), (0, 0));
}

#[test]
fn all_or_nothing_when_memory_runs_out() {
    for slabs in 0..6 {
        let source = Metered::new();
        let builder = Pool::<[u64; 30]>::builder("short").source(Arc::clone(&source));
        let pool = builder.order(Order::new(0)).min_partial(0).build().unwrap();
        let per_slab = pool.config().slots_per_slab();
        source.set_budget(Some(slabs));
        let mut boxes: Vec<_> = pool.try_alloc_uninit().into_iter().collect();
        let before: Vec<_> = boxes.iter().map(PoolBox::as_ptr).collect();
        let room = (slabs * per_slab).saturating_sub(before.len());
        let error = pool
            .try_alloc_uninit_bulk(room + 1, &mut boxes)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.pool()),
            (AllocErrorKind::OutOfMemory, "short")
        );
        assert_eq!(
            boxes.iter().map(PoolBox::as_ptr).collect::<Vec<_>>(),
            before
        );
        assert_eq!(pool.stats().live, before.len() as u64);
        source.set_budget(Some(slabs - source.blocks().min(slabs)));
        pool.try_alloc_uninit_bulk(room, &mut boxes)
            .expect("just what there is");
        assert_eq!(boxes.len(), before.len() + room);
        drop(boxes);
        pool.shrink();
        assert_eq!((pool.stats().bytes, source.blocks()), (0, 0));
    }
}

#[test]
fn all_or_nothing_at_a_limit() {
    let pool = Pool::<u64>::builder("limited").limit(100).build().unwrap();
    let mut boxes = Vec::new();
    let error = pool.try_alloc_uninit_bulk(101, &mut boxes).unwrap_err();
    assert_eq!(
        (error.kind(), boxes.len()),
        (AllocErrorKind::LimitReached, 0)
    );
    pool.try_alloc_uninit_bulk(40, &mut boxes).unwrap();
    assert!(pool.try_alloc_uninit_bulk(61, &mut boxes).is_err());
    pool.try_alloc_uninit_bulk(60, &mut boxes).unwrap();
    assert_eq!(boxes.len(), 100);
    let kinds = pool
        .try_alloc_uninit_bulk(usize::MAX, &mut boxes)
        .unwrap_err()
        .kind();
    assert_eq!(
        (kinds, boxes.len()),
        (AllocErrorKind::OutOfMemory, 100),
        "no vector grows so far"
    );
}

#[test]
fn boxes_of_several_pools_in_one_call() {
    let pools: Vec<Pool<usize>> = (0..3).map(|_| Pool::new("mixed")).collect();
    for run in [1, 2, 5, 31, 32, 33, 100] {
        let boxes = (0..600).map(|i| pools[(i / run) % 3].alloc(i));
        let boxes: Vec<_> = boxes.collect();
        PoolBox::free_bulk(boxes);
        for pool in &pools {
            assert_eq!(pool.stats().live, 0, "runs of {run}");
        }
    }
    for pool in &pools {
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
}

#[test]
fn a_panicking_destructor_loses_no_slot() {
    for bad in [0, 1, 31, 32, 33, 99] {
        let drops = Drops::default();
        let pool = Pool::new("bad_drop");
        let boxes: Vec<_> = (0..100)
            .map(|id| {
                pool.alloc(if id == bad {
                    drops.panicking(id)
                } else {
                    drops.object(id)
                })
            })
            .collect();
        catch_unwind(AssertUnwindSafe(|| PoolBox::free_bulk(boxes))).unwrap_err();
        assert_eq!(drops.count(), 100, "the iterator drops what it still has");
        assert_eq!(pool.stats().live, 0);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
}

#[test]
fn a_panicking_iterator_loses_no_slot() {
    for stop in [0, 1, 32, 33, 99] {
        let drops = Drops::default();
        let pool = Pool::new("bad_iterator");
        let boxes = (0..100).map(|id| {
            assert!(id < stop, "no more boxes");
            pool.alloc(drops.object(id))
        });
        catch_unwind(AssertUnwindSafe(|| PoolBox::free_bulk(boxes))).unwrap_err();
        assert_eq!((drops.count(), pool.stats().live), (stop, 0));
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    }
}

struct Liar<I>(I, (usize, Option<usize>));

impl<I: Iterator> Iterator for Liar<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.1
    }
}

#[test]
fn a_lying_size_hint_is_not_believed() {
    let pool = Pool::new("liar");
    for hint in [(0, Some(0)), (usize::MAX, None), (1000, Some(1)), (0, None)] {
        PoolBox::free_bulk(Liar((0..100).map(|i| pool.alloc(i)), hint));
        assert_eq!(pool.stats().live, 0);
    }
}

#[test]
fn bulk_frees_fill_sheaves_before_slabs() {
    let builder = Pool::<[u64; 30]>::builder("fills").sheaf_capacity(60);
    let pool = on_one_node(builder.barn(10, 10));
    let mut boxes = Vec::new();
    pool.try_alloc_uninit_bulk(720, &mut boxes).unwrap();
    let before = pool.stats();
    PoolBox::free_bulk(boxes);
    let after = pool.stats();
    assert_eq!(
        after.cached + after.barn,
        before.cached + before.barn + 720,
        "{after:?}"
    );
    let mut boxes = Vec::new();
    pool.try_alloc_uninit_bulk(720, &mut boxes).unwrap();
    assert_eq!(
        pool.stats().free,
        after.free,
        "a bulk allocation drains sheaves first"
    );
}
