//! What the pools of the process hold, line by line.
#![forbid(unsafe_code)]

use core::fmt;

use crate::base::config::Config;
use crate::hook::counter::Stats;

/// One line of [`slabinfo`](crate::slabinfo): a pool, its configuration and its [`Stats`].
///
/// `Display` prints the columns of the kernel's `/proc/slabinfo` 2.1.
///
/// With the feature `serde` it is serialized as an [`export::PoolSnapshot`](crate::export::PoolSnapshot).
///
/// ```
/// let pool: sheaves::Pool<[u8; 240]> = sheaves::Pool::new("shown");
/// for info in sheaves::pools().iter().filter(|info| info.name() == "shown") {
///     assert_eq!((info.config().stride(), info.stats().live), (240, 0));
/// }
/// # drop(pool);
/// ```
#[derive(Clone, Debug)]
pub struct PoolInfo {
    config: Config,
    stats: Stats,
}

impl PoolInfo {
    pub(super) fn new(config: &Config, stats: Stats) -> Self {
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

#[cfg(feature = "serde")]
impl serde::Serialize for PoolInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        super::export::PoolSnapshot::from(self).serialize(serializer)
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

/// What every pool of the process holds, as the kernel's `/proc/slabinfo` would show it.
///
/// As there, objects in sheaves and barns count as active: [`PoolInfo::stats`] tells them apart. Pools that
/// collections draw on have caches for other layouts than one object, each with a line of its own: `name-run-4`
/// for arrays of three or four objects, `name-byte-64` for other layouts of 33 to 64 bytes.
///
/// ```
/// let pool: sheaves::Pool<[u8; 240]> = sheaves::Pool::new("io_kiocb");
/// # let kept = pool.alloc([0; 240]);
/// println!("{}", sheaves::slabinfo());
/// assert!(sheaves::slabinfo().to_string().contains("io_kiocb"));
/// ```
#[must_use = "a snapshot changes nothing"]
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SlabInfo(pub(super) Vec<PoolInfo>);

impl SlabInfo {
    /// A line for each pool, and for each cache beside it.
    pub fn iter(&self) -> impl Iterator<Item = &PoolInfo> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a SlabInfo {
    type Item = &'a PoolInfo;
    type IntoIter = core::slice::Iter<'a, PoolInfo>;

    fn into_iter(self) -> Self::IntoIter {
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
