//! A pinned thread's proof that it is.

use core::fmt;

use crossbeam_epoch as epoch;

/// Keeps what the running thread can see from being reclaimed, until it is dropped.
///
/// It is a guard of crossbeam-epoch's default collector, so code that pins through that crate and code that pins
/// here protect each other's objects.
///
/// ```
/// let guard = sheaves::rcu::pin();
/// assert!(guard.as_epoch().collector().is_some());
/// drop(guard); // reclamation goes on
/// ```
///
/// # Invariants
///
/// 1. The guard within is one of the default collector.
#[must_use = "the thread is pinned only as long as the guard lives"]
#[repr(transparent)]
pub struct Guard(epoch::Guard);

/// Pins the running thread.
///
/// Whatever is retired from now on by anybody stays intact for as long as the guard lives. Guards nest. A thread that
/// stays pinned holds up reclamation in the whole process: keep guards short, and drop them before anything that
/// blocks.
///
/// # Real time
///
/// Takes no lock. The first call of a thread allocates.
///
/// ```
/// # use sheaves::{Pool, RcuCell, rcu};
/// let pool = Pool::new("config");
/// let cell = RcuCell::new(pool.alloc(1));
/// let guard = rcu::pin();
/// let seen = cell.load(&guard);
/// cell.replace(pool.alloc(2));
/// assert_eq!(*seen, 1); // still there
/// ```
#[doc(alias = "rcu_read_lock")]
#[inline]
pub fn pin() -> Guard {
    Guard(epoch::pin())
}

impl Guard {
    /// Takes a guard of crossbeam-epoch for ours; `None` if it is not one of the default collector.
    ///
    /// A guard of another collector, or `unprotected()`, protects nothing here.
    ///
    /// ```
    /// use sheaves::rcu::Guard;
    ///
    /// assert!(Guard::from_epoch(&crossbeam_epoch::pin()).is_some());
    /// let other = crossbeam_epoch::Collector::new();
    /// assert!(Guard::from_epoch(&other.register().pin()).is_none());
    /// ```
    pub fn from_epoch(guard: &epoch::Guard) -> Option<&Self> {
        if guard.collector() != Some(epoch::default_collector()) {
            return None;
        }
        let guard: *const epoch::Guard = guard;
        // SAFETY: `Guard` is transparent over the other, so the pointer is as good for it; borrowed for as long; the
        // guard is one of the default collector (invariant 1).
        Some(unsafe { &*guard.cast::<Self>() })
    }

    /// The guard of crossbeam-epoch within.
    pub fn as_epoch(&self) -> &epoch::Guard {
        &self.0
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
