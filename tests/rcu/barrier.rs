//! Waiting for what was retired.

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use sheaves::rcu::BarrierError;
use sheaves::{Pool, PoolBox, rcu};

use crate::support::{Count, OnDrop, Token};

#[test]
fn a_barrier_while_pinned_is_an_error() {
    let pool = Pool::new("pinned");
    PoolBox::retire(pool.alloc(1));
    let guard = rcu::pin();
    assert_eq!(pool.rcu_barrier(), Err(BarrierError::Pinned));
    assert_eq!(rcu::barrier(), Err(BarrierError::Pinned));
    assert_eq!(rcu::synchronize(), Err(BarrierError::Pinned));
    let busy = pool.close().unwrap_err();
    assert_eq!(
        (busy.live(), busy.barrier()),
        (0, Some(BarrierError::Pinned))
    );
    assert!(busy.to_string().contains("pinned"));
    drop(guard);
    let pool = busy.into_pool();
    assert_eq!(pool.rcu_barrier(), Ok(()));
    pool.close().unwrap();
}

/// Also when the pin is another crate's.
#[test]
fn a_guard_of_the_epoch_crate_counts() {
    let guard = crossbeam_epoch::pin();
    let pool = Pool::new("theirs");
    let count = Count::new();
    PoolBox::retire(pool.alloc(Token::new(1, &count)));
    assert_eq!(pool.rcu_barrier(), Err(BarrierError::Pinned));
    thread::scope(|scope| {
        scope.spawn(|| (0..20).map(|_| rcu::drain()).sum::<usize>());
    });
    assert_eq!(count.dropped(), 0);
    drop(guard);
    pool.rcu_barrier().unwrap();
}

#[test]
fn a_barrier_in_a_destructor_that_a_reaper_runs_is_an_error() {
    let pool = Pool::<OnDrop>::new("reaping");
    let (send, receive) = mpsc::channel();
    let send = Mutex::new(send);
    let own = pool.clone();
    PoolBox::retire(pool.alloc(OnDrop::new(move || {
        let other = Pool::<u64>::new("other");
        let results = [own.rcu_barrier(), other.rcu_barrier(), rcu::barrier()];
        let closed = own.close().map_err(|busy| busy.barrier());
        send.lock().unwrap().send((results, closed)).unwrap();
    })));
    pool.rcu_barrier().unwrap();
    let (results, closed) = receive.recv().unwrap();
    assert_eq!(results, [Err(BarrierError::Reaping); 3]);
    assert_eq!(closed, Err(Some(BarrierError::Reaping)));
}

/// A destructor of a plain drop is no reaper's.
#[test]
fn a_barrier_in_any_other_destructor_is_none() {
    let (pool, count) = (Pool::<Token>::new("plain"), Count::new());
    let outer = Pool::<OnDrop>::new("outer");
    let own = pool.clone();
    let boxed = outer.alloc(OnDrop::new(move || own.rcu_barrier().unwrap()));
    PoolBox::retire(pool.alloc(Token::new(1, &count)));
    drop(boxed);
    assert_eq!(count.dropped(), 1);
}

/// Idle threads' sheaves are found, and those of threads that go on retiring.
#[test]
fn a_barrier_covers_all_threads() {
    let (pool, count) = (Pool::new("threads"), Count::new());
    let (retired, done) = (Barrier::new(5), Barrier::new(5));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 0..4 {
            let (pool, count, retired, done, stop) = (&pool, &count, &retired, &done, &stop);
            scope.spawn(move || {
                for id in 0..25 {
                    PoolBox::retire(pool.alloc(Token::new(id, count)));
                }
                retired.wait();
                let other = Count::new();
                while t % 2 == 0 && !stop.load(SeqCst) {
                    PoolBox::retire(pool.alloc(Token::new(1, &other)));
                }
                done.wait();
            });
        }
        retired.wait();
        pool.rcu_barrier().unwrap();
        assert_eq!(count.dropped(), 100);
        stop.store(true, SeqCst);
        done.wait();
    });
}

/// What another thread is in the middle of reaping is waited for.
#[test]
fn a_barrier_waits_for_other_reapers() {
    let pool = Pool::<OnDrop>::new("slow");
    let (entered, wait_entered) = mpsc::channel();
    let (release, wait_release) = mpsc::channel::<()>();
    let (entered, wait_release) = (Mutex::new(entered), Mutex::new(wait_release));
    let finished = Arc::new(AtomicBool::new(false));
    let finishing = Arc::clone(&finished);
    PoolBox::retire(pool.alloc(OnDrop::new(move || {
        entered.lock().unwrap().send(()).unwrap();
        wait_release.lock().unwrap().recv().unwrap();
        finishing.store(true, SeqCst);
    })));
    thread::scope(|scope| {
        let reaping = scope.spawn(|| pool.rcu_barrier());
        wait_entered.recv().unwrap();
        let waiting = scope.spawn(|| {
            pool.rcu_barrier().unwrap();
            assert!(finished.load(SeqCst), "did not wait");
        });
        // Nothing orders this after the second thread's wait, but it must hold in every order.
        thread::yield_now();
        release.send(()).unwrap();
        reaping.join().unwrap().unwrap();
        waiting.join().unwrap();
    });
}

#[test]
fn synchronize_waits_for_a_reader() {
    let (send, receive) = mpsc::channel();
    let unpinned = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = rcu::pin();
            send.send(()).unwrap();
            thread::yield_now();
            unpinned.store(true, SeqCst);
            drop(guard);
        });
        receive.recv().unwrap();
        rcu::synchronize().unwrap();
        assert!(unpinned.load(SeqCst));
    });
}
