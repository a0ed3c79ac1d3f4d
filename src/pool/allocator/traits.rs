//! The allocator traits, of whichever crate and version, all by one macro.
//!
//! There are several traits of this name and none is another: that of allocator-api2 in each of its incompatible
//! versions, and that of core. Their methods are the same, so one macro implements them all, side by side.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::pool::{Pool, Pooled};

/// The pool of a type that has one, as an allocator without size.
///
/// A `Box` or `Vec` with a [`Pool`] or `&Pool` as its allocator is a pointer longer than one without; with a
/// `PoolOf` it is not. All values are the same allocator, and `Default` makes one where a container makes its
/// own.
///
/// If the pool of the type cannot be built the first allocation ends the process, since an allocator must not
/// panic.
///
/// ```
/// use allocator_api2::{boxed::Box, vec::Vec};
/// use sheaves::{PoolOf, Pooled};
///
/// #[derive(Pooled)]
/// struct Node {
///     key: u64,
/// }
///
/// let node: Box<Node, PoolOf<Node>> = Box::new_in(Node { key: 7 }, PoolOf::new());
/// assert_eq!(size_of_val(&node), size_of::<usize>());
///
/// let mut keys: Vec<u64, PoolOf<Node>> = Vec::new_in(PoolOf::new());
/// keys.extend([node.key, 8]);
/// assert_eq!((Node::pool().stats().live, Node::pool().stats().blocks), (1, 1));
/// ```
pub struct PoolOf<T>(PhantomData<fn(T) -> T>);

impl<T> PoolOf<T> {
    /// The allocator.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Pooled> PoolOf<T> {
    /// The pool; what cannot be built ends the process.
    #[inline(always)]
    fn pool() -> &'static Pool<T> {
        let unwinding = EndOnUnwind;
        let pool = T::pool();
        let _ = ManuallyDrop::new(unwinding);
        pool
    }
}

/// Ends the process if a panic passes it.
struct EndOnUnwind;

impl Drop for EndOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl<T> Clone for PoolOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PoolOf<T> {}

impl<T> Default for PoolOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for PoolOf<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for PoolOf<T> {}

impl<T> fmt::Debug for PoolOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolOf<{}>", core::any::type_name::<T>())
    }
}

/// Implements one of the traits for one type, by the pool that an expression gives.
///
/// Of a version that implements its trait for references, `&Pool<T>` is an allocator too; all do.
macro_rules! impl_allocator {
    (@one [$($path:ident)::+] [$($bound:tt)*] $type:ty, $this:ident => $pool:expr) => {
        // SAFETY: memory stays valid until it is given back, whatever happens to the handle: slots and blocks
        // that are out keep their cache. Handles of one pool are equivalent, and so are all values of `PoolOf`.
        // The methods do as the trait asks, see the module above.
        unsafe impl<T: $($bound)*> $($path)::+::Allocator for $type {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                let $this = self;
                $pool.raw_allocate(layout).ok_or($($path)::+::AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                let $this = self;
                $pool.raw_allocate_zeroed(layout).ok_or($($path)::+::AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
                let $this = self;
                // SAFETY: passed on.
                unsafe { $pool.raw_deallocate(start, layout) };
            }

            unsafe fn grow(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                let $this = self;
                // SAFETY: passed on.
                unsafe { $pool.raw_grow(start, old, new, false) }.ok_or($($path)::+::AllocError)
            }

            unsafe fn grow_zeroed(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                let $this = self;
                // SAFETY: passed on.
                unsafe { $pool.raw_grow(start, old, new, true) }.ok_or($($path)::+::AllocError)
            }

            unsafe fn shrink(
                &self,
                start: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($path)::+::AllocError> {
                let $this = self;
                // SAFETY: passed on.
                unsafe { $pool.raw_shrink(start, old, new) }.ok_or($($path)::+::AllocError)
            }
        }
    };
    ($($path:ident)::+) => {
        impl_allocator!(@one [$($path)::+] [] Pool<T>, pool => pool);
        impl_allocator!(@one [$($path)::+] [Pooled] PoolOf<T>, _of => Self::pool());
    };
}

#[cfg(feature = "allocator-api2-02")]
impl_allocator!(allocator_api2::alloc);
#[cfg(feature = "allocator-api2-04")]
impl_allocator!(allocator_api2_04::alloc);
#[cfg(core_allocator)]
impl_allocator!(core::alloc);
