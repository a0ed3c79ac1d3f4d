//! A gauge of live objects, a page source that can be shut, random numbers, a watchdog.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sheaves::{AllocErrorKind, Heap, PageSource, Pool, PoolBox};

pub(crate) use crate::random::Random;
pub(crate) use crate::watchdog::{die, watched};

/// The order of the tests' own counters. Sequentially consistent, so that a reading is a fact.
pub(crate) const SEQ: Ordering = Ordering::SeqCst;

/// Threads of most tests here.
pub(crate) const THREADS: usize = 8;

/// How many objects are live, and how many may be.
#[derive(Debug)]
pub(crate) struct Gauge {
    live: AtomicUsize,
    limit: usize,
}

impl Gauge {
    /// A gauge for one test, which is never freed.
    pub(crate) fn new(limit: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            live: AtomicUsize::new(0),
            limit,
        }))
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(SEQ)
    }

    /// An object, made when its slot has been taken: as many objects as slots, or fewer.
    pub(crate) fn object(&'static self) -> Object {
        let live = self.live.fetch_add(1, SEQ) + 1;
        if live > self.limit {
            // Not a panic: it would free objects on its way and hide what happened.
            die(&format!(
                "{live} objects are live, and the limit is {}",
                self.limit
            ));
        }
        Object {
            gauge: self,
            words: [live; 6],
        }
    }
}

/// An object that is counted from after its slot was taken to before it is given back.
#[derive(Debug)]
pub(crate) struct Object {
    gauge: &'static Gauge,
    words: [usize; 6],
}

impl Drop for Object {
    fn drop(&mut self) {
        let first = self.words[0];
        assert!(
            self.words.iter().all(|word| *word == first),
            "an object was overwritten"
        );
        self.gauge.live.fetch_sub(1, SEQ);
    }
}

/// Allocates where the limit cannot be the reason to fail.
#[track_caller]
pub(crate) fn must(pool: &Pool<Object>, gauge: &'static Gauge) -> PoolBox<Object> {
    match pool.try_alloc_with(|| gauge.object()) {
        Ok(boxed) => boxed,
        Err(error) => {
            let live = gauge.live();
            panic!(
                "refused with {live} of {} live: {error}, {:?}",
                gauge.limit,
                pool.stats()
            );
        }
    }
}

/// Fails to allocate since the limit is reached.
#[track_caller]
pub(crate) fn must_not(pool: &Pool<Object>, gauge: &'static Gauge) {
    let error = pool
        .try_alloc_with(|| gauge.object())
        .expect_err("as many as allowed are live");
    assert_eq!(error.kind(), AllocErrorKind::LimitReached);
}

/// Every slot is somewhere, when nobody else is inside a call.
#[track_caller]
pub(crate) fn assert_sums<T>(pool: &Pool<T>) {
    let s = pool.stats();
    let sum = s.live + s.prefilled + s.cached + s.barn + s.transit + s.free;
    assert_eq!((sum, s.transit), (s.slots, 0), "{s:?}");
}

impl Random {
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Splits `total` at random into as many parts as there are.
    pub(crate) fn split(&mut self, total: usize, parts: &mut [usize]) {
        parts.fill(0);
        let count = parts.len();
        // All in one place is a case of its own.
        if self.below(4) == 0 {
            parts[self.below(count)] = total;
        } else {
            (0..total).for_each(|_| parts[self.below(count)] += 1);
        }
    }
}

/// A source over [`Heap`] that gives nothing while it is shut.
#[derive(Debug, Default)]
pub(crate) struct Gated {
    shut: AtomicBool,
    pub(crate) refusals: AtomicUsize,
}

impl Gated {
    pub(crate) fn shut(&self, shut: bool) {
        self.shut.store(shut, SEQ);
    }
}

// SAFETY: every block is one of `Heap`, which gets it back with its layout.
unsafe impl PageSource for Gated {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.shut.load(SEQ) {
            self.refusals.fetch_add(1, SEQ);
            return None;
        }
        Heap.alloc_pages(layout)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
    }
}

/// Runs the part of a thread that others wait for at a barrier: its panic must not leave them there.
pub(crate) fn awaited<R>(body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        die(text.unwrap_or("a thread panicked"))
    })
}

/// How often a loop runs: less in debug builds, which are an order of magnitude slower.
pub(crate) fn scaled(optimised: usize) -> usize {
    if cfg!(debug_assertions) {
        optimised / 4
    } else {
        optimised
    }
}
