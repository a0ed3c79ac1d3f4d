//! The flat page map: one array, reserved as a whole and made writable by the chunk.

use super::{AtomicU32, AtomicUsize, Ordering, PAGES};

/// Entries of a chunk, the unit in which the array is made writable: 2 MiB of it, for 32 GiB of addresses, so
/// that few processes need more than a system call or two, and locked memory grows by no more than that.
const CHUNK: usize = 1 << 19;

/// Words of the bitmap of writable chunks.
pub(super) const OPEN_WORDS: usize = PAGES / CHUNK / usize::BITS as usize;

/// Bytes of the array.
const BYTES: usize = PAGES * size_of::<AtomicU32>();

/// A new array whose entries read 0 and must not be written to yet; `None` where address space is too dear.
pub(super) fn map() -> Option<*mut AtomicU32> {
    imp::map()
}

/// Takes an array away.
///
/// # Safety
///
/// `base` came from [`map`], and nothing uses the array any more.
pub(super) unsafe fn unmap(base: *mut AtomicU32) {
    // SAFETY: the caller's promise is the one asked for.
    unsafe { imp::unmap(base) };
}

/// Makes the entries of a range writable; `false` if memory is out. Bits of `open` stand for chunks that are.
///
/// # Safety
///
/// `base` came from [`map`], `open` is used with no other array, and the range lies within [`PAGES`].
#[must_use]
pub(super) unsafe fn reserve(
    open: &[AtomicUsize; OPEN_WORDS],
    base: *mut AtomicU32,
    first: usize,
    pages: usize,
) -> bool {
    for chunk in first / CHUNK..(first + pages).div_ceil(CHUNK) {
        let word = &open[chunk / usize::BITS as usize];
        let bit = 1 << (chunk % usize::BITS as usize);
        // Acquire: pairs with the release below, so that the chunk is seen to be writable.
        if word.load(Ordering::Acquire) & bit != 0 {
            continue;
        }
        // SAFETY: the caller says the range lies in the array, and so do the chunks it touches, as the array
        // is a whole number of chunks.
        let start = unsafe { base.add(chunk * CHUNK) };
        // SAFETY: likewise. Two threads may both get here: opening twice is harmless.
        if !unsafe { imp::open(start, CHUNK * size_of::<AtomicU32>()) } {
            return false;
        }
        // Release: pairs with the acquire above.
        word.fetch_or(bit, Ordering::Release);
    }
    true
}

#[cfg(all(unix, not(miri)))]
mod imp {
    use core::ptr::NonNull;

    use super::{AtomicU32, BYTES};
    use crate::page::sys::{self, Mapping};

    /// The array may take this part of a limited address space. The rest is the program's.
    const SHARE: usize = 8;

    pub(super) fn map() -> Option<*mut AtomicU32> {
        if sys::address_space_limit() / SHARE < BYTES {
            return None;
        }
        let base = sys::map(BYTES, 1, Mapping::Zeros)?;
        // SAFETY: a mapping of this call, this long.
        unsafe { sys::keep_sparse(base, BYTES) };
        // Mappings start at hardware pages, far more aligned than an entry.
        Some(base.cast().as_ptr())
    }

    /// # Safety
    ///
    /// As the function that calls it.
    pub(super) unsafe fn unmap(base: *mut AtomicU32) {
        if let Some(base) = NonNull::new(base) {
            // SAFETY: the caller says it is a mapping of this module's, this long, and unused.
            unsafe { sys::unmap(base.cast(), BYTES) };
        }
    }

    /// # Safety
    ///
    /// The `len` bytes from `start` on lie in an array of [`map`].
    pub(super) unsafe fn open(start: *mut AtomicU32, len: usize) -> bool {
        // SAFETY: the caller says it is part of a mapping of this module's.
        NonNull::new(start).is_some_and(|start| unsafe { sys::open(start.cast(), len) })
    }
}

/// No reservation of address space is known here, so there is never an array.
#[cfg(not(all(unix, not(miri))))]
mod imp {
    use super::AtomicU32;

    pub(super) fn map() -> Option<*mut AtomicU32> {
        None
    }

    /// # Safety
    ///
    /// None: it is never called.
    pub(super) unsafe fn unmap(_: *mut AtomicU32) {}

    /// # Safety
    ///
    /// None: it is never called.
    pub(super) unsafe fn open(_: *mut AtomicU32, _: usize) -> bool {
        false
    }
}
