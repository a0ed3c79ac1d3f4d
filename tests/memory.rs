//! Resident memory: what many threads and bursts leave behind. A process of its own, one test at a time.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use sheaves::{Pool, PoolBox};

#[path = "common/watchdog.rs"]
mod watchdog;

use watchdog::watched;

type Object = [u64; 30];

/// Tests of a binary run side by side, and there is one resident size.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of this process that are resident.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse::<usize>().ok());
    // SAFETY: takes its argument by value and touches no memory of ours.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.expect("a number of pages") * usize::try_from(page).expect("a page size")
}

/// Whether this is a run under AddressSanitizer, which keeps freed memory in a quarantine and has a shadow of its
/// own: resident sizes say nothing there.
fn is_instrumented() -> bool {
    std::env::var_os("ASAN_OPTIONS").is_some()
}

/// A thread with a small stack; `None` if the system allows no more of them.
fn small_thread<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> Option<JoinHandle<R>> {
    // Instrumented code needs more stack than other.
    let stack = if is_instrumented() {
        512 << 10
    } else {
        64 << 10
    };
    Builder::new().stack_size(stack).spawn(body).ok()
}

/// Promise 5: thousands of threads, all alive, each with an object and with sheaves of its own.
#[test]
fn thousands_of_live_threads() {
    const THREADS: u64 = 5000;
    let _alone = alone();
    watched("live threads", || {
        let pool = Pool::<Object>::new("live_threads");
        // Threads wait for their end here: dropping the senders lets them go.
        let (object, objects) = mpsc::channel::<PoolBox<Object>>();
        let mut threads = Vec::new();
        for i in 0..THREADS {
            let (pool, object) = (pool.clone(), object.clone());
            let (end, wait) = mpsc::channel::<()>();
            let spawned = small_thread(move || {
                let kept = pool.alloc([i; 30]);
                object.send(pool.alloc([i; 30])).expect("main receives");
                drop(object);
                let _ = wait.recv();
                assert_eq!(*kept, [i; 30]);
            });
            match spawned {
                Some(handle) => threads.push((handle, end)),
                None => break,
            }
        }
        drop(object);
        let count = threads.len() as u64;
        println!("{count} threads at once");
        assert!(count >= 500, "the system allows {count} threads only");
        let boxes: Vec<_> = objects.iter().collect();
        let stats = pool.stats();
        assert_eq!((stats.live, stats.locals), (2 * count, count));
        // All of them at a refill's cost: found and emptied by one call.
        pool.shrink();
        let stats = pool.stats();
        assert_eq!((stats.live, stats.cached), (2 * count, 0));
        // Each thread has an object of its own.
        let mut seen: Vec<u64> = boxes.iter().map(|boxed| boxed[0]).collect();
        seen.sort_unstable();
        assert!(seen.iter().zip(0..).all(|(own, i)| *own == i));
        drop(boxes);
        for (handle, end) in threads {
            drop(end);
            handle.join().unwrap();
        }
        // This thread has sheaves too, since it freed.
        pool.flush_thread();
        let stats = pool.stats();
        assert_eq!((stats.live, stats.locals, stats.cached), (0, 1, 0));
        pool.close().unwrap();
    });
}

/// Promise 5: a hundred thousand threads, one batch after the other, leave no memory behind.
#[test]
fn a_hundred_thousand_short_threads_leave_nothing() {
    const BATCH: u64 = 20;
    const BATCHES: u64 = 100_000 / BATCH;
    /// What the second half may add: fragments of the heap. A local, its arrays and its entries are more than a KiB,
    /// so that a leak of one in a hundred would be seen.
    const SLACK: usize = 512 << 10;
    let _alone = alone();
    watched("short threads", || {
        let pool = Pool::<Object>::new("short_threads");
        let run = |batches: u64| {
            for batch in 0..batches {
                let threads: Vec<_> = (0..BATCH)
                    .map(|i| {
                        let pool = pool.clone();
                        let work = move || {
                            let boxed = pool.alloc([batch; 30]);
                            drop(pool.alloc([i; 30]));
                            assert_eq!(*boxed, [batch; 30]);
                        };
                        small_thread(work).expect("so few threads can be had")
                    })
                    .collect();
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().unwrap());
            }
        };
        run(BATCHES / 2);
        let half = resident();
        run(BATCHES / 2);
        let grown = resident().saturating_sub(half);
        println!("{} KiB more after the second 50,000 threads", grown >> 10);
        let stats = pool.stats();
        assert_eq!((stats.live, stats.locals, stats.cached), (0, 0, 0));
        // What all threads of a batch may have parked at once, and the barn, in slabs none of which is full.
        let capacity = pool.config().sheaf_capacity() as u64;
        let most = BATCH * (2 * capacity + 2) + 10 * capacity;
        let slabs = 2 * most.div_ceil(stats.slots / stats.slabs);
        assert!(stats.slabs <= slabs, "at most {slabs} slabs, {stats:?}");
        assert!(
            is_instrumented() || grown <= SLACK,
            "the second half took {grown} bytes"
        );
    });
}

/// Promise 4: a burst is given back by one call, from a thread that took no part, while those that did sit idle
/// with sheaves that were full.
#[test]
fn a_burst_is_given_back_by_one_shrink() {
    const OBJECTS: u64 = 1_000_000;
    const THREADS: u32 = 8;
    let _alone = alone();
    watched("a burst", || {
        let pool = Arc::new(Pool::<Object>::new("burst"));
        let barrier = Arc::new(Barrier::new(1 + (0..THREADS).len()));
        // The vectors of pointers are there from the start: they are not what is measured.
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (pool, barrier) = (Arc::clone(&pool), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    let count = OBJECTS / u64::from(THREADS);
                    // With numbers that are not 0, or the memory would come untouched from the system.
                    let mut boxes: Vec<(u64, Option<PoolBox<Object>>)> =
                        (1..=count).map(|i| (i, None)).collect();
                    // Warm: the thread has its sheaves.
                    drop((0..200).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
                    barrier.wait();
                    barrier.wait();
                    for (i, place) in &mut boxes {
                        *place = Some(pool.alloc([*i; 30]));
                    }
                    barrier.wait();
                    // Nobody frees before all have allocated.
                    barrier.wait();
                    for (i, place) in &mut boxes {
                        assert_eq!(place.take().map(|boxed| boxed[29]), Some(*i));
                    }
                    barrier.wait();
                    barrier.wait();
                })
            })
            .collect();
        barrier.wait();
        pool.shrink();
        let before = resident();
        barrier.wait();
        barrier.wait();
        let burst = resident();
        assert!(burst - before >= 200 << 20, "{before} bytes, then {burst}");
        barrier.wait();
        barrier.wait();
        let stats = pool.stats();
        assert!(stats.cached > 0 && stats.live == 0, "{stats:?}");
        let given = pool.shrink();
        let after = resident();
        println!(
            "{} KiB before, {} in the burst, {} after",
            before >> 10,
            burst >> 10,
            after >> 10
        );
        assert_eq!((pool.stats().slabs, pool.stats().bytes), (0, 0));
        assert!(given > 0);
        assert!(
            is_instrumented() || after <= before + before / 20,
            "{before} bytes before, {after} after"
        );
        barrier.wait();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}
