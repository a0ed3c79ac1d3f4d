//! Threads on their way out.

use alloc::sync::Arc;
use core::cell::RefCell;
use std::sync::{LazyLock, Mutex, PoisonError};

use sheaves::{Pool, PoolBox};

use crate::machine::on_one_node;
use crate::support::{Metered, isolated, on_threads};

type Object = [u64; 30];

#[test]
fn slots_of_a_thread_that_ended_are_used_again() {
    let source = Metered::new();
    let pool = on_one_node(Pool::<Object>::builder("ended").source(Arc::clone(&source)));
    for round in 0..50 {
        on_threads(1, |_| {
            drop((0..150).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>())
        });
        let stats = pool.stats();
        assert_eq!(
            (stats.live, stats.cached, stats.locals),
            (0, 0, 0),
            "round {round}"
        );
        assert!(stats.slots <= 2 * 272, "round {round}: {stats:?}");
    }
    // Memory is out, and yet all slots can be had.
    source.set_budget(Some(0));
    let slots = pool.stats().slots;
    let boxes: Vec<_> = core::iter::from_fn(|| pool.try_alloc([0; 30]).ok()).collect();
    assert_eq!(boxes.len() as u64, slots);
}

static LATE: LazyLock<Pool<Object>> = LazyLock::new(|| Pool::new("late"));

/// Uses a pool in its destructor.
struct AtExit {
    kept: Vec<PoolBox<Object>>,
    log: Arc<Mutex<Vec<u64>>>,
}

impl Drop for AtExit {
    fn drop(&mut self) {
        let boxes: Vec<_> = (0..200).map(|i| LATE.alloc([i; 30])).collect();
        let sum = boxes.iter().map(|boxed| boxed[29]).sum();
        drop(boxes);
        PoolBox::free_bulk(self.kept.drain(..100));
        self.kept.clear();
        let mut sheaf = LATE.prefill(70).expect("memory is there");
        let boxed = sheaf.alloc([1; 30]).expect("it was prefilled");
        sheaf.free(boxed).expect("there is room");
        let again = LATE.alloc([5; 30]);
        drop((again.clone(), again, sheaf));
        LATE.flush_thread();
        drop(Pool::<u64>::new("made_at_exit").alloc(5));
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sum);
    }
}

thread_local! {
    static BEFORE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    static AFTER: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

#[test]
fn later_destructors_of_thread_locals_allocate_and_free() {
    isolated(
        "threads::later_destructors_of_thread_locals_allocate_and_free",
        || {
            let log = Arc::new(Mutex::new(Vec::new()));
            for _ in 0..20 {
                let log = Arc::clone(&log);
                let thread = std::thread::spawn(move || {
                    // Registered before the thread first uses a pool, and after: destructors run in either order.
                    BEFORE.with(|cell| drop(cell.borrow_mut().take()));
                    let boxes = || (0..150).map(|i| LATE.alloc([i; 30])).collect::<Vec<_>>();
                    let (first, second) = (boxes(), boxes());
                    AFTER.with(|cell| {
                        *cell.borrow_mut() = Some(AtExit {
                            kept: first,
                            log: Arc::clone(&log),
                        })
                    });
                    BEFORE.with(|cell| *cell.borrow_mut() = Some(AtExit { kept: second, log }));
                });
                thread.join().unwrap();
                let stats = LATE.stats();
                assert_eq!(
                    (stats.live, stats.prefilled, stats.cached, stats.locals),
                    (0, 0, 0, 0),
                    "{stats:?}"
                );
            }
            assert_eq!(*log.lock().unwrap(), vec![199 * 100; 40]);
            LATE.shrink();
            assert_eq!(LATE.stats().bytes, 0);
        },
    );
}

#[test]
fn the_last_handle_goes_in_a_destructor_of_a_thread_local() {
    struct Last(Option<Pool<Object>>, Vec<PoolBox<Object>>);
    impl Drop for Last {
        fn drop(&mut self) {
            drop(self.0.take());
            let clone = self.1[0].clone();
            self.1.push(clone);
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    isolated(
        "threads::the_last_handle_goes_in_a_destructor_of_a_thread_local",
        || {
            for first in [false, true] {
                let source = Metered::new();
                let pool = Pool::<Object>::builder("last")
                    .source(Arc::clone(&source))
                    .build()
                    .unwrap();
                let thread = std::thread::spawn(move || {
                    if first {
                        LAST.with(|cell| drop(cell.borrow_mut().take()));
                    }
                    let boxes = (0..100).map(|i| pool.alloc([i; 30])).collect();
                    LAST.with(|cell| *cell.borrow_mut() = Some(Last(Some(pool), boxes)));
                });
                thread.join().unwrap();
                assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
            }
        },
    );
}

#[test]
fn statics_are_used_while_the_process_exits() {
    extern "C" fn at_exit() {
        let boxes: Vec<_> = (0..100).map(|i| LATE.alloc([i; 30])).collect();
        drop(boxes);
        LATE.shrink();
    }
    isolated("threads::statics_are_used_while_the_process_exits", || {
        drop(LATE.alloc([1; 30]));
        // SAFETY: the function lives as long as the process and does not unwind.
        assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
    });
}
