//! `Box`'s traits for [`PoolBox`]: each forwards to the object.
#![forbid(unsafe_code)]

use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::panic::UnwindSafe;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::PoolBox;

impl<T> AsRef<T> for PoolBox<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> AsMut<T> for PoolBox<T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T> Borrow<T> for PoolBox<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T> BorrowMut<T> for PoolBox<T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Pointer for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&Self::as_ptr(self), f)
    }
}

impl<T: PartialEq> PartialEq for PoolBox<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for PoolBox<T> {}

impl<T: PartialOrd> PartialOrd for PoolBox<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord> Ord for PoolBox<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash> Hash for PoolBox<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// Every method forwards, since a hasher may treat numbers otherwise than their bytes.
impl<T: Hasher> Hasher for PoolBox<T> {
    fn finish(&self) -> u64 {
        (**self).finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        (**self).write(bytes);
    }

    fn write_u8(&mut self, value: u8) {
        (**self).write_u8(value);
    }

    fn write_u16(&mut self, value: u16) {
        (**self).write_u16(value);
    }

    fn write_u32(&mut self, value: u32) {
        (**self).write_u32(value);
    }

    fn write_u64(&mut self, value: u64) {
        (**self).write_u64(value);
    }

    fn write_u128(&mut self, value: u128) {
        (**self).write_u128(value);
    }

    fn write_usize(&mut self, value: usize) {
        (**self).write_usize(value);
    }

    fn write_i8(&mut self, value: i8) {
        (**self).write_i8(value);
    }

    fn write_i16(&mut self, value: i16) {
        (**self).write_i16(value);
    }

    fn write_i32(&mut self, value: i32) {
        (**self).write_i32(value);
    }

    fn write_i64(&mut self, value: i64) {
        (**self).write_i64(value);
    }

    fn write_i128(&mut self, value: i128) {
        (**self).write_i128(value);
    }

    fn write_isize(&mut self, value: isize) {
        (**self).write_isize(value);
    }
}

impl<T: Error> Error for PoolBox<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        (**self).source()
    }
}

impl<T: Iterator> Iterator for PoolBox<T> {
    type Item = T::Item;

    fn next(&mut self) -> Option<T::Item> {
        (**self).next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (**self).size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<T::Item> {
        (**self).nth(n)
    }
}

impl<T: DoubleEndedIterator> DoubleEndedIterator for PoolBox<T> {
    fn next_back(&mut self) -> Option<T::Item> {
        (**self).next_back()
    }

    fn nth_back(&mut self, n: usize) -> Option<T::Item> {
        (**self).nth_back(n)
    }
}

impl<T: ExactSizeIterator> ExactSizeIterator for PoolBox<T> {}

impl<T: FusedIterator> FusedIterator for PoolBox<T> {}

impl<T: Future + Unpin> Future for PoolBox<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        Pin::new(&mut **self).poll(cx)
    }
}

/// The object does not move when the box does.
impl<T> Unpin for PoolBox<T> {}

impl<T: UnwindSafe> UnwindSafe for PoolBox<T> {}

impl<T> From<PoolBox<T>> for Pin<PoolBox<T>> {
    fn from(boxed: PoolBox<T>) -> Self {
        PoolBox::into_pin(boxed)
    }
}

/// Clones the object into the same pool, even if no handle of it is left.
///
/// # Panics
///
/// As [`Pool::alloc`](crate::Pool::alloc).
impl<T: Clone> Clone for PoolBox<T> {
    fn clone(&self) -> Self {
        PoolBox::write(self.sibling(), (**self).clone())
    }
}
