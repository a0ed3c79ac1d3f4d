//! Where requests come from: the system allocator by `Box`, or a pool by prefilled sheaves.
//!
//! The loop is generic over [`Contender`], so that all run the very same code around their
//! allocations.

#![forbid(unsafe_code)]

use core::ops::DerefMut;

use sheaves::{Order, Pool, PoolBox, PrefilledSheaf};

use super::failure::Failure;
use super::request::Kiocb;

/// A source of requests.
pub(crate) trait Contender {
    /// An owned request; dropping it frees it.
    type Request: DerefMut<Target = Kiocb>;
    /// The table of requests in flight.
    type Table<'a>: DerefMut<Target = [Option<Self::Request>]>
    where
        Self: 'a;
    /// What the allocations of one submission burst are taken from.
    type Burst;

    /// What the results call it.
    fn name(&self) -> &'static str;

    /// An empty table of `depth` places.
    fn table(&self, depth: usize) -> Self::Table<'_>;

    /// Gets ready for `requests` allocations.
    ///
    /// # Errors
    ///
    /// When the memory for them cannot be had.
    fn borrow(&self, requests: usize) -> Result<Self::Burst, Failure>;

    /// Makes `request` an owned one.
    ///
    /// # Errors
    ///
    /// When `burst` was borrowed for fewer.
    fn allocate(burst: &mut Self::Burst, request: Kiocb) -> Result<Self::Request, Failure>;

    /// Gives back what a burst did not use.
    fn give_back(burst: Self::Burst);

    /// Checks, after a round, that nothing is out any more.
    ///
    /// # Errors
    ///
    /// When something is.
    fn settled(&self) -> Result<(), Failure>;
}

/// Requests in boxes of the system allocator.
pub(crate) struct Boxed;

impl Contender for Boxed {
    type Request = Box<Kiocb>;
    type Table<'a> = Vec<Option<Box<Kiocb>>>;
    type Burst = ();

    fn name(&self) -> &'static str {
        "box"
    }

    fn table(&self, depth: usize) -> Self::Table<'_> {
        let mut table = Vec::new();
        table.resize_with(depth, || None);
        table
    }

    #[inline]
    fn borrow(&self, _requests: usize) -> Result<Self::Burst, Failure> {
        Ok(())
    }

    #[inline]
    fn allocate(_burst: &mut Self::Burst, request: Kiocb) -> Result<Self::Request, Failure> {
        Ok(Box::new(request))
    }

    #[inline]
    fn give_back(_burst: Self::Burst) {}

    fn settled(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A table in the memory of the pool its requests are from.
#[cfg(feature = "allocator-api2-02")]
type PoolTable<'a> = allocator_api2::vec::Vec<Option<PoolBox<Kiocb>>, &'a Pool<Kiocb>>;

/// A pool without the allocator traits cannot hold a table.
#[cfg(not(feature = "allocator-api2-02"))]
type PoolTable<'a> = Vec<Option<PoolBox<Kiocb>>>;

/// A table of `depth` empty places.
#[cfg_attr(
    not(feature = "allocator-api2-02"),
    expect(unused_variables, reason = "the pool cannot hold the table")
)]
fn pool_table(pool: &Pool<Kiocb>, depth: usize) -> PoolTable<'_> {
    #[cfg(feature = "allocator-api2-02")]
    let mut table = PoolTable::new_in(pool);
    #[cfg(not(feature = "allocator-api2-02"))]
    let mut table = PoolTable::new();
    table.resize_with(depth, || None);
    table
}

/// Requests in a pool, and the table of them in the same pool's memory.
pub(crate) struct InPool {
    name: &'static str,
    pool: Pool<Kiocb>,
}

impl InPool {
    /// A pool called `name` with slabs of `order`, whose sheaves hold a burst of `depth` requests.
    ///
    /// # Errors
    ///
    /// When the pool refuses an option.
    pub(crate) fn new(name: &'static str, order: Order, depth: usize) -> Result<Self, Failure> {
        let pool = Pool::builder(name)
            .order(order)
            .sheaf_capacity(depth)
            .build()?;
        Ok(Self { name, pool })
    }

    /// The pool itself, for its counters.
    pub(crate) const fn pool(&self) -> &Pool<Kiocb> {
        &self.pool
    }
}

impl Contender for InPool {
    type Request = PoolBox<Kiocb>;
    type Table<'a> = PoolTable<'a>;
    type Burst = PrefilledSheaf<Kiocb>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn table(&self, depth: usize) -> Self::Table<'_> {
        pool_table(&self.pool, depth)
    }

    /// Borrows a sheaf for each burst instead of refilling one that is kept: a sheaf changes hands
    /// whole, a refill moves its slots one by one.
    #[inline]
    fn borrow(&self, requests: usize) -> Result<Self::Burst, Failure> {
        Ok(self.pool.prefill(requests)?)
    }

    #[inline]
    fn allocate(burst: &mut Self::Burst, request: Kiocb) -> Result<Self::Request, Failure> {
        burst.alloc(request).map_err(|_| Failure::Exhausted)
    }

    #[inline]
    fn give_back(burst: Self::Burst) {
        burst.give_back();
    }

    fn settled(&self) -> Result<(), Failure> {
        let stats = self.pool.stats();
        if stats.live == 0 && stats.prefilled == 0 {
            Ok(())
        } else {
            Err(Failure::Leaked {
                pool: self.name,
                live: stats.live,
                prefilled: stats.prefilled,
            })
        }
    }
}
