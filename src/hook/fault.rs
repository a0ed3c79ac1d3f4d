//! Faults on purpose: allocations that fail although they need not.
//!
//! Each place where a pool allocates something asks its [`Injector`] first. All those places are on slow paths; a
//! pool that has a fault keeps its threads on them.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;

use crate::sync::{AtomicU32, Lock, Ordering};

/// Which allocations of a pool fail: [`Builder::fault`](crate::Builder::fault),
/// [`Pool::set_fault`](crate::Pool::set_fault).
///
/// A pool asks for each slot that is allocated one by one, for each bulk allocation, for a sheaf that is prefilled
/// or refilled, and when it needs a new slab, a sheaf's array, what a thread keeps for a pool, room for retired objects,
/// or for the allocator traits a block or the first of a kind of layout. So one call may ask several times; where a pool
/// has another way than the one that failed, it takes it. What fails for the fault has the kind
/// [`AllocErrorKind::Injected`](crate::AllocErrorKind::Injected).
///
/// The variable `SHEAVES_FAULT` sets faults from outside, in the form of [`FromStr`], followed by name globs as in
/// `SHEAVES_DEBUG`: `every=10 times=3,io_*`. Without globs it is for the pools with the flag
/// [`DebugFlags::FAULTS`](crate::DebugFlags::FAULTS).
///
/// ```
/// use sheaves::{AllocErrorKind, Fault, Pool};
///
/// let pool = Pool::builder("unlucky").fault(Fault::every(1).times(1)).build()?;
/// assert_eq!(pool.try_alloc(1).unwrap_err().kind(), AllocErrorKind::Injected);
/// assert!(pool.try_alloc(2).is_ok(), "once is enough");
/// pool.set_fault(Some(Fault::probability(0.01, 7))); // one in a hundred, the same ones in each run
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a fault does nothing until a pool has it"]
pub struct Fault {
    when: When,
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Nth(u64),
    Every(u64),
    Chance { probability: f64, seed: u64 },
}

impl Fault {
    const fn new(when: When) -> Self {
        Self {
            when,
            times: u64::MAX,
        }
    }

    /// The `n`-th allocation from now on fails, counted from 1. With 0 none does.
    pub const fn nth(n: u64) -> Self {
        Self::new(When::Nth(n))
    }

    /// Every `n`-th allocation fails; with 1 all do, with 0 none does.
    pub const fn every(n: u64) -> Self {
        Self::new(When::Every(n))
    }

    /// Each allocation fails with this probability, by a random sequence that is the same for the same seed.
    pub const fn probability(probability: f64, seed: u64) -> Self {
        Self::new(When::Chance { probability, seed })
    }

    /// At most `k` failures.
    pub const fn times(self, k: u64) -> Self {
        Self { times: k, ..self }
    }
}

/// Text that is no fault.
///
/// ```
/// use sheaves::Fault;
///
/// assert_eq!("every=10 times=3".parse(), Ok(Fault::every(10).times(3)));
/// assert!("always".parse::<Fault>().unwrap_err().to_string().starts_with("`always` is no fault"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no fault; write nth=N, every=N or probability=P seed=N, and times=N if it is to end"
)]
pub struct ParseFaultError {
    text: String,
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    /// Reads `nth=3`, `every=10 times=2` or `probability=0.01 seed=42`: words in any order. The seed is 0 where
    /// there is none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseFaultError {
            text: text.to_owned(),
        };
        let number = |value: &str| value.parse::<u64>().map_err(|_| error());
        let (mut fault, mut times, mut seed) = (None, u64::MAX, 0);
        for word in text.split_whitespace() {
            match word.split_once('=').ok_or_else(error)? {
                ("nth", n) => fault = Some(Self::nth(number(n)?)),
                ("every", n) => fault = Some(Self::every(number(n)?)),
                ("probability", p) => {
                    let probability: f64 = p.parse().map_err(|_| error())?;
                    fault = Some(Self::probability(probability, 0));
                }
                ("seed", n) => seed = number(n)?,
                ("times", n) => times = number(n)?,
                _ => return Err(error()),
            }
        }
        let Self { when, .. } = fault.ok_or_else(error)?;
        let when = match when {
            When::Chance { probability, .. } => When::Chance { probability, seed },
            other => other,
        };
        Ok(Self { when, times })
    }
}

/// The form that [`FromStr`] reads.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::Nth(n) => write!(f, "nth={n}")?,
            When::Every(n) => write!(f, "every={n}")?,
            When::Chance { probability, seed } => {
                write!(f, "probability={probability} seed={seed}")?;
            }
        }
        if self.times < u64::MAX {
            write!(f, " times={}", self.times)?;
        }
        Ok(())
    }
}

