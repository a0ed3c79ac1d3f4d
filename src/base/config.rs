//! What a pool may be told, with the bounds and the automatic choices.
#![forbid(unsafe_code)]

use super::error::BuildError;
use super::flags::DebugFlags;
use super::layout::{Geometry, MAX_ALIGN, MAX_ORDER};
use super::order::{calculate_order, min_partial};
use crate::sync::Arc;

/// Slots a sheaf may be asked to hold. Beyond it a sheaf is no longer a cache but a second pool.
pub(crate) const MAX_SHEAF_CAPACITY: usize = 1 << 15;

/// Full, and empty, sheaves a barn may be asked to keep; the kernel keeps ten of each.
pub(crate) const MAX_BARN: usize = 64;

/// Empty slabs a pool may be asked to keep.
pub(crate) const MAX_MIN_PARTIAL: usize = 1 << 16;

/// Bytes of a pool's name: a line of slabinfo must stay readable.
pub(crate) const MAX_NAME: usize = 64;

/// Full and empty sheaves kept by a barn that was not told otherwise, as in the kernel.
pub(crate) const DEFAULT_BARN: usize = 10;

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
        let Some(min) = geometry.min_order() else {
            let max = (crate::base::layout::PAGE_SIZE << MAX_ORDER) - geometry.first;
            return Err(BuildError::ObjectTooLarge { size: geometry.size, max });
        };
        match self.0 {
            OrderChoice::Auto => Ok(calculate_order(geometry, processors()).unwrap_or(min)),
            OrderChoice::Exactly(order) if order > MAX_ORDER => {
                Err(BuildError::OrderTooLarge { order, max: MAX_ORDER })
            }
            OrderChoice::Exactly(order) if order < min => {
                Err(BuildError::OrderTooSmall { order, min, size: geometry.size })
            }
            OrderChoice::Exactly(order) => Ok(order),
        }
    }
}

/// The alignment of a pool's slots, where it is to exceed the type's own.
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
            return Err(BuildError::AlignTooLarge { align: asked, max: MAX_ALIGN });
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

/// Slots of a sheaf that was not told its capacity: the kernel's choice by the size of a slot.
pub(crate) const fn auto_sheaf_capacity(stride: usize) -> usize {
    match stride {
        4096.. => 4,
        1024.. => 12,
        256.. => 28,
        _ => 60,
    }
}

/// What was asked of a pool, before it is checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: Arc<str>,
    pub(crate) order: Order,
    pub(crate) align: Align,
    pub(crate) sheaf_capacity: Option<usize>,
    pub(crate) barn: (usize, usize),
    pub(crate) min_partial: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) reserve: usize,
    pub(crate) debug: DebugFlags,
    pub(crate) zero_on_free: bool,
    pub(crate) strict_layout: bool,
}

impl Options {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            order: Order::AUTO,
            align: Align::NATURAL,
            sheaf_capacity: None,
            barn: (DEFAULT_BARN, DEFAULT_BARN),
            min_partial: None,
            limit: None,
            reserve: 0,
            debug: DebugFlags::NONE,
            zero_on_free: false,
            strict_layout: false,
        }
    }

    /// Checks every option against its bounds and makes the automatic choices.
    pub(crate) fn resolve(self, size: usize, natural: usize) -> Result<Config, BuildError> {
        check_name(&self.name)?;
        let align = self.align.resolve(size, natural)?;
        // Bounds the arithmetic below; the exact bound is the order's.
        let ceiling = crate::base::layout::PAGE_SIZE << MAX_ORDER;
        if size > ceiling {
            return Err(BuildError::ObjectTooLarge { size, max: ceiling - MAX_ALIGN });
        }
        let geometry = Geometry::new(size, align);
        let order = self.order.resolve(&geometry)?;
        let capacity = self.sheaf_capacity.unwrap_or(auto_sheaf_capacity(geometry.stride));
        at_most(capacity, MAX_SHEAF_CAPACITY, |value, max| BuildError::SheafCapacity { value, max })?;
        let (full, empty) = self.barn;
        at_most(full, MAX_BARN, |value, max| BuildError::Barn { which: "full", value, max })?;
        at_most(empty, MAX_BARN, |value, max| BuildError::Barn { which: "empty", value, max })?;
        let min_partial = self.min_partial.unwrap_or(min_partial(geometry.stride));
        at_most(min_partial, MAX_MIN_PARTIAL, |value, max| BuildError::MinPartial { value, max })?;
        let limit = self.limit.unwrap_or(usize::MAX);
        if limit == 0 {
            return Err(BuildError::Limit { value: 0, min: 1 });
        }
        at_most(self.reserve, limit, |value, limit| BuildError::Reserve { value, limit })?;
        Ok(Config {
            name: self.name,
            geometry,
            order,
            huge: self.order == Order::LARGE,
            sheaf_capacity: if self.debug.is_empty() { capacity } else { 0 },
            barn: self.barn,
            min_partial,
            limit,
            reserve: self.reserve,
            debug: self.debug,
            zero_on_free: self.zero_on_free,
            strict_layout: self.strict_layout,
        })
    }
}

