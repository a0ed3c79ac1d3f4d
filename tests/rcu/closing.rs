//! Pools that end with retired objects in them: nothing is lost, and nothing dropped twice.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use sheaves::{Heap, PageSource, Pool, PoolBox, rcu};

use crate::support::{Count, OnDrop, Token, alone};

/// The pool's own end is past: whoever reclaims finds it through the registry.
fn wait_for(count: &Count, expected: usize) {
    let begin = Instant::now();
    while count.dropped() < expected {
        rcu::drain();
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{} of {expected}",
            count.dropped()
        );
        thread::yield_now();
    }
}

#[test]
fn close_waits_for_what_is_retired() {
    let (pool, count) = (Pool::new("closed"), Count::new());
    for id in 0..100 {
        PoolBox::retire(pool.alloc(Token::new(id, &count)));
    }
    pool.close().unwrap();
    assert_eq!(count.dropped(), 100);
}

#[test]
fn the_last_handle_waits_for_nobody() {
    let count = Count::new();
    let guard = rcu::pin();
    let kept = {
        let pool = Pool::new("orphan");
        let kept = [1, 2].map(|id| pool.alloc(Token::new(id, &count)));
        for id in 10..110 {
            PoolBox::retire(pool.alloc(Token::new(id, &count)));
        }
        kept
    };
    assert_eq!(count.dropped(), 0);
    let [first, second] = kept;
    // Without a handle there are no sheaves.
    PoolBox::retire(first);
    assert_eq!(second.id(), 2);
    drop(guard);
    wait_for(&count, 101);
    drop(second);
    assert_eq!(count.dropped(), 102);
    assert!(sheaves::pools().iter().all(|info| info.name() != "orphan"));
}

#[test]
fn handles_go_at_any_moment() {
    let count = Count::new();
    for round in 0..60 {
        let pool = Pool::builder("moment")
            .sheaf_capacity(1 + round % 5)
            .build()
            .unwrap();
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                let (pool, count, start) = (pool.clone(), &count, &start);
                scope.spawn(move || {
                    let boxes: Vec<_> = (0..40)
                        .map(|id| pool.alloc(Token::new(id, count)))
                        .collect();
                    start.wait();
                    let mut boxes = boxes.into_iter();
                    boxes.by_ref().take(20).for_each(PoolBox::retire);
                    drop(pool);
                    boxes.for_each(PoolBox::retire);
                });
            }
            start.wait();
            drop(pool);
        });
    }
    wait_for(&count, 60 * 80);
    assert_eq!(count.dropped(), 60 * 80);
    let left = || sheaves::pools().iter().any(|info| info.name() == "moment");
    let begin = Instant::now();
    while left() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "a pool did not end"
        );
        thread::yield_now();
    }
}

/// The last handle goes in a destructor that a reaper of the same pool runs.
#[test]
fn a_reaped_destructor_may_drop_the_last_handle() {
    let (send, receive) = mpsc::channel();
    let pool = Pool::<OnDrop>::new("suicide");
    let own = pool.clone();
    PoolBox::retire(pool.alloc(OnDrop::new(move || {
        PoolBox::retire(own.alloc(OnDrop::new(move || send.send(()).unwrap())));
        drop(own);
    })));
    drop(pool);
    let begin = Instant::now();
    while receive.try_recv().is_err() {
        rcu::drain();
        assert!(begin.elapsed() < Duration::from_secs(60));
        thread::yield_now();
    }
}

#[test]
fn a_pool_may_close_while_others_retire() {
    let count = Count::new();
    for _ in 0..50 {
        let pool = Pool::new("racing");
        let boxes: Vec<_> = (0..100)
            .map(|id| pool.alloc(Token::new(id, &count)))
            .collect();
        thread::scope(|scope| {
            scope.spawn(|| boxes.into_iter().for_each(PoolBox::retire));
            let mut closing = Some(pool);
            while let Some(pool) = closing.take() {
                closing = pool.close().map_err(sheaves::Busy::into_pool).err();
            }
        });
    }
    wait_for(&count, 5000);
    assert_eq!(count.dropped(), 5000);
}

#[test]
fn a_closed_pool_is_not_listed() {
    let _alone = alone();
    for _ in 0..300 {
        let pool = Pool::new("listed-while-open");
        PoolBox::retire(pool.alloc(7_u64));
        pool.close().unwrap();
        let pools = sheaves::pools();
        assert!(pools.iter().all(|info| info.name() != "listed-while-open"));
    }
}

/// Tells when it is dropped, which is when its pool is gone.
struct Ending(mpsc::Sender<()>);

// SAFETY: every call is passed on to `Heap`.
unsafe impl PageSource for Ending {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: a block of `Heap` with its layout, by the caller's word.
        unsafe { Heap.free_pages(pages, layout) };
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Nobody listens if the test has failed.
        let _ = self.0.send(());
    }
}

/// Whoever reaps one pool keeps no other: not while a destructor takes its time.
#[test]
fn a_slow_destructor_keeps_no_other_pool() {
    let _alone = alone();
    let (started, begins) = mpsc::channel();
    let (finish, finishes) = mpsc::channel::<()>();
    let slow: Pool<OnDrop> = Pool::builder("slow")
        .drain_interval(Duration::ZERO)
        .build()
        .unwrap();
    let (ended, ends) = mpsc::channel();
    let other: Pool<u64> = Pool::builder("other")
        .source(Ending(ended))
        .build()
        .unwrap();
    drop(other.alloc(1));
    let finishes = std::sync::Mutex::new(finishes);
    PoolBox::retire(slow.alloc(OnDrop::new(move || {
        started.send(()).unwrap();
        finishes.lock().unwrap().recv().unwrap();
    })));
    begins.recv().unwrap();
    other.close().unwrap();
    let in_time = ends.recv_timeout(Duration::from_secs(60));
    finish.send(()).unwrap();
    assert_eq!(in_time, Ok(()));
}
