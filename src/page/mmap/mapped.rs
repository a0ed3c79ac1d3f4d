//! A box in a mapping of its own.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::page::sys::{self, Mapping};

/// Owns a `T` in a mapping of its own, as `Box` does in the global allocator, which this needs not.
///
/// # Invariants
///
/// The pointer is to an initialised `T` in a mapping that nobody else uses.
pub(super) struct Mapped<T>(NonNull<T>);

// SAFETY: it owns the `T`, so sending it sends the `T`.
unsafe impl<T: Send> Send for Mapped<T> {}

impl<T> Mapped<T> {
    /// Moves a value into a new mapping; `None` if there is none to be had.
    pub(super) fn new(value: T) -> Option<Self> {
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() != 0) };
        let place = sys::map(size_of::<T>(), align_of::<T>(), Mapping::Open)?.cast::<T>();
        // SAFETY: a fresh mapping, large enough and at a hardware page, hence aligned.
        unsafe { place.write(value) };
        Some(Self(place))
    }
}

impl<T> Deref for Mapped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: initialised and owned (invariant); borrowed as long as `self` is.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Mapped<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: initialised and owned (invariant); borrowed alone as long as `self` is.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: initialised and owned (invariant), and not used after this.
        unsafe { self.0.drop_in_place() };
        // SAFETY: the mapping is ours alone (invariant), and this long.
        unsafe { sys::unmap(self.0.cast(), size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Arc;

    #[test]
    fn owns_its_value() {
        let value = Arc::new(7);
        let mut mapped = Mapped::new((Arc::clone(&value), [0_u8; 5000])).unwrap();
        mapped.1[4999] = 3;
        assert_eq!((mapped.deref().0.as_ref(), mapped.1[4999]), (&7, 3));
        assert_eq!(Arc::strong_count(&value), 2);
        drop(mapped);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
