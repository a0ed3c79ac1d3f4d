//! What can go wrong, one type for each failure; the caller's value comes back.
#![forbid(unsafe_code)]

use core::fmt;

pub use super::build_error::BuildError;

use crate::base::name::Name;

/// Why an allocation failed.
///
/// ```
/// use sheaves::{AllocErrorKind, Pool};
///
/// let pool = Pool::builder("two").limit(2).build()?;
/// let kept = [pool.alloc(1), pool.alloc(2)];
/// match pool.try_alloc(3).map_err(|error| error.kind()) {
///     Err(AllocErrorKind::LimitReached) => println!("try later"),
///     other => panic!("{other:?}"),
/// }
/// # drop(kept);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllocErrorKind {
    /// The page source, or the global allocator for a sheaf's array, had no memory.
    OutOfMemory,
    /// As many objects as the pool's limit allows are live, prefilled or retired.
    LimitReached,
    /// Nothing was at hand without waiting.
    WouldBlock,
    /// A fault was injected.
    Injected,
}

impl fmt::Display for AllocErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "the page source has no memory; free some, or shrink other pools",
            Self::LimitReached => "its limit is reached; free objects or raise the limit",
            Self::WouldBlock => "no free slot was at hand; allocate where blocking is allowed",
            Self::Injected => "a fault was injected",
        })
    }
}

/// An allocation failed; the value that was to be stored comes back.
///
/// ```
/// # use sheaves::{AllocErrorKind, Pool};
/// let pool: Pool<String> = Pool::builder("names").limit(1).build()?;
/// let first = pool.try_alloc("a".to_owned()).expect("one fits");
/// let error = pool.try_alloc("b".to_owned()).unwrap_err();
/// assert_eq!(error.kind(), AllocErrorKind::LimitReached);
/// assert_eq!(error.pool(), "names");
/// assert_eq!(error.into_value(), "b");
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[error("cannot allocate from pool `{pool}`: {kind}")]
pub struct AllocError<T = ()> {
    kind: AllocErrorKind,
    pool: Name,
    value: T,
}

impl<T> AllocError<T> {
    /// Why it failed.
    pub fn kind(&self) -> AllocErrorKind {
        self.kind
    }

    /// The name of the pool that refused.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// The value that was to be stored, or the closure that was to make it.
    pub fn into_value(self) -> T {
        self.value
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> AllocError<U> {
        AllocError {
            kind: self.kind,
            pool: self.pool,
            value: f(self.value),
        }
    }
}

impl AllocError {
    pub(crate) fn new(kind: AllocErrorKind, pool: &Name) -> Self {
        Self {
            kind,
            pool: pool.clone(),
            value: (),
        }
    }
}

impl<T> fmt::Debug for AllocError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocError")
            .field("kind", &self.kind)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// A prefilled sheaf is empty; the value comes back.
///
/// ```
/// let pool = sheaves::Pool::new("none");
/// let error = pool.prefill(0)?.alloc("a node").unwrap_err();
/// assert_eq!(error.into_value(), "a node");
/// # Ok::<(), sheaves::AllocError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the prefilled sheaf is empty; prefill more, or refill it where blocking is allowed")]
pub struct Exhausted<T = ()> {
    value: T,
}

impl<T> Exhausted<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value }
    }

    /// The value that was to be stored, or the closure that was to make it.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> fmt::Debug for Exhausted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exhausted").finish_non_exhaustive()
    }
}

/// A pool cannot be closed yet; it comes back usable.
///
/// ```
/// let pool = sheaves::Pool::new("brief");
/// let (sheaf, object) = (pool.prefill(3).expect("memory"), pool.alloc(1));
/// let busy = pool.close().unwrap_err();
/// assert_eq!((busy.live(), busy.handles()), (1, 1)); // the sheaf is a handle
/// assert!(busy.prefilled() >= 3 && busy.barrier().is_none());
/// drop((sheaf, object));
/// busy.into_pool().close().unwrap();
/// ```
#[derive(Clone, thiserror::Error)]
#[error(
    "the pool is in use: {live} live objects, {prefilled} prefilled slots, {handles} handles and sheaves besides this one{}",
    Because(barrier)
)]
pub struct Busy<P> {
    live: usize,
    prefilled: usize,
    handles: usize,
    barrier: Option<BarrierError>,
    pool: P,
}

/// Why retired objects were not waited for, at the end of a message.
struct Because<'a>(&'a Option<BarrierError>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

impl<P> Busy<P> {
    pub(crate) fn new(pool: P, live: usize, prefilled: usize, handles: usize) -> Self {
        Self {
            live,
            prefilled,
            handles,
            barrier: None,
            pool,
        }
    }

    /// Adds why retired objects were not waited for.
    #[cfg(feature = "rcu")]
    pub(crate) fn because(mut self, error: BarrierError) -> Self {
        self.barrier = Some(error);
        self
    }

    /// Why retired objects could not be waited for, if that is the reason.
    pub fn barrier(&self) -> Option<BarrierError> {
        self.barrier
    }

    /// Live objects, and live blocks of the allocator traits.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Slots in prefilled sheaves.
    pub fn prefilled(&self) -> usize {
        self.prefilled
    }

    /// Handles and prefilled sheaves besides the one that was to be closed.
    pub fn handles(&self) -> usize {
        self.handles
    }

    /// The pool, as usable as before.
    pub fn into_pool(self) -> P {
        self.pool
    }
}

impl<P> fmt::Debug for Busy<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Busy")
            .field("live", &self.live)
            .field("prefilled", &self.prefilled)
            .field("handles", &self.handles)
            .finish_non_exhaustive()
    }
}

/// Readers, or those who run destructors of retired objects, cannot be waited for.
///
/// ```
/// # #[cfg(feature = "rcu")] {
/// use sheaves::{BarrierError, Pool, rcu};
///
/// let pool: Pool<u64> = Pool::new("numbers");
/// let guard = rcu::pin();
/// assert_eq!(pool.rcu_barrier(), Err(BarrierError::Pinned));
/// drop(guard);
/// assert_eq!(pool.rcu_barrier(), Ok(()));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// The caller is pinned, and would wait for itself.
    #[error("the thread is pinned and would wait for itself; drop its guards first")]
    Pinned,
    /// The caller is a destructor of a retired object, for whose end it would wait.
    #[error("a destructor of a retired object would wait for its own end; wait elsewhere")]
    Reaping,
    /// This is a forked child. A thread of its parent that was pinned stays so in it for ever.
    #[error("a forked child cannot wait for readers that only its parent has")]
    Forked,
    /// The system has come to forbid `membarrier`, without which other threads' sheaves cannot be handed in.
    #[error("the system forbids membarrier, so other threads' sheaves cannot be handed in")]
    Forbidden,
}
