//! The token of one slot.

use core::ptr::{self, NonNull};

/// One slot, free or allocated, in the hands of whoever holds the token.
///
/// Tokens are moved, never copied. Dropping one loses its slot, so only the slab layer and the end users
/// of memory do that.
///
/// # Invariants
///
/// 1. The pointer is the start of a slot of a slab that stands, with the provenance of the whole slab.
/// 2. No other token names this slot, and its bit in the slab's bitmap is clear.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Slot(NonNull<u8>);

// SAFETY: a token owns its slot (invariant 2); memory may be owned by any thread.
unsafe impl Send for Slot {}

impl Slot {
    /// Makes the token of the slot that starts at `start`.
    ///
    /// Only the address of `start` counts: a user's pointer may have shrunk to a single field, while the
    /// token needs the header beside it. The slab exposed its provenance when it was set up.
    ///
    /// # Safety
    ///
    /// `start` is the address of a slot of a standing slab, which its caller owns and gives up: no other
    /// token names it, and it is not free in its slab.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr(start: NonNull<u8>) -> Self {
        let exposed = ptr::with_exposed_provenance_mut(start.addr().get());
        // SAFETY: the address is that of a `NonNull`.
        Self(unsafe { NonNull::new_unchecked(exposed) })
    }

    /// Gives the slot to an owner outside the pool's layers.
    #[inline(always)]
    pub(crate) fn into_ptr(self) -> NonNull<u8> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn addr(&self) -> usize {
        self.0.addr().get()
    }
}

/// Slots of the models: memory of their own, with content that loom watches.
#[cfg(all(test, loom))]
impl Slot {
    /// A new slot with `content`.
    pub(crate) fn of_model(content: usize) -> Self {
        let cell = Box::into_raw(Box::new(loom::cell::Cell::new(content)));
        let _ = cell.expose_provenance();
        let start = NonNull::new(cell.cast()).expect("a box has an address");
        // SAFETY: nobody reads the header of a model's slot; the address is new, so no other token names it.
        unsafe { Self::from_ptr(start) }
    }

    /// The content, which is also written: two uses that are not ordered are a race.
    pub(crate) fn content(&self) -> usize {
        let cell = self.0.cast::<loom::cell::Cell<usize>>();
        // SAFETY: models make their slots with `of_model`, and the token owns what was made there.
        let cell = unsafe { cell.as_ref() };
        let content = cell.get();
        cell.set(content);
        content
    }

    /// Frees the memory of the slot.
    pub(crate) fn end(self) -> usize {
        let content = self.content();
        let cell = self.0.cast::<loom::cell::Cell<usize>>();
        // SAFETY: as in `content`; the token ends here.
        drop(unsafe { Box::from_raw(cell.as_ptr()) });
        content
    }
}
