//! Shared ownership that can be refused.
//!
//! std's `Arc` ends the process where there is no memory for it, and on a stable compiler there is no other way to make
//! one. What is allocated while a user's operation is under way, which may fail but must not do that, is owned by a
//! [`Shared`]. It has what this crate needs of `Arc`, and counts as `Arc` does: all strong owners together hold one of
//! the weak shares, and the memory goes with the last of these.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, offset_of};
use core::ops::Deref;
use core::ptr::NonNull;

use super::{AtomicUsize, Ordering};

/// What is shared.
///
/// The counts cannot run over: each share lies somewhere in memory, or was leaked one by one for centuries.
#[repr(C)]
pub(crate) struct Inner<T: ?Sized> {
    strong: AtomicUsize,
    weak: AtomicUsize,
    value: ManuallyDrop<T>,
}

/// A share in a value, which lives until the last share is dropped.
///
/// # Invariants
///
/// 1. The pointer is that of a `Box<Inner<T>>` taken apart, for which this holds one of the strong counts.
/// 2. While there is a strong count the value is there; all of them together have one weak count, with which the memory
///    stays.
pub(crate) struct Shared<T: ?Sized> {
    inner: NonNull<Inner<T>>,
    _owns: PhantomData<Inner<T>>,
}

/// A share in the memory of a value, which does not keep the value: it holds one of the weak counts of what
/// [`Shared`] points to.
pub(crate) struct Weak<T: ?Sized> {
    inner: NonNull<Inner<T>>,
    _owns: PhantomData<Inner<T>>,
}

// SAFETY: as for `Arc`: any owner may use the value from any thread, and the last drops it.
unsafe impl<T: ?Sized + Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}
// SAFETY: as above: a weak share may become a strong one.
unsafe impl<T: ?Sized + Send + Sync> Send for Weak<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Weak<T> {}

impl<T> Shared<T> {
    /// Shares a value; `None` if there is no memory, and then the value is dropped.
    pub(crate) fn try_new(value: T) -> Option<Self> {
        Self::try_new_cyclic(|_| value)
    }

    /// Shares the value that `make` makes, which is told the address where it will be.
    pub(crate) fn try_new_cyclic(make: impl FnOnce(*const T) -> T) -> Option<Self> {
        // A vector of one asks for exactly what a box of one has, and can be refused.
        let mut room: Vec<Inner<T>> = Vec::new();
        room.try_reserve_exact(1).ok()?;
        if room.capacity() != 1 {
            return None;
        }
        let inner = NonNull::new(room.as_mut_ptr())?;
        let value = make(inner.as_ptr().wrapping_byte_add(Self::OFFSET).cast());
        let new = Inner {
            strong: AtomicUsize::new(1),
            weak: AtomicUsize::new(1),
            value: ManuallyDrop::new(value),
        };
        // SAFETY: the vector has room for one, and is not used any more.
        unsafe { inner.write(new) };
        // What it allocated, in the layout of a box, is this share's.
        let _room = ManuallyDrop::new(room);
        Some(Self::of(inner))
    }

    /// From the start of the block to the value.
    const OFFSET: usize = offset_of!(Inner<T>, value);

    /// The share of whoever has added one by [`Shared::increment_strong_count`].
    ///
    /// # Safety
    ///
    /// The value, at an address that [`Shared::as_ptr`] gave, is alive, and the share that was added is nobody else's.
    pub(crate) unsafe fn from_raw(value: *const T) -> Self {
        let inner = value.wrapping_byte_sub(Self::OFFSET).cast_mut().cast();
        // SAFETY: the value lies in a block, which has no null address.
        Self::of(unsafe { NonNull::new_unchecked(inner) })
    }

    /// Adds a share.
    ///
    /// # Safety
    ///
    /// The value, at an address that [`Shared::as_ptr`] gave, is alive.
    pub(crate) unsafe fn increment_strong_count(value: *const T) {
        // SAFETY: the value is alive, and this share is nobody's: it is forgotten.
        let this = ManuallyDrop::new(unsafe { Self::from_raw(value) });
        this.inner().add_owner();
    }

