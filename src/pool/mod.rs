//! The typed face of a cache.
//!
//! Everything generic over `T` is here, and it is thin: a [`Pool`] is a handle of an untyped cache with a type
//! attached, and a [`PoolBox`] is a pointer to a slot. A value is written after its slot was taken and
//! dropped before its slot is given back, so no code of a user's type runs inside the engine.

mod alloc;
#[cfg(any_allocator)]
mod allocator;
mod boxed;
mod builder;
mod bulk;
mod forward;
mod pooled;
mod prefilled;
#[cfg(feature = "rcu")]
mod rcu_cell;
#[cfg(feature = "rcu")]
mod retire;
#[cfg(feature = "rcu")]
mod stable;
pub(crate) mod testing;

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

#[cfg(any_allocator)]
pub use allocator::PoolOf;
pub use boxed::PoolBox;
pub use builder::Builder;
pub use pooled::Pooled;
pub use prefilled::PrefilledSheaf;
#[cfg(feature = "rcu")]
pub use rcu_cell::{RcuCell, RcuCellOption, Unlinked};
#[cfg(feature = "rcu")]
pub use stable::{StableBox, StableCell, StablePool, TypeStable};

use crate::base::config::Config;
use crate::base::error::Busy;
use crate::cache::Handle;
use crate::hook::counter::Stats;
use crate::hook::fault::Fault;
use crate::hook::leaks::Leaks;

/// A pool of slots for values of one type: a typed `kmem_cache`.
///
/// A `Pool` is a handle; clones name the same pool. Allocation and free take and put slots in sheaves of the
/// running thread, without locks or atomic read-modify-writes; any thread may free what another allocated.
/// Boxes need no handle: they find their pool by their address, and the pool's memory stays until the last of
/// them is gone.
///
/// # Real time
///
/// An allocation that finds the thread's sheaves empty takes locks, and may call the page source. Code that
/// must not block takes from a [`PrefilledSheaf`]. So does a signal handler, from one of its own: to use a pool or
/// to drop a box in a handler corrupts the sheaf of the thread that it interrupted.
///
/// # Examples
///
/// ```
/// use sheaves::{Order, Pool};
///
/// let pool: Pool<[u64; 30]> = Pool::builder("requests").order(Order::LARGE).build()?;
/// let mut request = pool.alloc([0; 30]);
/// request[0] = 42;
/// std::thread::spawn(move || assert_eq!(request[0], 42)).join().unwrap();
/// assert_eq!(pool.stats().live, 0);
/// # Ok::<(), sheaves::BuildError>(())
/// ```
#[doc(alias = "kmem_cache")]
pub struct Pool<T> {
    handle: Handle,
    /// Takes and gives values of `T` and holds none: `Send` and `Sync` for every `T`, and invariant in it.
    _type: PhantomData<fn(T) -> T>,
}

/// A handle is all there is to clone: no value of `T` is touched.
impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            _type: PhantomData,
        }
    }
}

