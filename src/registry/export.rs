//! Snapshots of all pools for other programs: a text file, metrics, serde.
//!
//! ```text
//! sheaves-snapshot 1 pid=4711 time_ms=1764535200000
//! pool name=io_kiocb stride=240 order=0 slots_per_slab=272 sheaf_capacity=60 limit=0 live=3 prefilled=0 ...
//! ```
//!
//! A line for each pool, of words that name what they hold; 0 is no limit. Readers skip names that they do not know,
//! and take 0 for what is missing, so that versions may differ.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{PoolInfo, pools};
use crate::hook::counter::Stats;
use crate::sync::{Arc, AtomicU32, Ordering};

/// What every file begins with.
const HEADER: &str = "sheaves-snapshot 1";

/// All pools of a process at one time.
///
/// ```
/// use sheaves::{Pool, export::Snapshot};
///
/// let pool = Pool::new("shown");
/// let kept = pool.alloc(1_u64);
/// let text = Snapshot::take().to_string();
/// let read: Snapshot = text.parse()?;
/// let shown = read.pools.iter().find(|pool| pool.name == "shown").expect("it is there");
/// assert_eq!(shown.stats.live, 1);
/// # drop(kept);
/// # Ok::<(), sheaves::export::ParseSnapshotError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// When it was taken, in milliseconds since 1970.
    pub time_ms: u64,
    /// The pools, in the order in which they were built.
    pub pools: Vec<PoolSnapshot>,
}

/// One pool of a [`Snapshot`].
///
/// ```
/// use sheaves::export::Snapshot;
///
/// for pool in Snapshot::take().pools {
///     println!("{}: {} live of {} bytes each", pool.name, pool.stats.live, pool.stride);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Its name.
    pub name: String,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// The page order of its slabs.
    pub order: u64,
    /// Slots in a slab.
    pub slots_per_slab: u64,
    /// Slots in a sheaf.
    pub sheaf_capacity: u64,
    /// The most objects that may be live, or 0 if that is not bounded.
    pub limit: u64,
    /// What it holds and has done.
    pub stats: Stats,
}

impl From<&PoolInfo> for PoolSnapshot {
    fn from(info: &PoolInfo) -> Self {
        let config = info.config();
        Self {
            name: info.name().to_owned(),
            stride: config.stride() as u64,
            order: u64::from(config.order()),
            slots_per_slab: config.slots_per_slab() as u64,
            sheaf_capacity: config.sheaf_capacity() as u64,
            limit: config.limit().unwrap_or(0) as u64,
            stats: *info.stats(),
        }
    }
}

impl PoolSnapshot {
    /// The numbers beside the stats, with their names.
    fn shape(&mut self) -> [(&'static str, &mut u64); 5] {
        [
            ("stride", &mut self.stride),
            ("order", &mut self.order),
            ("slots_per_slab", &mut self.slots_per_slab),
            ("sheaf_capacity", &mut self.sheaf_capacity),
            ("limit", &mut self.limit),
        ]
    }

    fn set(&mut self, name: &str, value: u64) {
        let own = self.shape().into_iter().find(|(known, _)| *known == name);
        if let Some((_, place)) = own {
            *place = value;
        } else if let Some(place) = self.stats.field_mut(name) {
            *place = value;
        }
    }
}

impl Snapshot {
    /// Takes a snapshot of this process. Takes the locks of every pool, one after the other.
    pub fn take() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = since.unwrap_or_default().as_millis();
        Self {
            pid: std::process::id(),
            time_ms: u64::try_from(time).unwrap_or(u64::MAX),
            pools: pools().iter().map(PoolSnapshot::from).collect(),
        }
    }