    /// Drops a share that was added by [`Shared::increment_strong_count`].
    ///
    /// # Safety
    ///
    /// As for [`Shared::from_raw`].
    pub(crate) unsafe fn decrement_strong_count(value: *const T) {
        // SAFETY: passed on.
        drop(unsafe { Self::from_raw(value) });
    }

    /// A share that does not keep the value, and sees it as `cast` makes it.
    ///
    /// # Safety
    ///
    /// `cast` returns what it is given with the metadata of a type that the value can be used as.
    pub(crate) unsafe fn downgrade_as<U: ?Sized>(
        this: &Self,
        cast: impl FnOnce(*mut Inner<T>) -> *mut Inner<U>,
    ) -> Weak<U> {
        let inner = cast(this.inner.as_ptr());
        // Relaxed: whoever adds a share has one.
        this.inner().weak.fetch_add(1, Ordering::Relaxed);
        Weak {
            // SAFETY: the address is the block's, by the caller's word.
            inner: unsafe { NonNull::new_unchecked(inner) },
            _owns: PhantomData,
        }
    }
}

impl<T: ?Sized> Inner<T> {
    fn add_owner(&self) {
        // Relaxed: whoever adds a share has one.
        self.strong.fetch_add(1, Ordering::Relaxed);
    }
}

impl<T: ?Sized> Shared<T> {
    /// The share of whoever has added one.
    fn of(inner: NonNull<Inner<T>>) -> Self {
        Self {
            inner,
            _owns: PhantomData,
        }
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: the block stands while a share is held (invariant 2).
        unsafe { self.inner.as_ref() }
    }

    /// The address of the value.
    pub(crate) fn as_ptr(this: &Self) -> *const T {
        &raw const **this
    }

    pub(crate) fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.inner.addr() == other.inner.addr()
    }

    /// How many own the value.
    pub(crate) fn strong_count(this: &Self) -> usize {
        // Acquire: what owners that are gone did is seen, for what it is worth while others come and go.
        this.inner().strong.load(Ordering::Acquire)
    }
}

impl<T: ?Sized> Weak<T> {
    /// A share of the value, if it is still there.
    pub(crate) fn upgrade(&self) -> Option<Shared<T>> {
        // SAFETY: the block stands while a weak share is held.
        let inner = unsafe { self.inner.as_ref() };
        let one_more = |strong: usize| (strong > 0).then(|| strong + 1);
        // Acquire: what is done to the value by those that are gone is seen; it was published when the weak share was.
        // Relaxed: a look that failed leads to nothing.
        let added = inner
            .strong
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more);
        added.ok().map(|_| Shared::of(self.inner))
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        self.inner().add_owner();
        Self::of(self.inner)
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        // Release: what this owner did is seen by the last. Acquire: the last sees what all did.
        if self.inner().strong.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: that was the last strong count.
            unsafe { self.drop_slow() };
        }
    }
}

impl<T: ?Sized> Shared<T> {
    /// # Safety
    ///
    /// No strong count is left, and this is called once.
    #[cold]
    #[inline(never)]
    unsafe fn drop_slow(&mut self) {
        // The weak share of the strong ones; goes also if the value's destructor unwinds.
        let _weak = Weak {
            inner: self.inner,
            _owns: PhantomData,
        };
        // SAFETY: the block stands while there is a weak count; nobody else has or gets a reference to the value.
        let value = unsafe { &mut (*self.inner.as_ptr()).value };
        // SAFETY: it is dropped once, by the caller's word, and not used after this.
        unsafe { ManuallyDrop::drop(value) };
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        // SAFETY: the block stands while a weak share is held.
        let inner = unsafe { self.inner.as_ref() };
        // Release, Acquire: as for the strong count.
        if inner.weak.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the pointer is a box's taken apart, and nobody else has a share. The value is gone: while it was
            // there the strong owners had a weak share.
            drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T: ?Sized> AsRef<T> for Shared<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
