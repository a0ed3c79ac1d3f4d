//! Promise 6 under RealtimeSanitizer, which ends the process when a function that is said not to block calls what may:
//! the allocator, a system call, a lock of this crate. Built by `.ci/rtsan` alone: it needs a nightly compiler.
#![cfg(rtsan)]
#![feature(sanitize)]

use std::hint::black_box;
use std::process::Command;
use std::sync::Mutex;

use sheaves::{Pool, PoolBox, PrefilledSheaf};

type Object = [u64; 30];

const N: usize = 100;

/// The section that a prefilled sheaf is for.
#[sanitize(realtime = "nonblocking")]
fn section(sheaf: &mut PrefilledSheaf<Object>, held: &mut [Option<PoolBox<Object>>]) {
    for place in held.iter_mut() {
        *place = sheaf.alloc([1; 30]).ok();
    }
    for place in held.iter_mut().step_by(2) {
        if let Some(boxed) = place.take() {
            assert!(sheaf.free(boxed).is_ok());
        }
    }
    for place in held.iter_mut().step_by(2) {
        *place = sheaf.alloc_with(|| [2; 30]).ok();
    }
    assert!(sheaf.len() >= sheaf.capacity() - held.len());
}

/// Promise 6: allocating from a prefilled sheaf and freeing into it.
#[test]
fn a_prefilled_section_does_not_block() {
    for capacity in [0, 1, 60, 200] {
        let builder = Pool::builder("section").sheaf_capacity(capacity);
        let pool: Pool<Object> = builder.build().unwrap();
        let mut held: Vec<_> = (0..N).map(|_| None).collect();
        let mut sheaf = pool.prefill(N).unwrap();
        section(&mut sheaf, &mut held);
        assert!(held.iter().all(Option::is_some));
    }
}

/// Back and forth within what the thread's sheaf holds.
#[sanitize(realtime = "nonblocking")]
fn warm(pool: &Pool<Object>, held: &mut [Option<PoolBox<Object>>]) {
    for place in held.iter_mut() {
        *place = Some(pool.alloc([3; 30]));
    }
    for place in held.iter_mut() {
        *place = None;
    }
}

/// The fast path of a warm pool, in the variant with `membarrier`.
#[test]
fn a_warm_allocation_does_not_block() {
    let pool: Pool<Object> = Pool::builder("warm").sheaf_capacity(60).build().unwrap();
    drop((0..60).map(|_| pool.alloc([0; 30])).collect::<Vec<_>>());
    let mut held: Vec<_> = (0..50).map(|_| None).collect();
    for _ in 0..1000 {
        warm(&pool, &mut held);
    }
}

#[sanitize(realtime = "nonblocking")]
fn allocates() {
    drop(black_box(Box::new(1)));
}

#[sanitize(realtime = "nonblocking")]
fn waits_for_a_mutex(mutex: &Mutex<u64>) {
    drop(black_box(mutex.lock()));
}

/// Finds nothing in a new pool: locks of the crate, of which none is held.
#[sanitize(realtime = "nonblocking")]
fn allocates_from_a_new_pool(pool: &Pool<Object>) {
    drop(black_box(pool.try_alloc_now([4; 30])));
    black_box(pool.stats());
}

#[sanitize(realtime = "nonblocking")]
fn prefills(pool: &Pool<Object>) {
    drop(black_box(pool.prefill(3)));
}

fn block(how: &str) {
    match how {
        "allocator" => allocates(),
        "mutex" => {
            let mutex = Mutex::new(1);
            std::thread::scope(|scope| {
                let held = mutex.lock().unwrap();
                scope.spawn(|| waits_for_a_mutex(&mutex));
                // Held until the sanitizer ends the process.
                std::thread::park();
                drop(held);
            });
        }
        "lock" => allocates_from_a_new_pool(&Pool::new("new")),
        "prefill" => prefills(&Pool::new("new")),
        _ => unreachable!("{how}"),
    }
}

/// The negative twin: what does block is told.
#[test]
fn what_blocks_is_told() {
    const HOW: &str = "SHEAVES_TEST_BLOCKS";
    if let Ok(how) = std::env::var(HOW) {
        return block(&how);
    }
    for how in ["allocator", "mutex", "lock", "prefill"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["what_blocks_is_told", "--exact", "--nocapture"]);
        let output = child.env(HOW, how).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{how} passed");
        assert!(text.contains("RealtimeSanitizer"), "{how}: {text}");
    }
}
