//! Mallocs as allocators of collections.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::raw::Named;

/// A malloc as an allocator, which reallocates where std's `Vec` would.
pub struct On<A>(PhantomData<A>);

impl<A> On<A> {
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A> Clone for On<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for On<A> {}

fn slice(start: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
    let start = NonNull::new(start).ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(start, size))
}

// SAFETY: memory is the malloc's, which is one for the process. The workloads ask for no empty layouts, and for no
// other alignment when they grow or shrink.
unsafe impl<A: Named> Allocator for On<A> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        assert_ne!(layout.size(), 0);
        // SAFETY: the layout is not empty.
        slice(unsafe { A::ALLOC.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { A::ALLOC.dealloc(start.as_ptr(), layout) };
    }

    #[inline]
    unsafe fn grow(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        assert_eq!(old.align(), new.align());
        // SAFETY: passed on; the new size is not zero.
        let grown = unsafe { A::ALLOC.realloc(start.as_ptr(), old, new.size()) };
        slice(grown, new.size())
    }
}