/// The fault of one cache, if it has one.
#[derive(Debug)]
pub(crate) struct Injector {
    /// Not 0 while there is a fault. A hint, so that pools without pay one load on slow paths.
    armed: AtomicU32,
    /// Not 0 if prefilled sheaves are to hold no more than was asked for.
    exact: AtomicU32,
    state: Lock<Option<Armed>>,
}

/// A fault at work.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    asked: u64,
    random: u64,
}

impl Armed {
    fn fires(&mut self) -> bool {
        if self.fault.times == 0 {
            return false;
        }
        self.asked += 1;
        let fires = match self.fault.when {
            When::Nth(n) => self.asked == n,
            When::Every(n) => n > 0 && self.asked % n == 0,
            When::Chance { probability, .. } => self.next_unit() < probability,
        };
        if fires && self.fault.times < u64::MAX {
            self.fault.times -= 1;
        }
        fires
    }

    /// The next number of a splitmix64 sequence, from 0 up to below 1.
    fn next_unit(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // As many bits as a float holds exactly, in two parts, each of which converts without loss.
        let (high, low) = ((z >> 32) as u32, ((z << 32) >> 43) as u32);
        (f64::from(high) + f64::from(low) * 2_f64.powi(-21)) * 2_f64.powi(-32)
    }
}

impl Injector {
    pub(crate) fn new() -> Self {
        Self {
            armed: AtomicU32::new(0),
            exact: AtomicU32::new(0),
            state: Lock::new(None),
        }
    }

    /// Replaces the fault.
    pub(crate) fn set(&self, fault: Option<Fault>) {
        let seed = match fault.map(|fault| fault.when) {
            Some(When::Chance { seed, .. }) => seed,
            _ => 0,
        };
        *self.state.lock() = fault.map(|fault| Armed {
            fault,
            asked: 0,
            random: seed,
        });
        // Relaxed: a hint; what it leads to is behind the lock.
        self.armed
            .store(u32::from(fault.is_some()), Ordering::Relaxed);
    }

    /// Whether the allocation that is asked about is to fail.
    #[inline]
    pub(crate) fn fires(&self) -> bool {
        // Relaxed: see `set`.
        self.armed.load(Ordering::Relaxed) != 0 && self.fires_armed()
    }

    #[cold]
    fn fires_armed(&self) -> bool {
        self.state.lock().as_mut().is_some_and(Armed::fires)
    }

    /// Whether there is a fault, be it spent.
    pub(crate) fn is_set(&self) -> bool {
        self.state.lock().is_some()
    }

    /// Locks the fault.
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.state.lock()
    }

    pub(crate) fn set_exact(&self, exact: bool) {
        // Relaxed: nothing else depends on it.
        self.exact.store(u32::from(exact), Ordering::Relaxed);
    }

    /// Whether prefilled sheaves are to hold no more than was asked for.
    pub(crate) fn is_exact(&self) -> bool {
        // Relaxed: as above.
        self.exact.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(fault: Fault, asks: u64) -> Vec<u64> {
        let injector = Injector::new();
        assert!(!injector.fires());
        injector.set(Some(fault));
        (1..=asks).filter(|_| injector.fires()).collect()
    }

    #[test]
    fn faults_fire_when_they_say() {
        assert_eq!(fired(Fault::nth(3), 10), [3]);
        assert_eq!(fired(Fault::nth(0), 10), []);
        assert_eq!(fired(Fault::every(3), 10), [3, 6, 9]);
        assert_eq!(fired(Fault::every(0), 10), []);
        assert_eq!(fired(Fault::every(1).times(2), 10), [1, 2]);
        assert_eq!(fired(Fault::every(1).times(0), 10), []);
        assert_eq!(fired(Fault::probability(0.0, 1), 1000), []);
        assert_eq!(fired(Fault::probability(1.0, 1), 100).len(), 100);
        let some = fired(Fault::probability(0.25, 7), 10_000);
        assert!((2300..2700).contains(&some.len()), "{}", some.len());
        assert_eq!(some, fired(Fault::probability(0.25, 7), 10_000));
        assert_ne!(some, fired(Fault::probability(0.25, 8), 10_000));
    }

    /// With 21 random bits two of a million were 0, and below every probability.
    #[test]
    fn small_probabilities_are_not_rounded_up() {
        assert_eq!(fired(Fault::probability(1e-12, 3), 1_000_000), []);
    }

    #[test]
    fn text_round_trips() {
        for text in ["nth=3", "every=10 times=2", "probability=0.01 seed=42"] {
            let fault: Fault = text.parse().expect("a fault");
            assert_eq!(fault.to_string(), text);
        }
        for text in ["", "nth", "nth=x", "times=3", "often=1", "every=-1"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
