//! What a pool may be told, with the bounds and the automatic choices.
#![forbid(unsafe_code)]

use core::time::Duration;

pub use super::choice::{Align, Order};

use super::error::BuildError;
use super::flags::DebugFlags;
use super::layout::{Geometry, PAGE_SIZE};
use super::order::min_partial;
use crate::base::name::Name;

/// Slots a sheaf may be asked to hold. Beyond it a sheaf is no longer a cache but a second pool.
pub(crate) const MAX_SHEAF_CAPACITY: usize = 1 << 15;

/// Full, and empty, sheaves a barn may be asked to keep; the kernel keeps ten of each.
pub(crate) const MAX_BARN: usize = 64;

/// Partial slabs up to which a pool may be asked to keep empty ones.
pub(crate) const MAX_MIN_PARTIAL: usize = 1 << 16;

/// Bytes of a reserve: half of the address space, of which no machine has as much.
pub(crate) const MAX_RESERVE: usize = 1 << 46;

/// Bytes of a pool's name: a line of slabinfo must stay readable.
pub(crate) const MAX_NAME: usize = 64;

/// Bytes of a red zone at least: a word, the commonest overrun.
const GUARD: usize = 8;

/// Full and empty sheaves kept by a barn that was not told otherwise, as in the kernel.
pub(crate) const DEFAULT_BARN: usize = if cfg!(sheaves_small) { 2 } else { 10 };

/// How long a retired object of a pool that was not told otherwise may wait for its sheaf to fill. Long enough for
/// sheaves to fill at hundreds of retirements a second; the kernel went from a fiftieth of a second to five of them.
pub(crate) const DEFAULT_DRAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Slots of a sheaf that was not told its capacity: a page of memory, so that what a thread parks is bounded in bytes.
pub(crate) const fn auto_sheaf_capacity(stride: usize) -> usize {
    // Under fuzzers and sanitizers a few slots, so that short runs come to every edge.
    if cfg!(sheaves_small) {
        return match stride {
            4096.. => 1,
            1024.. => 2,
            256.. => 3,
            _ => 4,
        };
    }
    let page = PAGE_SIZE / stride;
    if page < SHEAF_LEAST {
        SHEAF_LEAST
    } else if page > SHEAF_MOST {
        SHEAF_MOST
    } else {
        page
    }
}

/// Slots of the smallest sheaf that nobody asked for: the kernel's, for its largest objects.
const SHEAF_LEAST: usize = 4;

/// Slots of the largest, whose array is 1 KiB: with more, a pool with one object would take more than 8 KiB. The kernel's
/// has 60. A trade at the barn costs what twenty objects do, so that it hardly shows from here on.
const SHEAF_MOST: usize = 128;

/// What was asked of a pool, before it is checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: Name,
    pub(crate) order: Order,
    pub(crate) align: Align,
    pub(crate) sheaf_capacity: Option<usize>,
    pub(crate) barn: (usize, usize),
    pub(crate) min_partial: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) reserve: usize,
    pub(crate) populate_reserve: bool,
    pub(crate) debug: DebugFlags,
    pub(crate) zero_on_free: bool,
    pub(crate) strict_layout: bool,
    pub(crate) drain_interval: Duration,
}

impl Options {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: Name::new(name),
            order: Order::AUTO,
            align: Align::NATURAL,
            sheaf_capacity: None,
            barn: (DEFAULT_BARN, DEFAULT_BARN),
            min_partial: None,
            limit: None,
            reserve: 0,
            populate_reserve: false,
            debug: DebugFlags::NONE,
            zero_on_free: false,
            strict_layout: false,
            drain_interval: DEFAULT_DRAIN_INTERVAL,
        }
    }

    /// Checks every option against its bounds and makes the automatic choices.
    pub(crate) fn resolve(self, size: usize, natural: usize) -> Result<Config, BuildError> {
        check_name(&self.name)?;
        let align = self.align.resolve(size, natural)?;
        let max = Geometry::largest(align);
        if size > max {
            return Err(BuildError::ObjectTooLarge { size, max });
        }
        let (geometry, order, debug) = self.debugged_layout(size, align)?;
        let capacity = self
            .sheaf_capacity
            .unwrap_or(auto_sheaf_capacity(geometry.stride));
        at_most(capacity, MAX_SHEAF_CAPACITY, |value, max| {
            BuildError::SheafCapacity { value, max }
        })?;
        let (full, empty) = self.barn;
        at_most(full, MAX_BARN, |value, max| BuildError::Barn {
            which: "full",
            value,
            max,
        })?;
        at_most(empty, MAX_BARN, |value, max| BuildError::Barn {
            which: "empty",
            value,
            max,
        })?;
        let min_partial = self.min_partial.unwrap_or(min_partial(geometry.stride));
        at_most(min_partial, MAX_MIN_PARTIAL, |value, max| {
            BuildError::MinPartial { value, max }
        })?;
        let limit = self.limit.unwrap_or(usize::MAX);
        if limit == 0 {
            return Err(BuildError::Limit { value: 0, min: 1 });
        }
        let most = MAX_RESERVE / geometry.stride;
        at_most(self.reserve, most, |value, max| {
            BuildError::ReserveTooLarge { value, max }
        })?;
        at_most(self.reserve, limit, |value, limit| BuildError::Reserve {
            value,
            limit,
        })?;
        Ok(Config {
            name: self.name,
            geometry,
            order,
            huge: self.order == Order::LARGE,
            sheaf_capacity: if debug.is_empty() { capacity } else { 0 },
            barn: self.barn,
            min_partial,
            limit,
            reserve: self.reserve,
            populate_reserve: self.populate_reserve,
            debug,
            zero_on_free: self.zero_on_free,
            strict_layout: self.strict_layout,
            drain_interval: self.drain_interval,
        })
    }
}