    /// Writes it to a file, which a reader sees as a whole or not at all.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", self.pid));
        let beside = PathBuf::from(beside);
        fs::write(&beside, self.to_string())?;
        fs::rename(&beside, path)
    }

    /// Reads what [`Snapshot::write`] wrote.
    ///
    /// # Errors
    ///
    /// What the file system says, and `InvalidData` for a file that is no snapshot.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        text.parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER} pid={} time_ms={}", self.pid, self.time_ms)?;
        for pool in &self.pools {
            write!(f, "pool name={}", pool.name)?;
            for (name, value) in pool.clone().shape() {
                write!(f, " {name}={value}")?;
            }
            for (name, value) in pool.stats.gauges().chain(pool.stats.counters()) {
                write!(f, " {name}={value}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Text that is no snapshot.
///
/// ```
/// let error = "no snapshot".parse::<sheaves::export::Snapshot>().unwrap_err();
/// assert!(error.to_string().starts_with("line 1 is no part of a snapshot"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no part of a snapshot; was the file written by `sheaves::export`?")]
pub struct ParseSnapshotError {
    line: usize,
}

impl FromStr for Snapshot {
    type Err = ParseSnapshotError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut lines = text.lines().enumerate();
        let error = |line| ParseSnapshotError { line: line + 1 };
        let first = lines.next().and_then(|(_, line)| line.strip_prefix(HEADER));
        let mut snapshot = Self::default();
        for word in first.ok_or(error(0))?.split_whitespace() {
            match word.split_once('=') {
                Some(("pid", value)) => snapshot.pid = value.parse().map_err(|_| error(0))?,
                Some(("time_ms", value)) => {
                    snapshot.time_ms = value.parse().map_err(|_| error(0))?;
                }
                _ => {}
            }
        }
        for (number, line) in lines {
            let words = line.strip_prefix("pool ").ok_or(error(number))?;
            let mut pool = PoolSnapshot::default();
            for word in words.split_whitespace() {
                match word.split_once('=').ok_or(error(number))? {
                    ("name", name) => name.clone_into(&mut pool.name),
                    (name, value) => pool.set(name, value.parse().map_err(|_| error(number))?),
                }
            }
            snapshot.pools.push(pool);
        }
        Ok(snapshot)
    }
}

/// Writes snapshots to a file, again and again, from a thread of its own, until it is dropped.
///
/// What cannot be written is left out; the next snapshot is tried again.
///
/// ```
/// use core::time::Duration;
/// use sheaves::export::{Exporter, Snapshot};
///
/// let path = std::env::temp_dir().join(format!("sheaves-doc-{}", std::process::id()));
/// let exporter = Exporter::start(&path, Duration::from_millis(100))?;
/// assert_eq!(Snapshot::read(&path)?.pid, std::process::id());
/// drop(exporter);
/// std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping the exporter stops it"]
#[derive(Debug)]
pub struct Exporter {
    stop: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Writes the first snapshot at once and starts the thread for the others.
    ///
    /// # Errors
    ///
    /// What the file system says to the first snapshot, or the system to the thread.
    pub fn start(path: &Path, interval: Duration) -> io::Result<Self> {
        Snapshot::take().write(path)?;
        let stop = Arc::new(AtomicU32::new(0));
        let (path, stopped) = (path.to_owned(), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("sheaves-export".to_owned())
            .spawn(move || {
                loop {
                    thread::park_timeout(interval);
                    // Relaxed: nothing else is told by it; the unpark wakes the thread.
                    if stopped.load(Ordering::Relaxed) != 0 {
                        return;
                    }
                    let _ = Snapshot::take().write(&path);
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Relaxed: see `start`.
        self.stop.store(1, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Sets a gauge or counter of the `metrics` facade for every number of every pool, named `sheaves_live`,
/// `sheaves_alloc_slab` and so forth, with the label `pool`. Call it as often as they are to be fresh.
///
/// Takes the locks of every pool, one after the other.
///
/// ```
/// sheaves::export::record_metrics(); // without a recorder this does nothing
/// ```
#[cfg(feature = "metrics")]
pub fn record_metrics() {
    for info in pools() {
        let name = info.name().to_owned();
        for (field, value) in info.stats().gauges() {
            #[expect(clippy::cast_precision_loss, reason = "the facade's gauges are floats")]
            let value = value as f64;
            metrics::gauge!(format!("sheaves_{field}"), "pool" => name.clone()).set(value);
        }
        for (field, value) in info.stats().counters() {
            metrics::counter!(format!("sheaves_{field}"), "pool" => name.clone()).absolute(value);
        }
    }
}
