//! The live caches of the process, by id.
//!
//! The registry knows caches as [`CacheOps`] and holds them weakly: it keeps none alive. Ids are given in
//! rising order and never twice, so a stale id names nothing.
#![forbid(unsafe_code)]

use core::fmt;

use crate::base::config::Config;
use crate::base::error::BuildError;
use crate::hook::counter::Stats;
use crate::sheaf::Sheaf;
use crate::sync::{Arc, Lock, Weak};

/// Ids fill 31 bits: the page map needs the last one.
const MAX_ID: u32 = u32::MAX >> 1;

/// What the registry asks of a cache.
pub(crate) trait CacheOps: Send + Sync {
    fn config(&self) -> &Config;
    fn stats(&self) -> Stats;
    /// Gives back every empty slab; the bytes given back.
    fn shrink(&self) -> usize;
    /// A thread is on its way out: closes its local by `kill`, takes over what that gives, and forgets the
    /// local, which is told by its address.
    fn thread_exit(&self, local: usize, kill: &mut dyn FnMut() -> [Option<Sheaf>; 2]);
    /// Takes all locks of the cache, in their order.
    fn hold_locks(&self) -> Vec<HeldLock<'_>>;
    /// In a forked child, for all caches before any is taken over: whoever was moving slots is not there.
    fn forget_movers(&self);
    /// In a forked child: takes back what threads had parked that the child does not have.
    fn take_over_after_fork(&self);
}

/// A lock that is let go when dropped, of any kind.
pub(crate) type HeldLock<'a> = Box<dyn Held + 'a>;

/// See [`HeldLock`].
pub(crate) trait Held {}

impl<T> Held for T {}

struct Registry {
    next_id: u32,
    /// Ordered by id.
    caches: Vec<(u32, Weak<dyn CacheOps>)>,
}

static REGISTRY: Lock<Registry> = Lock::new(Registry {
    next_id: 1,
    caches: Vec::new(),
});

/// An id that no cache has had.
pub(crate) fn next_id() -> Result<u32, BuildError> {
    let mut registry = REGISTRY.lock();
    let id = registry.next_id;
    if id > MAX_ID {
        return Err(BuildError::Ids { max: MAX_ID });
    }
    registry.next_id += 1;
    Ok(id)
}

/// Enters a cache; whether there was memory for the entry.
pub(crate) fn register(id: u32, cache: Weak<dyn CacheOps>) -> bool {
    let mut registry = REGISTRY.lock();
    if registry.caches.try_reserve(1).is_err() {
        return false;
    }
    let at = registry.caches.partition_point(|(other, _)| *other < id);
    registry.caches.insert(at, (id, cache));
    true
}

/// Removes a cache that is going.
pub(crate) fn unregister(id: u32) {
    let mut registry = REGISTRY.lock();
    let Ok(at) = registry
        .caches
        .binary_search_by_key(&id, |(other, _)| *other)
    else {
        return;
    };
    let entry = registry.caches.remove(at);
    drop(registry);
    drop(entry);
}

/// The cache with this id, if it lives.
pub(crate) fn find(id: u32) -> Option<Arc<dyn CacheOps>> {
    let registry = REGISTRY.lock();
    let at = registry
        .caches
        .binary_search_by_key(&id, |(other, _)| *other)
        .ok()?;
    registry.caches[at].1.upgrade()
}

/// Locks the registry; with it every live cache.
pub(crate) fn hold() -> (HeldLock<'static>, Vec<Arc<dyn CacheOps>>) {
    let registry = REGISTRY.lock();
    let caches = registry
        .caches
        .iter()
        .filter_map(|(_, cache)| cache.upgrade())
        .collect();
    (Box::new(registry), caches)
}

/// Every live cache, to be used outside the registry's lock.
fn all() -> Vec<Arc<dyn CacheOps>> {
    let registry = REGISTRY.lock();
    let live = registry
        .caches
        .iter()
        .map(|(_, cache)| cache.upgrade())
        .collect::<Vec<_>>();
    drop(registry);
    live.into_iter().flatten().collect()
}

/// Shrinks every pool of the process; the bytes given back.
///
/// Takes locks and calls page sources; not for real-time code.
///
/// ```
/// let pool: sheaves::Pool<[u8; 100]> = sheaves::Pool::new("buffers");
/// drop(pool.alloc([0; 100]));
/// sheaves::shrink();
/// assert_eq!(pool.stats().bytes, 0);
/// ```
pub fn shrink() -> usize {
    all().iter().map(|cache| cache.shrink()).sum()
}

/// One line of [`slabinfo`]: a pool, its configuration and its [`Stats`].
///
/// `Display` prints the columns of the kernel's `/proc/slabinfo` 2.1.
#[derive(Clone, Debug)]
pub struct PoolInfo {
    config: Config,
    stats: Stats,
}

impl PoolInfo {
    pub(crate) fn new(config: &Config, stats: Stats) -> Self {
        Self {
            config: config.clone(),
            stats,
        }
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        self.config.name()
    }

    /// What it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it holds and has done.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl fmt::Display for PoolInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, stats } = self;
        let active = stats.slots - stats.free;
        write!(
            f,
            "{:<17} {active:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {:>6} {:>6} {:>6}",
            config.name(),
            stats.slots,
            config.stride(),
            config.slots_per_slab(),
            1_u64 << config.order(),
            0,
            0,
            0,
            stats.slabs,
            stats.slabs,
            0,
        )
    }
}

/// Every pool of the process, in the order in which they were built.
///
/// ```
/// let pool: sheaves::Pool<u64> = sheaves::Pool::new("listed");
/// assert!(sheaves::pools().iter().any(|info| info.name() == "listed"));
/// # drop(pool);
/// ```
pub fn pools() -> Vec<PoolInfo> {
    all()
        .iter()
        .map(|cache| PoolInfo::new(cache.config(), cache.stats()))
        .collect()
}

/// What every pool of the process holds, as the kernel's `/proc/slabinfo` would show it.
///
/// As there, objects in sheaves and barns count as active: [`PoolInfo::stats`] tells them apart.
///
/// ```
/// let pool: sheaves::Pool<[u8; 240]> = sheaves::Pool::new("io_kiocb");
/// # let kept = pool.alloc([0; 240]);
/// println!("{}", sheaves::slabinfo());
/// assert!(sheaves::slabinfo().to_string().contains("io_kiocb"));
/// ```
#[derive(Clone, Debug)]
pub struct SlabInfo(Vec<PoolInfo>);

/// Takes a snapshot of every pool; takes their locks one after the other.
#[doc(alias = "/proc/slabinfo")]
pub fn slabinfo() -> SlabInfo {
    SlabInfo(pools())
}

impl SlabInfo {
    /// A line for each pool.
    pub fn iter(&self) -> impl Iterator<Item = &PoolInfo> {
        self.0.iter()
    }
}

impl fmt::Display for SlabInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "slabinfo - version: 2.1")?;
        writeln!(
            f,
            "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>"
        )?;
        self.0.iter().try_for_each(|pool| writeln!(f, "{pool}"))
    }
}
