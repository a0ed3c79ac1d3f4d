//! A counting global allocator, children of the test, a watchdog, a page source that misbehaves.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, System};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sheaves::{Heap, PageSource, Pool};

pub(crate) use crate::isolated::isolated;
pub(crate) use crate::watchdog::watched;

/// The order of the tests' own counters. Sequentially consistent, so that a reading is a fact.
pub(crate) const SEQ: Ordering = Ordering::SeqCst;

/// The system's allocator, which counts the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the global allocator by the running thread so far.
pub(crate) fn heap_calls() -> usize {
    CALLS.get()
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Runs `body`, watched, on a thread whose stack has room for a thousand nested calls of an unoptimised build.
pub(crate) fn on_a_deep_stack(what: &str, body: impl FnOnce() + Send) {
    const STACK: usize = 256 << 20;
    watched(what, || {
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(STACK);
            let thread = builder.spawn_scoped(scope, body).expect("a thread");
            thread.join().expect("it did well");
        });
    });
}

/// Whether `body` panicked.
pub(crate) fn panics(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

/// Whether the process runs under AddressSanitizer, whose shadow faults and whose allocator is its own.
pub(crate) fn under_asan() -> bool {
    std::env::var_os("ASAN_OPTIONS").is_some()
}

/// Nothing is live, every slot is somewhere, nothing was reported, and one shrink gives all memory back.
#[track_caller]
pub(crate) fn assert_home<T>(pool: &Pool<T>) {
    let s = pool.stats();
    assert_eq!((s.live, s.prefilled, s.transit), (0, 0, 0), "{s:?}");
    assert_eq!(s.slots, s.cached + s.barn + s.free, "{s:?}");
    pool.shrink();
    let s = pool.stats();
    assert_eq!((s.bytes, s.slots, s.reports), (0, 0, 0), "{s:?}");
}

/// A number from the environment, for longer runs.
pub(crate) fn count_from(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}"))
    })
}

/// A page source over [`Heap`] whose memory is dirty and which can be told to refuse.
#[derive(Debug)]
pub(crate) struct Unkind {
    /// Calls of `alloc_pages` so far.
    pub(crate) calls: AtomicUsize,
    /// The call of `alloc_pages` that fails, from 1; and those after it, if it says so.
    fails_at: AtomicUsize,
    fails_after: bool,
    /// Bytes that it gives at most.
    largest: usize,
    /// Bytes that are out.
    pub(crate) bytes: AtomicUsize,
}

impl Unkind {
    pub(crate) fn new() -> Self {
        Self {
            calls: AtomicUsize::new(0),
            fails_at: AtomicUsize::new(usize::MAX),
            fails_after: false,
            largest: usize::MAX,
            bytes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn failing_at(call: usize, and_after: bool) -> Self {
        let source = Self::new();
        source.fails_at.store(call, SEQ);
        Self {
            fails_after: and_after,
            ..source
        }
    }

    pub(crate) fn up_to(largest: usize) -> Self {
        Self {
            largest,
            ..Self::new()
        }
    }
}

// SAFETY: every block comes from `Heap` and goes back to it with its layout.
unsafe impl PageSource for Unkind {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        let call = self.calls.fetch_add(1, SEQ) + 1;
        let fails_at = self.fails_at.load(SEQ);
        if call == fails_at || (self.fails_after && call > fails_at) || layout.size() > self.largest
        {
            return None;
        }
        let pages = Heap.alloc_pages(layout)?;
        // SAFETY: the block has this many bytes and is nobody else's.
        unsafe { pages.write_bytes(0xa5, layout.size()) };
        self.bytes.fetch_add(layout.size(), SEQ);
        Some(pages)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), SEQ);
        // SAFETY: the pool is done with the block: what is left in it is nobody's.
        unsafe { pages.write_bytes(0x5a, layout.size()) };
        // SAFETY: passed on.
        unsafe { Heap.free_pages(pages, layout) };
    }
}
