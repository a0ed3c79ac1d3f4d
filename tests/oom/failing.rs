//! A global allocator that fails on demand, and a page source that does not use it.

use alloc::sync::Arc;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::alloc::System;

use sheaves::PageSource;

/// Which allocations of this thread fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Counted down; the one that reaches zero fails.
    nth: usize,
    all: bool,
}

impl Plan {
    pub(crate) const fn nth(nth: usize) -> Self {
        Self { nth, all: false }
    }

    pub(crate) const fn all() -> Self {
        Self { nth: 0, all: true }
    }
}

thread_local! {
    static PLAN: Cell<Plan> = const { Cell::new(Plan::nth(0)) };
    static FAILED: Cell<bool> = const { Cell::new(false) };
    /// In code that is not to fail.
    static SPARED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` with allocations failing as planned; whether one did.
pub(crate) fn failing_at<R>(plan: Plan, body: impl FnOnce() -> R) -> (R, bool) {
    FAILED.set(false);
    PLAN.set(plan);
    let result = body();
    PLAN.set(Plan::nth(0));
    (result, FAILED.get())
}

/// Runs code of the test's own, in which nothing fails.
pub(crate) fn spared<R>(body: impl FnOnce() -> R) -> R {
    SPARED.set(true);
    let result = body();
    SPARED.set(false);
    result
}

struct Failing;

fn fails() -> bool {
    if SPARED.get() {
        return false;
    }
    let plan = PLAN.get();
    let fails = plan.all || plan.nth == 1;
    PLAN.set(Plan {
        nth: plan.nth.saturating_sub(1),
        ..plan
    });
    FAILED.set(FAILED.get() || fails);
    fails
}

// SAFETY: what does not fail is passed on to `System`.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return core::ptr::null_mut();
        }
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails() {
            return core::ptr::null_mut();
        }
        // SAFETY: passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Failing = Failing;

/// Pages from the system's allocator, counted.
#[derive(Debug)]
pub(crate) struct Source(AtomicUsize);

impl Source {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0)))
    }

    pub(crate) fn blocks(&self) -> usize {
        self.0.load(SeqCst)
    }
}

// SAFETY: blocks come from `System` and go back to it with the same layout.
unsafe impl PageSource for Source {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.fetch_add(1, SeqCst);
        // SAFETY: the size is not zero, as the trait says.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        self.0.fetch_sub(1, SeqCst);
        // SAFETY: the block came from `System` with this layout.
        unsafe { System.dealloc(pages.as_ptr(), layout) };
    }
}
