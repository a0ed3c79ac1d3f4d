//! Where readers find objects of a type-stable pool.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use super::{StableBox, TypeStable, into_pointer};
use crate::grace::rcu::Guard;
use crate::sync::{AtomicPtr, Ordering};

/// Where readers find an object of a [`StablePool`](crate::StablePool).
///
/// ```
/// # use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// # use sheaves::{StableBox, StableCell, StablePool, TypeStable, rcu};
/// # struct Counter { hits: AtomicU64 }
/// # // SAFETY: an atomic of zero is valid.
/// # unsafe impl TypeStable for Counter {}
/// let pool: StablePool<Counter> = StablePool::new("counter");
/// let cell = StableCell::empty();
/// cell.swap(Some(pool.alloc(|counter| counter.hits.store(1, Relaxed))));
/// assert!(cell.load(&rcu::pin()).is_some_and(|counter| counter.hits.load(Relaxed) == 1));
/// ```
///
/// # Invariants
///
/// 1. The pointer is null or that of a box, which the cell owns.
pub struct StableCell<T: TypeStable> {
    pointer: AtomicPtr<T>,
    _owns: PhantomData<StableBox<T>>,
}

impl<T: TypeStable> StableCell<T> {
    /// A cell with nothing in it.
    pub const fn empty() -> Self {
        Self {
            pointer: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// What is there now, and may be freed and be another object at any moment. Its memory stays for as long as the
    /// thread is pinned. Never waits.
    #[inline]
    pub fn load<'g>(&self, guard: &'g Guard) -> Option<&'g T> {
        let _ = guard;
        // Acquire: pairs with the Release in `swap`; the object is seen as `swap` was told to publish it.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: null, or the pointer of a box that was in the cell just now (invariant 1), so its slot was out, its slab
        // stood, and the slot holds a `T` for as long as the slab stands. A slab that becomes empty later goes after a
        // grace period, so not while the guard lives.
        unsafe { pointer.as_ref() }
    }

    /// Whether `object`, loaded from here before, is still what is here, or is again.
    #[inline]
    pub fn holds(&self, object: &T) -> bool {
        // Acquire: what was read of the object before it was replaced is not mixed up with what comes after.
        ptr::eq(self.pointer.load(Ordering::Acquire), object)
    }

    /// Puts `new` in; what was there comes out. Readers may be looking at it still.
    pub fn swap(&self, new: Option<StableBox<T>>) -> Option<StableBox<T>> {
        // AcqRel: Release pairs with the Acquire in `load`. Acquire: the old object is seen as its writer left it.
        let old = self.pointer.swap(into_pointer(new), Ordering::AcqRel);
        // SAFETY: the cell owned the box (invariant 1); taken out just now, by nobody else.
        unsafe { StableBox::from_pointer(old) }
    }

    /// Takes out what is there.
    pub fn take(&self) -> Option<StableBox<T>> {
        self.swap(None)
    }
}

/// With nothing in it.
impl<T: TypeStable> Default for StableCell<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: TypeStable> Drop for StableCell<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T: TypeStable> fmt::Debug for StableCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: only shown.
        let pointer = self.pointer.load(Ordering::Relaxed);
        f.debug_tuple("StableCell").field(&pointer).finish()
    }
}
