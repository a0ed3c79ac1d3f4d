//! The live caches of the process, by id.
//!
//! The registry knows caches as [`CacheOps`] and holds them weakly: it keeps none alive. Ids are given in
//! rising order and never twice, so a stale id names nothing.
#![forbid(unsafe_code)]

pub(crate) mod export;
mod info;

pub use info::{PoolInfo, SlabInfo};

use crate::base::config::Config;
use crate::base::error::BuildError;
use crate::hook::counter::Stats;
use crate::hook::exit::at_exit;
use crate::hook::leaks::Leaks;
use crate::hook::report::print;
use crate::sheaf::Sheaf;
use crate::sync::{Lock, OnceLock, Shared, Weak};

/// Ids fill 31 bits: the page map needs the last one.
const MAX_ID: u32 = u32::MAX >> 1;

/// What the registry asks of a cache.
pub(crate) trait CacheOps: Send + Sync {
    fn config(&self) -> &Config;
    fn stats(&self) -> Stats;
    /// Whether this is no pool's own cache, but one of those beside it that serve other layouts.
    fn is_class(&self) -> bool;
    /// Whether no handle is left and nothing is out: only whoever has it in hand keeps it.
    fn is_over(&self) -> bool;
    /// Gives back every empty slab; the bytes given back.
    fn shrink(&self) -> usize;
    /// The live objects.
    fn leaks(&self) -> Leaks;
    /// A thread is on its way out: closes its local by `kill`, takes over what that gives, and forgets the
    /// local, which is told by its address.
    fn thread_exit(&self, local: usize, kill: &mut dyn FnMut() -> [Option<Sheaf>; 2]);
    /// Takes all locks of the cache, in their order.
    fn hold_locks(&self) -> Vec<HeldLock<'_>>;
    /// Hands in the retired objects that have waited long enough, or all of them, and reaps those that no reader sees
    /// any more.
    #[cfg(feature = "rcu")]
    fn reclaim(&self, all: bool) -> Reclaimed;
    /// Waits until what was retired before is reaped. The caller may wait for reapers.
    #[cfg(feature = "rcu")]
    fn barrier(&self) -> Result<(), crate::base::error::BarrierError>;
    /// In a forked child, for all caches before any is taken over: whoever was moving slots is not there.
    fn forget_movers(&self);
    /// In a forked child: takes back what threads had parked that the child does not have.
    fn take_over_after_fork(&self);
}

/// What came of reclaiming.
#[cfg(feature = "rcu")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reclaimed {
    /// Objects reaped.
    pub(crate) objects: usize,
    /// What the rest waits for, if anything is left.
    pub(crate) due: Option<Due>,
}

/// What retired objects wait for, the nearest first.
#[cfg(feature = "rcu")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// Nothing: some were reaped, and there may be more.
    Now,
    /// A grace period.
    Grace,
    /// Their sheaf is not full, and will be old enough after this time.
    Age(core::time::Duration),
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
pub(crate) fn find(id: u32) -> Option<Shared<dyn CacheOps>> {
    let registry = REGISTRY.lock();
    let at = registry
        .caches
        .binary_search_by_key(&id, |(other, _)| *other)
        .ok()?;
    registry.caches[at].1.upgrade()
}

/// Locks the registry; with it every live cache.
pub(crate) fn hold() -> (HeldLock<'static>, Vec<Shared<dyn CacheOps>>) {
    let registry = REGISTRY.lock();
    let caches = registry
        .caches
        .iter()
        .filter_map(|(_, cache)| cache.upgrade())
        .collect();
    (Box::new(registry), caches)
}

/// Every cache that lives now, to be used outside the registry's lock.
///
/// Only the one in hand is kept: whoever looks after one cache, which may take as long as a user's destructor does,
/// must not keep the others and their page sources from ending.
pub(crate) fn all() -> impl Iterator<Item = Shared<dyn CacheOps>> {
    let mut next = 0;
    // Not those that are built meanwhile, perhaps by what the caller does: it would never come to an end.
    let end = REGISTRY.lock().next_id;
    core::iter::from_fn(move || {
        let registry = REGISTRY.lock();
        let from = registry.caches.partition_point(|(id, _)| *id < next);
        // A share that is not handed out must not be taken: it may become the last, and the end of a cache locks the
        // registry.
        let rest = registry.caches[from..].iter();
        let mut rest = rest.take_while(|(id, _)| *id < end);
        let (id, cache) = rest.find_map(|(id, cache)| Some((*id, cache.upgrade()?)))?;
        next = id + 1;
        Some(cache)
    })
}

/// Every cache that lives now, but those that ended while somebody had them in hand.
fn open() -> impl Iterator<Item = Shared<dyn CacheOps>> {
    all().filter(|cache| !cache.is_over())
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
    all().map(|cache| cache.shrink()).sum()
}

/// Every pool of the process, in the order in which they were built. What a pool holds for other layouts than
/// its object is counted in, by [`Stats::blocks`] and [`Stats::bytes`].
///
/// ```
/// let pool: sheaves::Pool<u64> = sheaves::Pool::new("listed");
/// assert!(sheaves::pools().iter().any(|info| info.name() == "listed"));
/// # drop(pool);
/// ```
pub fn pools() -> Vec<PoolInfo> {
    let pools = open().filter(|cache| !cache.is_class());
    pools
        .map(|cache| PoolInfo::new(cache.config(), cache.stats()))
        .collect()
}

/// Takes a snapshot of every pool; takes their locks one after the other.
///
/// ```
/// let pool: sheaves::Pool<u64> = sheaves::Pool::new("listed");
/// for line in &sheaves::slabinfo() {
///     println!("{}: {} slots", line.name(), line.stats().slots);
/// }
/// # drop(pool);
/// ```
#[doc(alias = "/proc/slabinfo")]
pub fn slabinfo() -> SlabInfo {
    let lines = open().map(|cache| PoolInfo::new(cache.config(), cache.stats()));
    SlabInfo(lines.collect())
}

/// Lists what is live in any pool when the process ends: on stderr, pool by pool, grouped by the place that
/// allocated it. Objects that a static owns are listed too: nothing drops those.
///
/// The variable `SHEAVES_LEAKS`, with any value but `0`, does the same from outside.
///
/// ```
/// sheaves::report_leaks_at_exit();
/// ```
pub fn report_leaks_at_exit() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| at_exit(tell_leaks));
}

/// Does what `SHEAVES_LEAKS` asks for.
pub(crate) fn read_environment() {
    static ASKED: OnceLock<()> = OnceLock::new();
    ASKED.get_or_init(|| {
        if std::env::var_os("SHEAVES_LEAKS").is_some_and(|value| value != "0") {
            report_leaks_at_exit();
        }
    });
}

extern "C" fn tell_leaks() {
    for cache in all() {
        let leaks = cache.leaks();
        if !leaks.is_empty() {
            let pool = leaks.pool();
            print(&format_args!(
                "sheaves: pool `{pool}`: at the end of the process: {leaks}"
            ));
        }
    }
}
