//! The configuration of a pool.
#![forbid(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use super::Pool;
use crate::base::config::{Align, Options, Order};
use crate::base::error::BuildError;
use crate::base::flags::DebugFlags;
use crate::base::topology::Topology;
use crate::cache::Handle;
use crate::hook::environment::{debug_flags, fault};
use crate::hook::event;
use crate::hook::fault::Fault;
use crate::hook::shadow;
use crate::page::{PageSource, Source, default_source};
use crate::registry::read_environment;
use crate::slab::{Destructor, Nature};
use crate::sync::Arc;

/// Configures a pool; [`Pool::builder`] starts one.
///
/// Nothing is checked before [`Builder::build`], which names the first option that cannot be.
///
/// ```
/// use sheaves::{Align, Order, Pool};
///
/// let pool: Pool<[u8; 240]> = Pool::builder("io_kiocb")
///     .order(Order::LARGE)
///     .align(Align::CACHE_LINE)
///     .sheaf_capacity(256)
///     .limit(100_000)
///     .build()?;
/// assert_eq!(pool.config().stride(), 256);
///
/// let kept: Pool<[u8; 64]> = Pool::builder("keys")
///     .barn(64, 64) // sheaves for producers and consumers that are far apart
///     .min_partial(2)
///     .reserve(1_000) // memory that is had now, and kept
///     .populate_reserve()
///     .zero_on_free() // no owner sees what an earlier one left
///     .strict_layout() // no collections
///     .build()?;
/// assert!(kept.stats().slots >= 1_000);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T> {
    options: Options,
    source: Option<Source>,
    fault: Option<Fault>,
    topology: Option<Topology>,
    _type: PhantomData<fn(T) -> T>,
}

impl<T> Builder<T> {
    pub(super) fn new(name: &str) -> Self {
        Self {
            options: Options::new(name),
            source: None,
            fault: None,
            topology: None,
            _type: PhantomData,
        }
    }

    /// Pools of the nodes that a test makes up.
    pub(super) fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    fn with(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self.options);
        self
    }

    /// The page order of slabs. Default: [`Order::AUTO`].
    #[doc(alias = "SLAB_LARGE_ORDER")]
    pub fn order(self, order: Order) -> Self {
        self.with(|options| options.order = order)
    }

    /// The alignment of slots, if more than the type's own. Default: [`Align::NATURAL`].
    #[doc(alias = "SLAB_HWCACHE_ALIGN")]
    pub fn align(self, align: Align) -> Self {
        self.with(|options| options.align = align)
    }

    /// Slots in a sheaf, at most 32,768. A thread keeps up to two sheaves. With 0 it keeps none, and every
    /// operation takes a lock. Default: as many as 64 KiB have room for, from 4 to 128.
    pub fn sheaf_capacity(self, slots: usize) -> Self {
        self.with(|options| options.sheaf_capacity = Some(slots))
    }

    /// Full and empty sheaves that a barn keeps for all threads of a NUMA node, at most 64 each. Default: 10 and 10.
    pub fn barn(self, full: usize, empty: usize) -> Self {
        self.with(|options| options.barn = (full, empty))
    }

    /// Partial slabs of a NUMA node, empty ones included, up to which an emptied slab is kept, at most 65,536. Default:
    /// 5 to 10, by the size of a slot.
    pub fn min_partial(self, slabs: usize) -> Self {
        self.with(|options| options.min_partial = Some(slabs))
    }

    /// The most objects that may be live or prefilled at once. Default: no limit.
    ///
    /// It counts objects in slots of their own, not those in arrays and tables of collections: those are bounded
    /// in bytes, by a source such as [`Metered`](crate::Metered).
    pub fn limit(self, objects: usize) -> Self {
        self.with(|options| options.limit = Some(objects))
    }

    /// Objects for which slabs are made by [`Builder::build`] and kept through [`Pool::shrink`]. Default: 0.
    #[doc(alias = "mempool_create")]
    pub fn reserve(self, objects: usize) -> Self {
        self.with(|options| options.reserve = objects)
    }

    /// Makes the memory of the reserve resident when the pool is built, so that first use of it does not fault.
    pub fn populate_reserve(self) -> Self {
        self.with(|options| options.populate_reserve = true)
    }

    /// Where slabs' memory comes from. Default: [`Mmap`](crate::Mmap) on unix, [`Heap`](crate::Heap)
    /// elsewhere.
    pub fn source(mut self, source: impl PageSource) -> Self {
        self.source = Some(Source(Arc::new(source)));
        self
    }

    /// Debugging; see [`DebugFlags`]. Default: none.
    #[doc(alias = "slab_debug")]
    pub fn debug(self, flags: DebugFlags) -> Self {
        self.with(|options| options.debug = flags)
    }

    /// Makes allocations of the pool fail; see [`Fault`]. Default: none. The reserve is not touched by it.
    #[doc(alias = "failslab")]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Overwrites slots with zeros when they are freed, so that no later owner sees what an earlier one left.
    /// Every free then takes the slow path.
    #[doc(alias = "init_on_free")]
    pub fn zero_on_free(self) -> Self {
        self.with(|options| options.zero_on_free = true)
    }

    /// Makes the allocator traits refuse every layout but that of one `T`.
    pub fn strict_layout(self) -> Self {
        self.with(|options| options.strict_layout = true)
    }

    /// How long a [retired](crate::PoolBox::retire) object may wait for its sheaf to fill before it is handed in. Default:
    /// one second. Counted in milliseconds.
    ///
    /// Longer makes larger batches where few objects are retired; shorter bounds the memory that they hold.
    #[cfg(feature = "rcu")]
    pub fn drain_interval(self, interval: core::time::Duration) -> Self {
        self.with(|options| options.drain_interval = interval)
    }

    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the first option that cannot be, with its value and bound, or memory that
    /// cannot be had.
    ///
    /// ```
    /// use sheaves::{BuildError, Order, Pool};
    ///
    /// let error = Pool::<u64>::builder("big").order(Order::new(12)).build().unwrap_err();
    /// assert_eq!(error, BuildError::OrderTooLarge { order: 12, max: 9 });
    /// ```
    pub fn build(self) -> Result<Pool<T>, BuildError> {
        self.build_with(false)
    }

    /// Builds the pool, of objects that readers may see while they are free if it is `stable`.
    pub(super) fn build_with(mut self, stable: bool) -> Result<Pool<T>, BuildError> {
        read_environment();
        self.options.debug = debug_flags(&self.options.name, self.options.debug);
        if stable {
            // Nothing but its owner may write to a slot that readers see.
            self.options.zero_on_free = false;
            let unseen = if shadow::WATCHED {
                self.options.debug
            } else {
                DebugFlags::POISON
            };
            self.options.debug = self.options.debug.without(unseen);
        }
        let config = self.options.resolve(size_of::<T>(), align_of::<T>())?;
        let source = self.source.unwrap_or_else(|| Source(default_source()));
        let fault = self.fault.or_else(|| fault(config.name(), config.debug()));
        let topology = self.topology.unwrap_or_else(Topology::system);
        let nature = Nature {
            destructor: Destructor::of::<T>(),
            stable,
        };
        let handle = Handle::build(config, nature, source, topology)?;
        let config = handle.cache().config();
        event::built(config.name(), config.stride(), config.order());
        if fault.is_some() {
            handle.cache().set_fault(fault);
        }
        Ok(Pool::from_handle(handle))
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
