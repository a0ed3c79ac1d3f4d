//! loom's types in the shape of `real.rs`.
//!
//! loom treats sequentially consistent accesses as acquire-release but models `fence(SeqCst)` fully, and
//! knows no `membarrier`: here both halves of the asymmetric pair are fences, which is the fence mode of
//! the gate. That the light half may be a compiler fence under `membarrier` is the kernel's promise and no
//! model's finding.
#![forbid(unsafe_code)]
#![allow(
    dead_code,
    unused_imports,
    reason = "a model build compiles the lower layers only"
)]

pub(crate) use loom::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
// Its counts, and the report hook, are no protocols of ours: std's are enough and save the search.
pub(crate) use alloc::sync::Arc;
// For what no model runs but which is compiled beside them.
pub(crate) use core::cell::Cell;
pub(crate) use std::sync::{OnceLock, RwLock};
pub(crate) use std::thread_local;

use loom::sync::{Mutex, MutexGuard};

/// See `real.rs`.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// See `real.rs`.
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().expect("no panic happens under a lock")
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// How the two halves are made; a model knows fences only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMode {
    Fence,
}

impl BarrierMode {
    pub(crate) fn detect() -> Self {
        Self::Fence
    }

    pub(crate) fn is_fence(self) -> bool {
        true
    }
}

pub(crate) fn light_barrier() {
    fence(Ordering::SeqCst);
}

pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}

pub(crate) fn heavy_barrier(_mode: BarrierMode) -> bool {
    fence(Ordering::SeqCst);
    true
}

/// See `real.rs`; a loop that waits must yield or loom explores it for ever.
#[derive(Debug)]
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn wait(&self) {
        loom::thread::yield_now();
    }
}