impl<T> Pool<T> {
    /// A pool with the automatic configuration; [`Pool::builder`] offers the choices.
    ///
    /// # Panics
    ///
    /// Where [`Builder::build`] would err: a name that is empty, longer than 64 bytes or has white space, a
    /// type too large or aligned to more than 32 KiB, or no memory.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("counters");
    /// assert_eq!(*pool.alloc(7_u64), 7);
    /// ```
    #[doc(alias = "kmem_cache_create")]
    pub fn new(name: &str) -> Self {
        Self::builder(name)
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts the configuration of a pool.
    #[doc(alias = "kmem_cache_create")]
    pub fn builder(name: &str) -> Builder<T> {
        Builder::new(name)
    }

    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self {
            handle,
            _type: PhantomData,
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Gives every empty slab but the reserve back to the page source, and the source's warm memory to the
    /// system; the bytes that left the pool. Slots parked in the sheaves of any thread are found, whether or
    /// not it runs.
    ///
    /// Takes locks, interrupts the processors that run this process (`membarrier`), calls the page source: not
    /// for real-time code. Linear in threads and in parked slots.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("burst");
    /// drop((0..10_000_u64).map(|i| pool.alloc(i)).collect::<Vec<_>>());
    /// assert!(pool.shrink() > 0);
    /// assert_eq!(pool.stats().bytes, 0);
    /// ```
    #[doc(alias = "kmem_cache_shrink")]
    pub fn shrink(&self) -> usize {
        self.handle.cache().shrink()
    }

    /// Moves what the running thread has parked in its sheaves back to slabs. For a thread that will not use
    /// the pool for long.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("once");
    /// drop(pool.alloc(1));
    /// pool.flush_thread();
    /// assert_eq!(pool.stats().cached, 0);
    /// ```
    pub fn flush_thread(&self) {
        self.handle.cache().flush_thread();
    }

    /// What the pool holds and has done. Takes its locks one after the other, and waits for threads that are in the middle of
    /// one allocation or free; linear in threads.
    pub fn stats(&self) -> Stats {
        self.handle.cache().stats()
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        self.handle.cache().name()
    }

    /// What the pool was built with, and what was chosen automatically.
    pub fn config(&self) -> &Config {
        self.handle.cache().config()
    }

    /// Handles of this pool, this one and those of prefilled sheaves included.
    pub fn handles(&self) -> usize {
        self.handle.count()
    }

    /// Whether `pointer` is the address of a slot of this pool, whatever is in it. Takes a lock.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("mine");
    /// let number = pool.alloc(1_u64);
    /// assert!(pool.owns(&*number));
    /// assert!(!pool.owns(&2));
    /// ```
    pub fn owns(&self, pointer: *const T) -> bool {
        NonNull::new(pointer.cast_mut().cast()).is_some_and(|start| self.handle.cache().owns(start))
    }

    /// Makes allocations of the pool fail from now on, or, with `None`, no more. See [`Fault`].
    ///
    /// While a pool has a fault every operation on it takes the slow path. A prefilled sheaf gives what it holds
    /// nevertheless. Takes locks and interrupts the processors that run this process.
    ///
    /// ```
    /// use sheaves::{AllocErrorKind, Fault, Pool};
    ///
    /// let pool = Pool::new("numbers");
    /// pool.set_fault(Some(Fault::every(1)));
    /// assert_eq!(pool.try_alloc(1).unwrap_err().kind(), AllocErrorKind::Injected);
    /// pool.set_fault(None);
    /// assert!(pool.try_alloc(1).is_ok());
    /// ```
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.handle.cache().set_fault(fault);
    }

    /// Checks every slab now: headers, and in a debugged pool guard bytes, padding and free slots. What is found is
    /// reported and mended; how much it was.
    ///
    /// Holds the locks of the pool's slabs while it looks; linear in the memory of the pool.
    ///
    /// ```
    /// use sheaves::{DebugFlags, Pool};
    ///
    /// let pool = Pool::builder("checked").debug(DebugFlags::POISON).build()?;
    /// let freed = sheaves::PoolBox::into_raw(pool.alloc(7_u64));
    /// // SAFETY: `freed` came from `into_raw` just now.
    /// drop(unsafe { sheaves::PoolBox::from_raw(freed) });
    /// assert_eq!(pool.validate(), 0);
    /// // SAFETY: none: this is the fault to be found, a write to memory that was freed.
    /// unsafe { freed.write(8) };
    /// assert_eq!(pool.validate(), 1);
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
    #[doc(alias = "validate_slab_cache")]
    pub fn validate(&self) -> usize {
        self.handle.cache().validate()
    }

    /// The live objects, with their age and who allocated them if the pool has
    /// [`DebugFlags::USER`](crate::DebugFlags::USER). In a pool
    /// without debug flags slots of prefilled sheaves are listed too.
    ///
    /// Finds what other threads have parked as [`Pool::shrink`] does. Linear in the memory of the pool.
    ///
    /// ```
    /// use sheaves::{DebugFlags, Pool};
    ///
    /// let pool = Pool::builder("kept").debug(DebugFlags::USER).build()?;
    /// let kept = pool.alloc([0_u8; 100]);
    /// println!("{}", pool.leaks()); // 1 live object, from this line of this file, a few milliseconds old
    /// assert_eq!(pool.leaks().iter().next().map(|leak| leak.address()), Some(kept.as_ptr().addr()));
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
    pub fn leaks(&self) -> Leaks {
        self.handle.cache().leaks()
    }

    /// Ends the pool: its memory goes back to the page source.
    ///
    /// Dropping the last handle does the same but for objects that are still live, whose memory stays until
    /// the last of them is gone; `close` tells that there are some. With feature `rcu` it waits for retired objects first,
    /// as `Pool::rcu_barrier` does; in a forked child it does not.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the pool in it as usable as before, while objects or blocks of it are live, or other
    /// handles or prefilled sheaves exist. Also if retired objects cannot be waited for, since the thread is pinned or
    /// runs a destructor of a retired object; [`Busy::barrier`] tells.
    /// In a debugged pool the live objects are reported too, once a call.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("brief");
    /// let kept = pool.alloc(1);
    /// let busy = pool.close().unwrap_err();
    /// assert_eq!(busy.live(), 1);
    /// drop(kept);
    /// busy.into_pool().close().unwrap();
    /// ```
    #[doc(alias = "kmem_cache_destroy")]
    pub fn close(self) -> Result<(), Busy<Self>> {
        #[cfg(feature = "rcu")]
        if let Err(error) = self.wait_for_retired() {
            let (live, prefilled) = self.handle.cache().in_use();
            let others = self.handles() - 1;
            let busy = Busy::new(self, live, prefilled, others);
            return Err(busy.because(error));
        }
        let others = self.handles() - 1;
        let (live, prefilled) = self.handle.cache().in_use();
        if others > 0 || live > 0 || prefilled > 0 {
            self.handle.cache().tell_leaks();
            return Err(Busy::new(self, live, prefilled, others));
        }
        Ok(())
    }
}

/// Handles of the same pool are equal.
impl<T> PartialEq for Pool<T> {
    fn eq(&self, other: &Self) -> bool {
        self.handle.is_same(&other.handle)
    }
}

impl<T> Eq for Pool<T> {}

/// The name, and what the pool holds: [`Pool::stats`] tells all of it.
impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Pool")
            .field("name", &self.name())
            .field("slot_size", &self.config().stride())
            .field("live", &stats.live)
            .field("prefilled", &stats.prefilled)
            .field("retired", &stats.retired)
            .field("slots", &stats.slots)
            .field("bytes", &stats.bytes)
            .finish_non_exhaustive()
    }
}