fn at_most(
    value: usize,
    max: usize,
    error: impl FnOnce(usize, usize) -> BuildError,
) -> Result<(), BuildError> {
    if value > max { Err(error(value, max)) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), BuildError> {
    let fits = !name.is_empty() && name.len() <= MAX_NAME;
    if fits && !name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Ok(());
    }
    Err(BuildError::Name { name: name.into(), max: MAX_NAME })
}

/// Processors this process may run on.
fn processors() -> usize {
    static PROCESSORS: crate::sync::OnceLock<usize> = crate::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// What a pool was built with: the checked options and the automatic choices.
///
/// ```
/// let pool: sheaves::Pool<[u8; 240]> = sheaves::Pool::new("requests");
/// let config = pool.config();
/// assert_eq!((config.stride(), config.sheaf_capacity()), (240, 60));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) name: Arc<str>,
    pub(crate) geometry: Geometry,
    pub(crate) order: u8,
    pub(crate) huge: bool,
    pub(crate) sheaf_capacity: usize,
    pub(crate) barn: (usize, usize),
    pub(crate) min_partial: usize,
    pub(crate) limit: usize,
    pub(crate) reserve: usize,
    pub(crate) debug: DebugFlags,
    pub(crate) zero_on_free: bool,
    pub(crate) strict_layout: bool,
}

impl Config {
    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The page order of its slabs: `64 KiB << order` bytes each.
    pub fn order(&self) -> u8 {
        self.order
    }

    /// The alignment of its slots in bytes.
    pub fn align(&self) -> usize {
        self.geometry.align
    }

    /// Bytes from one slot to the next.
    pub fn stride(&self) -> usize {
        self.geometry.stride
    }

    /// Slots in a slab.
    pub fn slots_per_slab(&self) -> usize {
        self.geometry.slots_of(self.order)
    }

    /// Slots in a sheaf; 0 when threads keep no sheaves.
    pub fn sheaf_capacity(&self) -> usize {
        self.sheaf_capacity
    }

    /// Full and empty sheaves a barn keeps at most.
    pub fn barn(&self) -> (usize, usize) {
        self.barn
    }

    /// Slabs below which an emptied one is kept.
    pub fn min_partial(&self) -> usize {
        self.min_partial
    }

    /// The most slots that may be live, prefilled or retired at once, if that is bounded.
    pub fn limit(&self) -> Option<usize> {
        (self.limit != usize::MAX).then_some(self.limit)
    }

    /// Slots whose slabs are kept through [`Pool::shrink`](crate::Pool::shrink).
    pub fn reserve(&self) -> usize {
        self.reserve
    }

    /// Debugging that is switched on.
    pub fn debug(&self) -> DebugFlags {
        self.debug
    }

    /// Whether freed slots are overwritten with zeros.
    pub fn zero_on_free(&self) -> bool {
        self.zero_on_free
    }

    /// Whether the allocator traits serve nothing but one `T`.
    pub fn strict_layout(&self) -> bool {
        self.strict_layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_capacities_are_the_kernels() {
        let sizes = [1, 240, 255, 256, 1023, 1024, 4095, 4096, 1 << 20];
        assert_eq!(sizes.map(auto_sheaf_capacity), [60, 60, 60, 28, 28, 12, 12, 4, 4]);
    }

    #[test]
    fn a_cache_line_is_halved_for_small_objects() {
        assert_eq!([1, 16, 17, 32, 33, 64, 240].map(cache_line_align), [1, 16, 32, 32, 64, 64, 64]);
    }
}
