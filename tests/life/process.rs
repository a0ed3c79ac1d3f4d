//! The end of a process, each in a child of the test.

use core::cell::RefCell;
use core::sync::atomic::AtomicUsize;
use std::sync::LazyLock;

use sheaves::{Pool, PoolBox};

use crate::support::{SEQ, in_child, say};

type Object = [u64; 30];

static POOL: LazyLock<Pool<Object>> = LazyLock::new(|| Pool::new("at_exit"));
static LIMITED: LazyLock<Pool<Object>> =
    LazyLock::new(|| Pool::builder("limited").limit(500).build().expect("a pool"));

/// Uses the pools in every way there is.
fn use_pools() {
    for pool in [&*POOL, &*LIMITED] {
        let mut boxes: Vec<_> = (0..150).map(|i| pool.alloc([i; 30])).collect();
        PoolBox::free_bulk(boxes.drain(..100));
        let mut sheaf = pool.prefill(100).expect("memory is there");
        let boxed = sheaf.alloc([1; 30]).expect("it was prefilled");
        sheaf.free(boxed).expect("it has room");
        drop((boxes, sheaf));
        pool.flush_thread();
        pool.shrink();
    }
    let own = Pool::<u64>::new("made_at_exit");
    let kept = own.alloc(5);
    drop(own);
    assert_eq!(*kept, 5);
    assert!(!sheaves::pools().is_empty());
    sheaves::shrink();
}

extern "C" fn first_handler() {
    use_pools();
    say("the handler set first, run last");
}

extern "C" fn second_handler() {
    use_pools();
    say("the handler set last, run first");
}

fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a function of this program and does not unwind unless the test fails.
    assert_eq!(unsafe { libc::atexit(handler) }, 0);
}

/// Uses the pools when its thread or the process ends.
struct Last(&'static str);

impl Drop for Last {
    fn drop(&mut self) {
        use_pools();
        say(self.0);
    }
}

thread_local! {
    static BEFORE: RefCell<Option<Last>> = const { RefCell::new(None) };
    static AFTER: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Promise 7: handlers of `atexit`, set before the first pool was built and after.
#[test]
fn handlers_at_exit_use_pools() {
    let said = [
        "the handler set first, run last",
        "the handler set last, run first",
    ];
    in_child("process::handlers_at_exit_use_pools", &said, || {
        at_exit(first_handler);
        use_pools();
        at_exit(second_handler);
    });
}

/// Promise 7: destructors of thread-locals, declared before and after the thread first used a pool, on a thread
/// that ends and on the one that exits; then handlers of `atexit`.
#[test]
fn destructors_of_thread_locals_use_pools() {
    let said = [
        "before, thread",
        "after, thread",
        "before, exit",
        "after, exit",
        "the handler set first, run last",
    ];
    in_child(
        "process::destructors_of_thread_locals_use_pools",
        &said,
        || {
            at_exit(first_handler);
            let fill = |before, after| {
                BEFORE.with(|cell| *cell.borrow_mut() = Some(Last(before)));
                use_pools();
                AFTER.with(|cell| *cell.borrow_mut() = Some(Last(after)));
                drop(POOL.alloc([2; 30]));
            };
            std::thread::spawn(move || fill("before, thread", "after, thread"))
                .join()
                .unwrap();
            fill("before, exit", "after, exit");
            // The harness would end with this thread still there; `exit` runs this thread's destructors.
            std::process::exit(0);
        },
    );
}

/// Threads that never stop using the pools.
fn hammer() {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    for seed in 0..8_u64 {
        std::thread::spawn(move || {
            RUNNING.fetch_add(1, SEQ);
            let mut kept = Vec::new();
            for i in seed.. {
                kept.push(POOL.alloc([i; 30]));
                drop(LIMITED.try_alloc([i; 30]));
                if i % 100 == 0 {
                    kept.clear();
                    drop(POOL.prefill(10));
                }
                if i % 1000 == 0 {
                    POOL.shrink();
                    drop(Pool::<u64>::new("made_meanwhile").alloc(i));
                    std::thread::spawn(|| drop(POOL.alloc([3; 30])));
                }
            }
        });
    }
    while RUNNING.load(SEQ) < 8 {
        std::thread::yield_now();
    }
    use_pools();
}

/// Promise 7: `main` returns while threads hammer.
#[test]
fn main_returns_while_threads_hammer() {
    for _ in 0..5 {
        in_child("process::main_returns_while_threads_hammer", &[], hammer);
    }
}

/// Promise 7: the process exits with handlers and destructors that use pools while threads hammer them.
#[test]
fn a_process_exits_while_threads_hammer() {
    let said = ["at exit", "the handler set first, run last"];
    for _ in 0..5 {
        in_child(
            "process::a_process_exits_while_threads_hammer",
            &said,
            || {
                at_exit(first_handler);
                BEFORE.with(|cell| *cell.borrow_mut() = Some(Last("at exit")));
                hammer();
                std::process::exit(0);
            },
        );
    }
}

/// Promise 7: a thread other than the main one exits the process, with objects in its sheaves and in statics.
#[test]
fn another_thread_exits_the_process() {
    static KEPT: std::sync::Mutex<Vec<PoolBox<Object>>> = std::sync::Mutex::new(Vec::new());
    extern "C" fn free_kept() {
        KEPT.lock().expect("nobody panicked").clear();
        say("the kept are free");
    }
    in_child(
        "process::another_thread_exits_the_process",
        &["the kept are free"],
        || {
            at_exit(free_kept);
            KEPT.lock()
                .unwrap()
                .extend((0..300).map(|i| POOL.alloc([i; 30])));
            let thread = std::thread::spawn(|| {
                use_pools();
                std::process::exit(0);
            });
            let _ = thread.join();
        },
    );
}
