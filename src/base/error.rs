//! What can go wrong, one type for each failure; the caller's value comes back.
#![forbid(unsafe_code)]

use core::fmt;

use crate::sync::Arc;

/// Why an allocation failed.
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
    pool: Arc<str>,
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
    pub(crate) fn new(kind: AllocErrorKind, pool: &Arc<str>) -> Self {
        Self {
            kind,
            pool: Arc::clone(pool),
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
#[derive(Clone, thiserror::Error)]
#[error(
    "the pool is in use: {live} live objects, {prefilled} prefilled slots, {handles} handles and sheaves besides this one"
)]
pub struct Busy<P> {
    live: usize,
    prefilled: usize,
    handles: usize,
    pool: P,
}

impl<P> Busy<P> {
    pub(crate) fn new(pool: P, live: usize, prefilled: usize, handles: usize) -> Self {
        Self {
            live,
            prefilled,
            handles,
            pool,
        }
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

/// A pool cannot be built as asked: one variant for each impossible option, with the value and its bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name is empty, too long, or holds white space or control characters.
    #[error(
        "pool name {name:?} must have 1 to {max} bytes and no white space or control characters"
    )]
    Name {
        /// The name.
        name: String,
        /// Its greatest length in bytes.
        max: usize,
    },
    /// No order holds one object.
    #[error("objects of {size} bytes are too large: a slab of the largest order holds {max}")]
    ObjectTooLarge {
        /// Bytes of the object.
        size: usize,
        /// Bytes of the largest that fits.
        max: usize,
    },
    /// The order does not exist.
    #[error("order {order} is too large: the largest is {max}")]
    OrderTooLarge {
        /// The order asked for.
        order: u8,
        /// The largest there is.
        max: u8,
    },
    /// The order cannot hold one object.
    #[error(
        "order {order} is too small for objects of {size} bytes: the smallest that holds one is {min}"
    )]
    OrderTooSmall {
        /// The order asked for.
        order: u8,
        /// The smallest that holds one object.
        min: u8,
        /// Bytes of the object.
        size: usize,
    },
    /// The alignment is not a power of two.
    #[error("alignment {align} is not a power of two")]
    AlignNotPowerOfTwo {
        /// The alignment asked for.
        align: usize,
    },
    /// The alignment, asked for or of the type itself, is too large.
    #[error("alignment {align} is too large: the largest is {max}")]
    AlignTooLarge {
        /// The alignment.
        align: usize,
        /// The largest there is.
        max: usize,
    },
    /// The sheaf capacity is too large.
    #[error("sheaf capacity {value} is too large: the largest is {max}")]
    SheafCapacity {
        /// The capacity asked for.
        value: usize,
        /// The largest there is.
        max: usize,
    },
    /// A limit of the barn is too large.
    #[error("a barn of {value} {which} sheaves is too large: the largest is {max}")]
    Barn {
        /// `full` or `empty`.
        which: &'static str,
        /// The number asked for.
        value: usize,
        /// The largest there is.
        max: usize,
    },
    /// `min_partial` is too large.
    #[error("min_partial {value} is too large: the largest is {max}")]
    MinPartial {
        /// The number asked for.
        value: usize,
        /// The largest there is.
        max: usize,
    },
    /// The limit allows no object.
    #[error("a limit of {value} objects is too small: the smallest is {min}")]
    Limit {
        /// The limit asked for.
        value: usize,
        /// The smallest there is.
        min: usize,
    },
    /// More is to be reserved than the address space holds.
    #[error("a reserve of {value} objects is too large: the largest is {max}")]
    ReserveTooLarge {
        /// The reserve asked for.
        value: usize,
        /// The largest there is.
        max: usize,
    },
    /// More is to be reserved than may ever be used.
    #[error("a reserve of {value} objects exceeds the limit of {limit}")]
    Reserve {
        /// The reserve asked for.
        value: usize,
        /// The pool's limit.
        limit: usize,
    },
    /// Memory for the pool or its reserve could not be had.
    #[error("no memory for pool `{pool}`: {what}")]
    OutOfMemory {
        /// The pool.
        pool: String,
        /// What could not be had.
        what: &'static str,
    },
    /// Every pool id has been used; ids are never used twice in a process.
    #[error("no pool id is left: a process can build {max} pools in its life")]
    Ids {
        /// Pools a process can build.
        max: u32,
    },
}
