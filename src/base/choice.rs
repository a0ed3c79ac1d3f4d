//! Page order and alignment, as they are asked for.
#![forbid(unsafe_code)]

use super::error::BuildError;
use super::layout::{Geometry, MAX_ALIGN, MAX_ORDER};
use super::order::calculate_order;

/// Bytes of a cache line on the machines this is tuned for.
const CACHE_LINE: usize = 64;

/// The page order of a pool's slabs: a slab is `64 KiB << order`.
///
/// ```
/// use sheaves::{Order, Pool};
///
/// let pool: Pool<[u64; 30]> = Pool::builder("records").order(Order::LARGE).build()?;
/// assert_eq!(pool.config().order(), 5);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Order(OrderChoice);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
enum OrderChoice {
    #[default]
    Auto,
    Exactly(u8),
}

impl Order {
    /// The smallest order that holds enough objects for this machine's processors and wastes little: the
    /// kernel's rule with this crate's slots. The default.
    pub const AUTO: Self = Self(OrderChoice::Auto);

    /// 2 MiB, one huge page, with transparent huge pages asked for. What the kernel's io_uring developers
    /// discussed as `SLAB_LARGE_ORDER`: fewer trips to the page source, fewer TLB misses, more memory held
    /// by a pool that is almost empty.
    #[doc(alias = "SLAB_LARGE_ORDER")]
    pub const LARGE: Self = Self(OrderChoice::Exactly(5));

    /// The largest order: 32 MiB.
    pub const MAX: Self = Self(OrderChoice::Exactly(MAX_ORDER));

    /// Slabs of `64 KiB << order`. An order above [`Order::MAX`] is refused by
    /// [`Builder::build`](crate::Builder::build).
    pub const fn new(order: u8) -> Self {
        Self(OrderChoice::Exactly(order))
    }

    pub(crate) fn resolve(self, geometry: &Geometry) -> Result<u8, BuildError> {
        let min = geometry.min_order().unwrap_or(MAX_ORDER);
        match self.0 {
            OrderChoice::Auto => Ok(calculate_order(geometry, processors()).unwrap_or(min)),
            OrderChoice::Exactly(order) if order > MAX_ORDER => Err(BuildError::OrderTooLarge {
                order,
                max: MAX_ORDER,
            }),
            OrderChoice::Exactly(order) if order < min => Err(BuildError::OrderTooSmall {
                order,
                min,
                size: geometry.size,
            }),
            OrderChoice::Exactly(order) => Ok(order),
        }
    }
}

/// The alignment of a pool's slots, where it is to exceed the type's own.
///
/// ```
/// use sheaves::{Align, Pool};
///
/// let pool: Pool<[u8; 40]> = Pool::builder("padded").align(Align::CACHE_LINE).build()?;
/// assert_eq!((pool.config().align(), pool.config().stride()), (64, 64));
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Align(AlignChoice);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
enum AlignChoice {
    #[default]
    Natural,
    CacheLine,
    AtLeast(usize),
}

impl Align {
    /// The type's own alignment. The default.
    pub const NATURAL: Self = Self(AlignChoice::Natural);

    /// Slots start on cache lines, so that two objects never share one; for small objects, on the half or
    /// quarter line that still holds one, so that none straddles two.
    #[doc(alias = "SLAB_HWCACHE_ALIGN")]
    pub const CACHE_LINE: Self = Self(AlignChoice::CacheLine);

    /// Slots start at multiples of `bytes`, or of the type's alignment if that is larger. A value that is not
    /// a power of two or exceeds 32 KiB is refused by [`Builder::build`](crate::Builder::build).
    pub const fn new(bytes: usize) -> Self {
        Self(AlignChoice::AtLeast(bytes))
    }

    pub(crate) fn resolve(self, size: usize, natural: usize) -> Result<usize, BuildError> {
        let asked = match self.0 {
            AlignChoice::Natural => natural,
            AlignChoice::CacheLine => cache_line_align(size).max(natural),
            AlignChoice::AtLeast(bytes) if !bytes.is_power_of_two() => {
                return Err(BuildError::AlignNotPowerOfTwo { align: bytes });
            }
            AlignChoice::AtLeast(bytes) => bytes.max(natural),
        };
        if asked > MAX_ALIGN {
            return Err(BuildError::AlignTooLarge {
                align: asked,
                max: MAX_ALIGN,
            });
        }
        Ok(asked)
    }
}

/// A cache line, halved while the object fits in half of it.
const fn cache_line_align(size: usize) -> usize {
    let mut align = CACHE_LINE;
    while align > 1 && size <= align / 2 {
        align /= 2;
    }
    align
}

/// Processors this process may run on.
fn processors() -> usize {
    static PROCESSORS: crate::sync::OnceLock<usize> = crate::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_line_is_halved_for_small_objects() {
        assert_eq!(
            [1, 16, 17, 32, 33, 64, 240].map(cache_line_align),
            [1, 16, 32, 32, 64, 64, 64]
        );
    }
}
