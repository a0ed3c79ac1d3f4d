//! The fast paths as functions of their own, for counting instructions.
//!
//! `sheaves-icount NAME` calls one of them [`CALLS`] times, with the pool in the state in which it is meant to be
//! found. Valgrind's callgrind counts what happens inside: `.ci/icount` runs it and compares with
//! `expected.txt`. Nothing is timed.

use std::env;
use std::mem::MaybeUninit;
use std::process::ExitCode;

use allocator_api2::boxed::Box as BoxIn;
use sheaves::{Pool, PoolBox, PrefilledSheaf, rcu};

/// 240 bytes, the size of a kernel's I/O request. An allocation writes the first and the last word.
#[repr(C)]
pub struct Object {
    first: u64,
    middle: MaybeUninit<[u64; 28]>,
    last: u64,
}

impl Object {
    #[inline(always)]
    fn new(tag: u64) -> Self {
        Self {
            first: tag,
            middle: MaybeUninit::uninit(),
            last: tag,
        }
    }
}

/// Each function is called so often; the counts are the same each time.
const CALLS: usize = 100;

// SAFETY: no other symbol has this name, nor those below.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_alloc(pool: &Pool<Object>, tag: u64) -> PoolBox<Object> {
    pool.alloc(Object::new(tag))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_drop(object: PoolBox<Object>) {
    drop(object);
}

/// The same code as [`icount_alloc`], called when the main sheaf is empty and the spare is not.
// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_swap(pool: &Pool<Object>, tag: u64) -> PoolBox<Object> {
    let object = pool.alloc(Object::new(tag));
    // Different from `icount_alloc`, which the compiler may otherwise use for both.
    std::hint::black_box(object)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_prefilled_alloc(
    sheaf: &mut PrefilledSheaf<Object>,
    tag: u64,
) -> Option<PoolBox<Object>> {
    sheaf.alloc(Object::new(tag)).ok()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_prefilled_free(sheaf: &mut PrefilledSheaf<Object>, object: PoolBox<Object>) -> bool {
    sheaf.free(object).is_ok()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_box_new_in(pool: &Pool<Object>, tag: u64) -> BoxIn<Object, &Pool<Object>> {
    BoxIn::new_in(Object::new(tag), pool)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_box_drop(object: BoxIn<Object, &Pool<Object>>) {
    drop(object);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn icount_retire(object: PoolBox<Object>) {
    PoolBox::retire(object);
}

fn pairs(pool: &Pool<Object>) {
    // The first allocation fills a sheaf.
    drop(pool.alloc(Object::new(0)));
    for tag in 0..CALLS as u64 {
        icount_drop(icount_alloc(pool, tag));
    }
}

fn boxes(pool: &Pool<Object>) {
    drop(pool.alloc(Object::new(0)));
    for tag in 0..CALLS as u64 {
        icount_box_drop(icount_box_new_in(pool, tag));
    }
}

fn prefilled(pool: &Pool<Object>) {
    let mut sheaf = pool.prefill(1).expect("there is memory");
    for tag in 0..CALLS as u64 {
        let object = icount_prefilled_alloc(&mut sheaf, tag).expect("the sheaf holds one");
        assert!(icount_prefilled_free(&mut sheaf, object), "there is room");
    }
}

fn swaps(pool: &Pool<Object>) {
    let capacity = pool.config().sheaf_capacity();
    for tag in 0..CALLS as u64 {
        let objects: Vec<_> = (0..2 * capacity)
            .map(|_| pool.alloc(Object::new(0)))
            .collect();
        pool.flush_thread();
        // Two full sheaves; then an empty main and a full spare.
        drop(objects);
        let held: Vec<_> = (0..capacity).map(|_| pool.alloc(Object::new(0))).collect();
        let before = pool.stats();
        let swapped = icount_swap(pool, tag);
        let after = pool.stats();
        assert_eq!(
            after.alloc_slowpath,
            before.alloc_slowpath + 1,
            "main was not empty"
        );
        assert_eq!(after.barn_get, before.barn_get, "the spare was empty");
        assert_eq!(after.cached + 1, before.cached, "slots came from elsewhere");
        drop((swapped, held));
    }
}

/// Into a sheaf that has room for all of them, without a drain thread.
fn retired(_pool: &Pool<Object>) {
    rcu::set_manual(true);
    let pool = Pool::builder("retired")
        .sheaf_capacity(2 * CALLS)
        .build()
        .expect("a pool can be built");
    // The first takes an empty sheaf.
    PoolBox::retire(pool.alloc(Object::new(0)));
    for tag in 0..CALLS as u64 {
        icount_retire(pool.alloc(Object::new(tag)));
    }
    let stats = pool.stats();
    assert_eq!(stats.retired, CALLS as u64 + 1, "a sheaf was handed in");
}

fn main() -> ExitCode {
    let pool = Pool::new("counted");
    let run = match env::args().nth(1).as_deref() {
        Some("alloc" | "drop") => pairs,
        Some("box_new_in" | "box_drop") => boxes,
        Some("prefilled_alloc" | "prefilled_free") => prefilled,
        Some("swap") => swaps,
        Some("retire") => retired,
        _ => {
            eprintln!(
                "usage: sheaves-icount \
                 alloc|drop|prefilled_alloc|prefilled_free|box_new_in|box_drop|swap|retire"
            );
            return ExitCode::FAILURE;
        }
    };
    run(&pool);
    println!("{CALLS} calls");
    ExitCode::SUCCESS
}
