//! What a memory checker is told: which memory nobody may use.
//!
//! Under AddressSanitizer, which the build script finds out, and under Valgrind, with the feature `valgrind`, free
//! slots, guard bytes and what is left over in headers and runs are marked as out of bounds, in a sheaf and a barn as
//! well as in a slab. So a stray access is told where it happens. Elsewhere all of this is nothing.
//!
//! Marks are set when a slot leaves its user and lifted when it reaches one. Whoever writes to a free slot in
//! between, opens it first.

use core::ptr::NonNull;

/// Whether there may be a checker to tell. A constant, so that what only it needs is left out elsewhere.
pub(crate) const WATCHED: bool = cfg!(any(sheaves_asan, feature = "valgrind"));

/// Nobody may use these bytes until they are opened.
#[inline(always)]
pub(crate) fn close(start: NonNull<u8>, len: usize) {
    if WATCHED {
        tell(Mark::Closed, start, len);
    }
}

/// These bytes may be used; what is in them is of no interest.
#[inline(always)]
pub(crate) fn open(start: NonNull<u8>, len: usize) {
    if WATCHED {
        tell(Mark::Open, start, len);
    }
}

/// These bytes may be used, and hold what was written to them before they were closed.
#[inline(always)]
pub(crate) fn reopen(start: NonNull<u8>, len: usize) {
    if WATCHED {
        tell(Mark::Written, start, len);
    }
}

/// Opens a slot for a value.
#[inline(always)]
pub(crate) fn open_value<T>(start: NonNull<u8>) -> NonNull<T> {
    open(start, size_of::<T>());
    start.cast()
}

/// Closes the slot of a value that is gone.
#[inline(always)]
pub(crate) fn close_value<T>(start: NonNull<T>) {
    close(start.cast(), size_of::<T>());
}

#[derive(Clone, Copy)]
enum Mark {
    Closed,
    Open,
    Written,
}

#[inline(never)]
fn tell(mark: Mark, start: NonNull<u8>, len: usize) {
    #[cfg(sheaves_asan)]
    asan::tell(mark, start, len);
    #[cfg(feature = "valgrind")]
    valgrind::tell(mark, start, len);
    #[cfg(not(any(sheaves_asan, feature = "valgrind")))]
    let _ = (mark, start, len);
}

#[cfg(sheaves_asan)]
mod asan {
    use core::ffi::c_void;
    use core::ptr::NonNull;

    use super::Mark;

    // SAFETY: the sanitizer's interface, as its header declares it; the runtime is linked into such builds.
    unsafe extern "C" {
        fn __asan_poison_memory_region(start: *const c_void, len: usize);
        fn __asan_unpoison_memory_region(start: *const c_void, len: usize);
    }

    pub(super) fn tell(mark: Mark, start: NonNull<u8>, len: usize) {
        let start = start.as_ptr().cast_const().cast();
        match mark {
            // SAFETY: changes what the sanitizer believes of the memory, and no memory of the program.
            Mark::Closed => unsafe { __asan_poison_memory_region(start, len) },
            // SAFETY: as above.
            Mark::Open | Mark::Written => unsafe { __asan_unpoison_memory_region(start, len) },
        }
    }
}

#[cfg(feature = "valgrind")]
mod valgrind {
    use core::ptr::NonNull;

    use super::Mark;

    /// Memcheck's requests, in the order of its header: `('M' << 24) + ('C' << 16)` and a number.
    const NOACCESS: usize = 0x4d43_0000;
    const UNDEFINED: usize = NOACCESS + 1;
    const DEFINED: usize = NOACCESS + 2;

    pub(super) fn tell(mark: Mark, start: NonNull<u8>, len: usize) {
        let request = match mark {
            Mark::Closed => NOACCESS,
            Mark::Open => UNDEFINED,
            Mark::Written => DEFINED,
        };
        ask(&[request, start.addr().get(), len, 0, 0, 0]);
    }

    /// Valgrind knows this sequence of instructions, which does nothing on a processor. On other processors than this
    /// one the sequence is another, and nothing is told.
    #[cfg(target_arch = "x86_64")]
    fn ask(request: &[usize; 6]) {
        // SAFETY: rotates a register by 128 bits in all and exchanges another with itself; under Valgrind `rdx` takes
        // the answer, and the request is read.
        unsafe {
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") request.as_ptr(),
                inout("rdx") 0_usize => _,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ask(_request: &[usize; 6]) {}
}
