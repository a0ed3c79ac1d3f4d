//! One object into the pool.
#![forbid(unsafe_code)]

use ::alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::pin::Pin;

use super::{Pool, PoolBox};
use crate::base::error::{AllocError, AllocErrorKind};
use crate::cache::{self, SizeKey};
use crate::slab::Slot;

impl<T> Pool<T> {
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
    #[doc(alias = "kmem_cache_alloc")]
    pub fn try_alloc(&self, value: T) -> Result<PoolBox<T>, AllocError<T>> {
        match self.slot() {
            Ok(slot) => Ok(PoolBox::write(PoolBox::from_slot(slot), value)),
            Err(kind) => Err(self.error(kind).map(|()| value)),
        }
    }

    /// Moves `value` into a slot that is at hand without waiting, or gives it back: the kernel's
    /// `GFP_NOWAIT`.
    ///
    /// Not for signal handlers: see [`PrefilledSheaf`](crate::PrefilledSheaf).
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
        let slot = match cache::pop(Self::KEY, self.handle.id()) {
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
    ///
    /// ```
    /// let pool = sheaves::Pool::builder("one").limit(1).build()?;
    /// let kept = pool.try_alloc_with(|| 1).expect("one fits");
    /// let error = pool.try_alloc_with(|| 2).unwrap_err();
    /// assert_eq!(error.into_value()(), 2); // the closure was not called
    /// # drop(kept);
    /// # Ok::<(), sheaves::BuildError>(())
    /// ```
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
        match cache::pop(Self::KEY, self.handle.id()) {
            Some(slot) => PoolBox::from_slot(slot),
            None => PoolBox::from_slot(self.slot_or_refuse()),
        }
    }

    /// As [`Pool::alloc_uninit`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    ///
    /// ```
    /// # use sheaves::{Pool, PoolBox};
    /// let pool: Pool<u64> = Pool::new("numbers");
    /// let number = PoolBox::write(pool.try_alloc_uninit()?, 5);
    /// assert_eq!(*number, 5);
    /// # Ok::<(), sheaves::AllocError>(())
    /// ```
    #[inline]
    pub fn try_alloc_uninit(&self) -> Result<PoolBox<MaybeUninit<T>>, AllocError> {
        self.slot()
            .map(PoolBox::from_slot)
            .map_err(|kind| self.error(kind))
    }

    /// Moves `value` into the pool and pins it there: its memory is not reused before it is dropped.
    ///
    /// # Panics
    ///
    /// As [`Pool::alloc`].
    ///
    /// ```
    /// let pool = sheaves::Pool::new("pinned");
    /// let mut pinned = pool.alloc_pin(core::future::ready(7));
    /// let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    /// assert!(Future::poll(pinned.as_mut(), &mut context).is_ready());
    /// ```
    #[inline]
    pub fn alloc_pin(&self, value: T) -> Pin<PoolBox<T>> {
        PoolBox::into_pin(self.alloc(value))
    }

    /// As [`Pool::alloc_pin`], or gives the value back.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_alloc`].
    ///
    /// ```
    /// let pool = sheaves::Pool::new("pinned");
    /// assert!(pool.try_alloc_pin(core::marker::PhantomPinned).is_ok());
    /// ```
    #[inline]
    pub fn try_alloc_pin(&self, value: T) -> Result<Pin<PoolBox<T>>, AllocError<T>> {
        self.try_alloc(value).map(PoolBox::into_pin)
    }

    /// Where a thread remembers its sheaves of this pool.
    pub(super) const KEY: SizeKey = SizeKey::of(size_of::<T>());

    #[inline(always)]
    fn slot(&self) -> Result<Slot, AllocErrorKind> {
        match cache::pop(Self::KEY, self.handle.id()) {
            Some(slot) => Ok(slot),
            None => self.handle.cache().alloc_cold(Self::KEY),
        }
    }

    #[cold]
    fn error(&self, kind: AllocErrorKind) -> AllocError {
        AllocError::new(kind, self.handle.cache().name())
    }

    /// A slot, or the end of a plain form: nothing but a pointer comes back to the fast path.
    #[cold]
    #[inline(never)]
    fn slot_or_refuse(&self) -> Slot {
        // Opaque: or the address of the cache, which this alone uses, would be loaded on the fast path, as an argument.
        let this = core::hint::black_box(self);
        match this.handle.cache().alloc_cold(Self::KEY) {
            Ok(slot) => slot,
            Err(kind) => refuse::<T>(&self.error(kind)),
        }
    }
}

/// What a plain form does when there is no slot: as `Box` when memory is out, a panic at a limit.
#[cold]
#[inline(never)]
pub(super) fn refuse<T>(error: &AllocError) -> ! {
    match error.kind() {
        AllocErrorKind::OutOfMemory => handle_alloc_error(Layout::new::<T>()),
        _ => panic!("{error}"),
    }
}
