//! What a pool may be told, with the bounds and the automatic choices.
#![forbid(unsafe_code)]

pub use super::choice::{Align, Order};

use super::error::BuildError;
use super::flags::DebugFlags;
use super::layout::Geometry;
use super::order::min_partial;
use crate::sync::Arc;

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

/// Full and empty sheaves kept by a barn that was not told otherwise, as in the kernel.
pub(crate) const DEFAULT_BARN: usize = 10;

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
    pub(crate) populate_reserve: bool,
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
            populate_reserve: false,
            debug: DebugFlags::NONE,
            zero_on_free: false,
            strict_layout: false,
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
        let geometry = Geometry::new(size, align);
        let order = self.order.resolve(&geometry)?;
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
            sheaf_capacity: if self.debug.is_empty() { capacity } else { 0 },
            barn: self.barn,
            min_partial,
            limit,
            reserve: self.reserve,
            populate_reserve: self.populate_reserve,
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
    pub(crate) populate_reserve: bool,
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
        assert_eq!(
            sizes.map(auto_sheaf_capacity),
            [60, 60, 60, 28, 28, 12, 12, 4, 4]
        );
    }
}
