//! Retired objects in a process that forks or exits.

use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Barrier, LazyLock, mpsc};

use sheaves::rcu::BarrierError;
use sheaves::{Pool, PoolBox, rcu};

use crate::support::{SEQ, fork, in_child, reap, say, watched};

/// Counts its drops.
struct Counted(&'static AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SEQ);
    }
}

/// Promise 7: whatever other threads do when a process forks, its child may retire, and is not made to wait.
#[test]
fn a_forked_child_may_retire() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    in_child("retired::a_forked_child_may_retire", &[], || {
        watched("a fork with retired objects", || {
            let pool = Pool::<Counted>::builder("forked")
                .sheaf_capacity(8)
                .build()
                .unwrap();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let threads = [true, false].map(|pinned| {
                    let (pool, stop) = (&pool, &stop);
                    scope.spawn(move || {
                        while !stop.load(SEQ) {
                            let _guard = pinned.then(rcu::pin);
                            for _ in 0..20 {
                                PoolBox::retire(pool.alloc(Counted(&DROPPED)));
                            }
                        }
                    })
                });
                for _ in 0..30 {
                    PoolBox::retire(pool.alloc(Counted(&DROPPED)));
                    let pid = fork(|| forked(&pool));
                    reap(pid, "a child that retires");
                }
                stop.store(true, SEQ);
                // A scope by itself does not wait for destructors of thread-locals.
                for thread in threads {
                    thread.join().unwrap();
                }
            });
            pool.rcu_barrier().unwrap();
            assert_eq!(pool.stats().retired, 0);
        });
    });
}

fn forked(pool: &Pool<Counted>) {
    static HERE: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(pool.rcu_barrier(), Err(BarrierError::Forked));
    assert_eq!(rcu::synchronize(), Err(BarrierError::Forked));
    let kept = pool.alloc(Counted(&HERE));
    (0..200).for_each(|_| PoolBox::retire(pool.alloc(Counted(&HERE))));
    rcu::drain();
    pool.stats();
    pool.shrink();
    drop(kept);
    let own = Pool::<u64>::new("of_the_child");
    PoolBox::retire(own.alloc(1));
    own.close()
        .expect("closing does not wait for what is retired");
}

/// With sheaves that are not full of what is retired here, wherever this runs.
static POOL: LazyLock<Pool<Counted>> = LazyLock::new(|| {
    let builder = Pool::builder("at_exit").sheaf_capacity(60);
    builder.build().expect("there is memory")
});
static AT_EXIT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count_at_exit() {
    assert_eq!((POOL.stats().retired, AT_EXIT.load(SEQ)), (10, 0));
    PoolBox::retire(POOL.alloc(Counted(&AT_EXIT)));
    assert_eq!(POOL.stats().retired, 11);
    say("eleven are retired, none is dropped");
}

/// What is not reclaimed when the process exits is counted, and not run.
#[test]
fn what_is_retired_at_exit_is_counted() {
    let said = ["eleven are retired, none is dropped"];
    in_child("retired::what_is_retired_at_exit_is_counted", &said, || {
        (0..10).for_each(|_| PoolBox::retire(POOL.alloc(Counted(&AT_EXIT))));
        // SAFETY: the handler is a function of this program and does not unwind unless the test fails.
        assert_eq!(unsafe { libc::atexit(count_at_exit) }, 0);
        // A reader that stays keeps the drain thread from coming first.
        let _stays = core::mem::ManuallyDrop::new(rcu::pin());
    });
}

/// The drain thread comes when something is retired, and goes when nothing is.
#[test]
fn the_drain_thread_comes_and_goes() {
    fn runs() -> bool {
        let tasks = std::fs::read_dir("/proc/self/task").expect("the tasks of the process");
        tasks.flatten().any(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "sheaves-drain")
        })
    }
    in_child("retired::the_drain_thread_comes_and_goes", &[], || {
        let wait = core::time::Duration::from_millis(5);
        let builder = Pool::<u64>::builder("on_demand").drain_interval(wait);
        let pool = builder.build().unwrap();
        assert!(!runs(), "nothing is retired");
        for _ in 0..3 {
            let guard = rcu::pin();
            PoolBox::retire(pool.alloc(1));
            while !runs() {
                std::thread::yield_now();
            }
            drop(guard);
            while runs() {
                std::thread::sleep(wait);
            }
            assert_eq!(pool.stats().retired, 0);
        }
    });
}

/// Threads that fork while others reap.
#[test]
fn forks_and_barriers_do_not_wait_for_each_other() {
    in_child(
        "retired::forks_and_barriers_do_not_wait_for_each_other",
        &[],
        || {
            let pool = Pool::<[u64; 8]>::new("barriers");
            let (start, (done, wait)) = (Barrier::new(2), mpsc::channel::<()>());
            std::thread::scope(|scope| {
                let (pool, start) = (&pool, &start);
                scope.spawn(move || {
                    start.wait();
                    while wait.try_recv() == Err(mpsc::TryRecvError::Empty) {
                        PoolBox::retire(pool.alloc([1; 8]));
                        pool.rcu_barrier().unwrap();
                    }
                });
                start.wait();
                for _ in 0..20 {
                    reap(
                        fork(|| PoolBox::retire(pool.alloc([2; 8]))),
                        "a child beside a barrier",
                    );
                }
                drop(done);
            });
        },
    );
}
