//! The types of std, in the shape the models share.
#![forbid(unsafe_code)]

pub(crate) use alloc::sync::Arc;
pub(crate) use core::cell::{Cell, RefCell};
pub(crate) use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};
pub(crate) use std::sync::{OnceLock, RwLock};
pub(crate) use std::thread_local;

use std::sync::{Mutex, MutexGuard, TryLockError};

pub(crate) use super::membarrier::{BarrierMode, heavy_barrier};

/// A mutual exclusion lock that does not know poison.
///
/// No user code runs under any lock of this crate, so a panic cannot leave the data half changed.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Held access to what a [`Lock`] guards.
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock. May sleep, and so counts as blocking for RealtimeSanitizer even if nobody holds it.
    #[cfg(not(tsan))]
    #[cfg_attr(rtsan, sanitize(realtime = "blocking"))]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The same for ThreadSanitizer. It sees `try_lock`, which is inlined here, but not the waiting, which is
    /// compiled into std without instrumentation and would make each wait look like a missing lock.
    #[cfg(tsan)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let backoff = Backoff::new();
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            backoff.wait();
        }
    }

    /// Takes the lock if it is free; never waits.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The light half of the asymmetric pair where the system has `membarrier`: free at run time.
#[inline(always)]
pub(crate) fn light_barrier() {
    // SeqCst: a compiler fence only; the hardware fence is run for this thread by `heavy_barrier`.
    compiler_fence(Ordering::SeqCst);
}

/// The light half where it has not: a store before it is visible before a load after it is made.
#[inline]
pub(crate) fn full_fence() {
    // SeqCst: pairs with the fence in `heavy_barrier` of the fence mode.
    fence(Ordering::SeqCst);
}

/// Waits a little for another thread: spins, then yields, then sleeps, so that a waiter of high real-time
/// priority cannot starve the thread it waits for.
#[derive(Debug)]
pub(crate) struct Backoff {
    inner: crossbeam_utils::Backoff,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self {
            inner: crossbeam_utils::Backoff::new(),
        }
    }

    pub(crate) fn wait(&self) {
        // A thread that yields to lower priorities runs again at once; only a sleep lets them in.
        const NAP: core::time::Duration = core::time::Duration::from_micros(50);
        if self.inner.is_completed() {
            std::thread::sleep(NAP);
        } else {
            self.inner.snooze();
        }
    }
}
