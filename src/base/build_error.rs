//! Why a pool cannot be built: one variant for each impossible option.
#![forbid(unsafe_code)]

/// A pool cannot be built as asked: one variant for each impossible option, with the value and its bound.
///
/// ```
/// use sheaves::{BuildError, Pool};
///
/// let error = Pool::<u64>::builder("none").limit(0).build().unwrap_err();
/// assert_eq!(error, BuildError::Limit { value: 0, min: 1 });
/// assert_eq!(error.to_string(), "a limit of 0 objects is too small: the smallest is 1");
/// ```
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
