//! The typed face of a cache.
//!
//! Everything generic over `T` is here, and it is thin: a [`Pool`] is a handle of an untyped cache with a type
//! attached, and a [`PoolBox`] is a pointer to a slot. A value is written after its slot was taken and
//! dropped before its slot is given back, so no code of a user's type runs inside the engine.

mod allocator;
mod boxed;
mod builder;
mod bulk;
mod forward;
mod pooled;
mod prefilled;

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::ptr::NonNull;
use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;

pub use boxed::PoolBox;
pub use builder::Builder;
pub use pooled::Pooled;
pub use prefilled::PrefilledSheaf;

use crate::base::config::Config;
use crate::base::error::{AllocError, AllocErrorKind, Busy};
use crate::cache::{self, Handle};
use crate::hook::counter::Stats;
use crate::slab::Slot;

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
/// must not block takes from a [`PrefilledSheaf`].
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
        Self { handle: self.handle.clone(), _type: PhantomData }
    }
}

// No user code runs inside the engine's critical sections, so a panic leaves no pool half changed.
impl<T> UnwindSafe for Pool<T> {}
impl<T> RefUnwindSafe for Pool<T> {}

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
        Self::builder(name).build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts the configuration of a pool.
    pub fn builder(name: &str) -> Builder<T> {
        Builder::new(name)
    }

    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self { handle, _type: PhantomData }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Moves `value` into the pool.
    ///
    /// # Panics
    ///
    /// If the pool's limit is reached. When memory is out the process ends as with `Box::new`
    /// ([`handle_alloc_error`]).
    ///
    /// ```
    /// let pool = sheaves::Pool::new("numbers");
    /// let seven = pool.alloc(7);
    /// assert_eq!(*seven + 1, 8);
    /// ```
    #[inline]
    #[doc(alias = "kmem_cache_alloc")]
    pub fn alloc(&self, value: T) -> PoolBox<T> {
        PoolBox::write(self.alloc_uninit(), value)
    }

    /// Moves `value` into the pool, or gives it back.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` when the page source has no memory, `LimitReached` at the pool's limit.
    ///
    /// ```
    /// let pool = sheaves::Pool::builder("two").limit(2).build()?;
    /// let kept = [pool.try_alloc('a'), pool.try_alloc('b')];
    /// assert_eq!(pool.try_alloc('c').unwrap_err().into_value(), 'c');
    /// # drop(kept);
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
    #[inline]
    pub fn try_alloc(&self, value: T) -> Result<PoolBox<T>, AllocError<T>> {
        match self.slot() {
            Ok(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), value)),
            Err(kind) => Err(self.error(kind).map(|()| value)),
        }
    }

    /// Moves `value` into a slot that is at hand without waiting, or gives it back: the kernel's
    /// `GFP_NOWAIT`.
    ///
    /// Looks into the thread's sheaves, then into the barn and the slabs if nobody holds their locks. Never
    /// waits and never calls the page source; a slot in another thread's sheaf is not found.
    ///
    /// # Errors
    ///
    /// `WouldBlock`.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("numbers");
    /// assert!(pool.try_alloc_now(1).is_err(), "nothing is at hand in a new pool");
    /// drop(pool.alloc(1));
    /// assert!(pool.try_alloc_now(1).is_ok());
    /// ```
    #[inline]
    #[doc(alias = "GFP_NOWAIT")]
    pub fn try_alloc_now(&self, value: T) -> Result<PoolBox<T>, AllocError<T>> {
        let slot = match cache::pop(self.handle.id()) {
            Some(slot) => Ok(slot),
            None => self.handle.cache().alloc_now(),
        };
        match slot {
            Ok(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), value)),
            Err(kind) => Err(self.error(kind).map(|()| value)),
        }
    }

    /// Allocates, then calls `make` and moves its value in. A panic of `make` loses nothing.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`], and if `make` panics.
    ///
    /// ```
    /// let pool = sheaves::Pool::new("buffers");
    /// let zeros = pool.alloc_with(|| [0_u8; 4096]);
    /// assert_eq!(zeros.len(), 4096);
    /// ```
    #[inline]
    pub fn alloc_with<F: FnOnce() -> T>(&self, make: F) -> PoolBox<T> {
        let uninit = self.alloc_uninit();
        PoolBox::write(uninit, make())
    }

    /// As [`Pool::alloc_with`], but gives `make` back uncalled if there is no slot.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    #[inline]
    pub fn try_alloc_with<F: FnOnce() -> T>(&self, make: F) -> Result<PoolBox<T>, AllocError<F>> {
        match self.slot() {
            Ok(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), make())),
            Err(kind) => Err(self.error(kind).map(|()| make)),
        }
    }

    /// Allocates a slot to be written later.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool: Pool<String> = Pool::new("names");
    /// let uninit = pool.alloc_uninit();
    /// let name = PoolBox::write(uninit, "later".to_owned());
    /// assert_eq!(*name, "later");
    /// ```
    #[inline]
    pub fn alloc_uninit(&self) -> PoolBox<MaybeUninit<T>> {
        match self.slot() {
            Ok(slot) => PoolBox::from_slot(slot),
            Err(kind) => self.refuse(kind),
        }
    }

    /// As [`Pool::alloc_uninit`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    #[inline]
    pub fn try_alloc_uninit(&self) -> Result<PoolBox<MaybeUninit<T>>, AllocError> {
        self.slot().map(PoolBox::from_slot).map_err(|kind| self.error(kind))
    }

    /// Moves `value` into the pool and pins it there: its memory is not reused before it is dropped.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    #[inline]
    pub fn alloc_pin(&self, value: T) -> Pin<PoolBox<T>> {
        PoolBox::into_pin(self.alloc(value))
    }

    /// As [`Pool::alloc_pin`], or gives the value back.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    #[inline]
    pub fn try_alloc_pin(&self, value: T) -> Result<Pin<PoolBox<T>>, AllocError<T>> {
        self.try_alloc(value).map(PoolBox::into_pin)
    }

    #[inline(always)]
    fn slot(&self) -> Result<Slot, AllocErrorKind> {
        match cache::pop(self.handle.id()) {
            Some(slot) => Ok(slot),
            None => self.handle.cache().alloc_cold(),
        }
    }

    #[cold]
    fn error(&self, kind: AllocErrorKind) -> AllocError {
        AllocError::new(kind, self.handle.cache().name())
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, kind: AllocErrorKind) -> ! {
        refuse::<T>(&self.error(kind))
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
    pub fn flush_thread(&self) {
        self.handle.cache().flush_thread();
    }

    /// What the pool holds and has done. Takes its locks one after the other; linear in threads.
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

    /// Ends the pool: its memory goes back to the page source.
    ///
    /// Dropping the last handle does the same but for objects that are still live, whose memory stays until
    /// the last of them is gone; `close` tells that there are some.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the pool in it as usable as before, while objects or blocks of it are live, or other
    /// handles or prefilled sheaves exist.
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
        let others = self.handles() - 1;
        let (live, prefilled) = self.handle.cache().in_use();
        if others > 0 || live > 0 || prefilled > 0 {
            return Err(Busy::new(self, live, prefilled, others));
        }
        Ok(())
    }
}

/// What a plain form does when there is no slot: as `Box` when memory is out, a panic at a limit.
#[cold]
#[inline(never)]
fn refuse<T>(error: &AllocError) -> ! {
    match error.kind() {
        AllocErrorKind::OutOfMemory => handle_alloc_error(Layout::new::<T>()),
        _ => panic!("{error}"),
    }
}

/// Handles of the same pool are equal.
impl<T> PartialEq for Pool<T> {
    fn eq(&self, other: &Self) -> bool {
        self.handle.is_same(&other.handle)
    }
}

impl<T> Eq for Pool<T> {}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Pool")
            .field("name", &self.name())
            .field("slot_size", &self.config().stride())
            .field("live", &stats.live)
            .field("slabs", &stats.slabs)
            .finish_non_exhaustive()
    }
}
