//! Help for tests of code that uses pools.
#![forbid(unsafe_code)]

mod topology;

pub use topology::{NodeStats, Topology};

use super::Pool;
use crate::hook::counter::Stats;
use crate::hook::fault::Fault;

/// What a [`sweep`] came to.
///
/// ```
/// use sheaves::{Pool, testing};
///
/// let pool = Pool::new("one");
/// let swept = testing::sweep(&pool, || pool.try_alloc(7).map(drop))?;
/// assert!(swept.faults >= 1);
/// # Ok::<(), sheaves::AllocError<i32>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept<R> {
    /// What the run without a fault gave.
    pub value: R,
    /// How many faults were injected before it, one a run.
    pub faults: u64,
}

/// Runs `operation` with the first allocation of `pool` failing, then with the second, and so on, until it runs
/// through without a fault: every path that a failed allocation leads to is taken once.
///
/// After each run with a fault the pool must hold as many objects as before: what `operation` allocated it must free
/// when it fails, or own in the value that it returns, which is dropped. Of the pool nothing else may be used
/// meanwhile; a fault that it had is gone afterwards.
///
/// # Errors
///
/// The error of `operation` in a run without a fault.
///
/// # Panics
///
/// If a run leaks, or leaves the pool's slabs damaged (see [`Pool::validate`]); and if `operation` does.
///
/// ```
/// use sheaves::{AllocError, Pool, PoolBox, testing};
///
/// fn pair(pool: &Pool<u64>) -> Result<[PoolBox<u64>; 2], AllocError> {
///     let first = PoolBox::write(pool.try_alloc_uninit()?, 1);
///     let second = PoolBox::write(pool.try_alloc_uninit()?, 2); // the first is freed if this fails
///     Ok([first, second])
/// }
///
/// let pool = Pool::new("pairs");
/// let swept = testing::sweep(&pool, || pair(&pool))?;
/// assert_eq!(*swept.value[1], 2);
/// assert!(swept.faults >= 2);
/// # Ok::<(), AllocError>(())
/// ```
pub fn sweep<T, R, E>(
    pool: &Pool<T>,
    mut operation: impl FnMut() -> Result<R, E>,
) -> Result<Swept<R>, E> {
    /// Takes the fault away, also if the operation panics.
    struct Disarm<'a, T>(&'a Pool<T>);
    impl<T> Drop for Disarm<'_, T> {
        fn drop(&mut self) {
            self.0.set_fault(None);
        }
    }
    let _disarm = Disarm(pool);
    let before = held(&pool.stats());
    let mut faults = 0;
    loop {
        let injected = pool.stats().faults;
        pool.set_fault(Some(Fault::nth(faults + 1)));
        let result = operation();
        pool.set_fault(None);
        if pool.stats().faults == injected {
            return Ok(Swept {
                value: result?,
                faults,
            });
        }
        faults += 1;
        drop(result);
        let after = held(&pool.stats());
        assert!(
            after == before,
            "pool `{}`: with allocation {faults} failing the operation leaked: live, prefilled and blocks were \
             {before:?} before and {after:?} after: {}",
            pool.name(),
            pool.leaks(),
        );
        assert!(pool.validate() == 0, "damage was found; see the reports");
    }
}

/// What a user has of a pool.
fn held(stats: &Stats) -> [u64; 3] {
    [stats.live, stats.prefilled, stats.blocks]
}

/// Has prefilled sheaves of `pool` hold exactly what was asked for and not more, from now on or no more: code that
/// takes more than it asked for fails in a test, and not once in a while.
///
/// ```
/// use sheaves::{Pool, testing};
///
/// let pool = Pool::new("nodes");
/// assert!(pool.prefill(2)?.len() >= 2);
/// testing::exact_prefill(&pool, true);
/// let mut sheaf = pool.prefill(2)?;
/// assert!(sheaf.alloc(1).is_ok() && sheaf.alloc(2).is_ok());
/// assert!(sheaf.alloc(3).is_err());
/// # Ok::<(), sheaves::AllocError>(())
/// ```
pub fn exact_prefill<T>(pool: &Pool<T>, exact: bool) {
    pool.handle().cache().set_exact_prefill(exact);
}
