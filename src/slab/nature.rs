//! What a cache has to know of the type of its objects, besides size and alignment.

use core::fmt;
use core::ptr::NonNull;

/// How the objects of a cache are dropped; nothing where that is nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Destructor(Option<unsafe fn(NonNull<u8>)>);

impl Destructor {
    /// For objects that need none.
    pub(crate) const NONE: Self = Self(None);

    /// The destructor of a type.
    pub(crate) const fn of<T>() -> Self {
        /// # Safety
        ///
        /// A `T` is at `start`, which nobody uses after this.
        unsafe fn destroy<T>(start: NonNull<u8>) {
            // SAFETY: by the caller's word.
            unsafe { start.cast::<T>().drop_in_place() };
        }
        if core::mem::needs_drop::<T>() {
            Self(Some(destroy::<T>))
        } else {
            Self::NONE
        }
    }

    #[inline(always)]
    pub(crate) fn is_some(self) -> bool {
        self.0.is_some()
    }

    /// # Safety
    ///
    /// An object of the type is at `start`, which nobody uses after this; or the destructor is none.
    #[cfg(feature = "rcu")]
    pub(crate) unsafe fn run(self, start: NonNull<u8>) {
        if let Some(destroy) = self.0 {
            // SAFETY: passed on.
            unsafe { destroy(start) };
        }
    }
}

impl fmt::Debug for Destructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Destructor").field(&self.is_some()).finish()
    }
}

/// The type of a cache's objects, as far as the engine has to know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nature {
    #[cfg_attr(
        not(feature = "rcu"),
        expect(dead_code, reason = "read by deferred free")
    )]
    pub(crate) destructor: Destructor,
    /// Every slot holds an object from the beginning, all of zeros, and readers may see it at any time: a slot is
    /// never written but by its owner and the readers' own atomics, and a slab outlives the readers.
    pub(crate) stable: bool,
}