impl Options {
    /// The layout with guard bytes if they are asked for; without where they do not fit, since debugging must
    /// not keep a program from running.
    fn debugged_layout(
        &self,
        size: usize,
        align: usize,
    ) -> Result<(Geometry, u8, DebugFlags), BuildError> {
        if self.debug.contains(DebugFlags::RED_ZONE) {
            let geometry = Geometry::with_guards(size, align, GUARD);
            if let Ok(order) = self.order.resolve(&geometry) {
                if geometry.slots_of(order) > 0 {
                    return Ok((geometry, order, self.debug));
                }
            }
        }
        let geometry = Geometry::new(size, align);
        let order = self.order.resolve(&geometry)?;
        Ok((geometry, order, self.debug.without(DebugFlags::RED_ZONE)))
    }
}

fn at_most(
    value: usize,
    max: usize,
    error: impl FnOnce(usize, usize) -> BuildError,
) -> Result<(), BuildError> {
    if value > max {
        Err(error(value, max))
    } else {
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), BuildError> {
    let fits = !name.is_empty() && name.len() <= MAX_NAME;
    if fits && !name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Ok(());
    }
    Err(BuildError::Name {
        name: name.into(),
        max: MAX_NAME,
    })
}

/// What a pool was built with: the checked options and the automatic choices.
///
/// ```
/// let pool: sheaves::Pool<[u8; 240]> = sheaves::Pool::new("requests");
/// let config = pool.config();
/// assert_eq!((config.stride(), config.sheaf_capacity()), (240, 128));
/// assert_eq!((config.barn(), config.limit()), ((10, 10), None));
/// assert!(config.min_partial() >= 5 && !config.zero_on_free() && !config.strict_layout());
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) name: Name,
    pub(crate) geometry: Geometry,
    pub(crate) order: u8,
    pub(crate) huge: bool,
    pub(crate) sheaf_capacity: usize,
    pub(crate) barn: (usize, usize),
    pub(crate) min_partial: usize,
    pub(crate) limit: usize,
    pub(crate) reserve: usize,
    pub(crate) populate_reserve: bool,
    pub(crate) debug: DebugFlags,
    pub(crate) zero_on_free: bool,
    pub(crate) strict_layout: bool,
    #[cfg_attr(
        not(feature = "rcu"),
        expect(dead_code, reason = "read by deferred free")
    )]
    pub(crate) drain_interval: Duration,
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
    #[doc(alias = "kmem_cache_size")]
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

    /// Partial slabs, empty ones included, up to which an emptied slab is kept.
    pub fn min_partial(&self) -> usize {
        self.min_partial
    }

    /// The most slots that may be live or prefilled at once, if that is bounded.
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

    /// How long a retired object may wait for its sheaf to fill.
    ///
    /// ```
    /// use core::time::Duration;
    ///
    /// let builder = sheaves::Pool::<u64>::builder("quick").drain_interval(Duration::from_millis(10));
    /// assert_eq!(builder.build()?.config().drain_interval(), Duration::from_millis(10));
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
    #[cfg(feature = "rcu")]
    pub fn drain_interval(&self) -> Duration {
        self.drain_interval
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
    #[cfg_attr(sheaves_small, ignore = "capacities are small in this build")]
    fn automatic_capacities_are_a_page_of_objects() {
        let sizes = [1, 240, 256, 264, 1024, 1032, 4096, 16_384, 1 << 20];
        assert_eq!(
            sizes.map(auto_sheaf_capacity),
            [128, 128, 128, 128, 64, 63, 16, 4, 4]
        );
    }
}
