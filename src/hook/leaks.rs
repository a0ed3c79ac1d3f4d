//! What is still live, grouped by who allocated it.
#![forbid(unsafe_code)]

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use super::track::Track;
use crate::base::name::Name;
use crate::sync::Arc;

/// Addresses that the text lists of one group.
const LISTED: usize = 8;

/// The live objects of a pool: [`Pool::leaks`](crate::Pool::leaks).
///
/// `Display` groups them by the place that allocated them. Pools with [`DebugFlags::USER`](crate::DebugFlags::USER)
/// know places and ages, others only addresses.
///
/// ```
/// use sheaves::{DebugFlags, Pool};
///
/// let pool = Pool::builder("kept").debug(DebugFlags::USER).build()?;
/// let kept = [pool.alloc(1), pool.alloc(2)];
/// let leaks = pool.leaks();
/// assert_eq!((leaks.pool(), leaks.len()), ("kept", 2));
/// for (site, objects) in leaks.by_site() {
///     println!("{} from {site}", objects.len());
/// }
/// # drop(kept);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[must_use = "listing changes nothing"]
#[derive(Clone, Debug)]
pub struct Leaks {
    pool: Name,
    objects: Vec<Leak>,
    /// When they were listed.
    at: Instant,
}

/// A live object.
///
/// ```
/// let pool = sheaves::Pool::builder("kept").debug(sheaves::DebugFlags::USER).build()?;
/// let kept = pool.alloc(7);
/// let leaks = pool.leaks();
/// let leak = leaks.iter().next().expect("one is live");
/// assert_eq!(leak.address(), sheaves::PoolBox::as_ptr(&kept).addr());
/// println!("{:?} old, by {}", leak.age(), leak.allocated().expect("tracked").thread());
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Leak {
    address: usize,
    track: Option<Arc<Track>>,
}

impl Leak {
    pub(crate) fn new(address: usize, track: Option<Arc<Track>>) -> Self {
        Self { address, track }
    }

    /// Where it lies.
    pub fn address(&self) -> usize {
        self.address
    }

    /// How long ago it was allocated, if that is known.
    pub fn age(&self) -> Option<Duration> {
        self.track.as_ref().map(|track| track.age())
    }

    /// Who allocated it, if that is known.
    pub fn allocated(&self) -> Option<&Track> {
        self.track.as_deref()
    }
}

impl Leaks {
    pub(crate) fn new(pool: &Name, mut objects: Vec<Leak>) -> Self {
        objects.sort_unstable_by_key(Leak::address);
        Self {
            pool: pool.clone(),
            objects,
            at: Instant::now(),
        }
    }

    /// The name of the pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// How many objects are live.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Leak> {
        self.objects.iter()
    }

    /// The sites that allocated, with their objects; the one with most comes first. Objects of which no site is
    /// known are under the name `unknown`.
    pub fn by_site(&self) -> Vec<(String, Vec<&Leak>)> {
        let mut groups: Vec<(String, Vec<&Leak>)> = Vec::new();
        for leak in &self.objects {
            let site = leak
                .allocated()
                .map_or_else(|| "unknown".to_owned(), Track::site);
            match groups.iter_mut().find(|(known, _)| *known == site) {
                Some((_, leaks)) => leaks.push(leak),
                None => groups.push((site, vec![leak])),
            }
        }
        groups.sort_by_key(|(_, leaks)| core::cmp::Reverse(leaks.len()));
        groups
    }
}

impl<'a> IntoIterator for &'a Leaks {
    type Item = &'a Leak;
    type IntoIter = core::slice::Iter<'a, Leak>;

    fn into_iter(self) -> Self::IntoIter {
        self.objects.iter()
    }
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.len() == 1 { "" } else { "s" };
        write!(f, "{} live object{plural}", self.len())?;
        for (site, leaks) in self.by_site() {
            write!(f, "\n  {} from {site}", leaks.len())?;
            let tracks = leaks.iter().filter_map(|leak| leak.allocated());
            let ages = tracks.map(|track| self.at.saturating_duration_since(track.at()));
            if let Some((least, most)) =
                ages.fold(None, |span: Option<(Duration, Duration)>, age| {
                    let (least, most) = span.unwrap_or((age, age));
                    Some((least.min(age), most.max(age)))
                })
            {
                write!(f, ", {least:.1?} to {most:.1?} old")?;
            }
            f.write_str(":")?;
            leaks
                .iter()
                .take(LISTED)
                .try_for_each(|leak| write!(f, " {:#x}", leak.address))?;
            if leaks.len() > LISTED {
                write!(f, " and {} more", leaks.len() - LISTED)?;
            }
        }
        Ok(())
    }
}
