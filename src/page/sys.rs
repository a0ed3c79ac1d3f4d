//! The system calls of this layer, with their lengths in bytes. Safe where the call can harm nobody.

use core::ffi::c_int;
use core::ptr::{NonNull, null_mut};

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};

/// No swap is set aside for address space that may never be used. Where the flag is missing that is so anyway.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NO_RESERVE: c_int = libc::MAP_NORESERVE;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const NO_RESERVE: c_int = 0;

/// The advice that lets memory go. Linux drops it at once, so that resident sizes show it; elsewhere
/// `MADV_DONTNEED` may be a mere hint and `MADV_FREE` is the one that frees.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PURGE: c_int = libc::MADV_DONTNEED;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PURGE: c_int = libc::MADV_FREE;

/// Bytes of the hardware's page.
pub(super) fn hardware_page() -> usize {
    // SAFETY: `sysconf` takes its argument by value and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // POSIX demands an answer; the fallback is the smallest page there is.
    usize::try_from(bytes).unwrap_or(4096)
}

/// What a new mapping may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// Address space only: any access faults until [`open`].
    Closed,
    /// Reads zeros; writes fault until [`open`].
    Zeros,
    /// Readable and writable at once, and accounted as such by the system.
    Open,
}

impl Mapping {
    fn access(self) -> c_int {
        match self {
            Self::Closed => PROT_NONE,
            Self::Zeros => PROT_READ,
            Self::Open => PROT_READ | PROT_WRITE,
        }
    }

    fn flags(self) -> c_int {
        match self {
            Self::Closed | Self::Zeros => MAP_PRIVATE | MAP_ANONYMOUS | NO_RESERVE,
            Self::Open => MAP_PRIVATE | MAP_ANONYMOUS,
        }
    }
}

/// A new private mapping of `len` bytes, a multiple of the hardware page unless `align` is at most that.
/// `align` is a power of two.
pub(super) fn map(len: usize, align: usize, mapping: Mapping) -> Option<NonNull<u8>> {
    // The system aligns to its own pages; for more, map more and cut both ends off.
    let slack = if align <= hardware_page() { 0 } else { align };
    let whole = len.checked_add(slack)?;
    // SAFETY: an anonymous mapping at an address of the system's choice replaces no other.
    let raw = unsafe { libc::mmap(null_mut(), whole, mapping.access(), mapping.flags(), -1, 0) };
    if raw == MAP_FAILED {
        return None;
    }
    let raw = NonNull::new(raw.cast::<u8>())?;
    if slack == 0 {
        return Some(raw);
    }
    let lead = raw.addr().get().next_multiple_of(align) - raw.addr().get();
    // SAFETY: `lead` is below `align`, hence within the mapping.
    let start = unsafe { raw.add(lead) };
    // SAFETY: `lead + len` is below `slack + len`, the length of the mapping.
    let end = unsafe { start.add(len) };
    if lead != 0 {
        // SAFETY: the first bytes of a mapping nobody knows of yet; both ends are at hardware pages.
        unsafe { unmap(raw, lead) };
    }
    // SAFETY: likewise the last ones. There is one hardware page at least, since `lead < slack`.
    unsafe { unmap(end, slack - lead) };
    Some(start)
}

/// Takes a mapping, or part of one, away.
///
/// # Safety
///
/// The range was mapped by this module, belongs to the caller, and is not accessed any more.
pub(super) unsafe fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: the caller gives the range up.
    let result = unsafe { libc::munmap(start.as_ptr().cast(), len) };
    // It can fail only if the process has too many mappings to cut one in two: the range leaks.
    debug_assert!(result == 0, "munmap failed");
}

/// Makes part of a mapping readable and writable; `false` if the system refuses for want of memory.
///
/// # Safety
///
/// The range was mapped by this module and belongs to the caller.
#[must_use]
pub(super) unsafe fn open(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: only gives rights, on a range of the caller's.
    let result = unsafe { libc::mprotect(start.as_ptr().cast(), len, PROT_READ | PROT_WRITE) };
    result == 0
}

/// Gives the memory behind a range back to the system; `false` if it refuses (it does for locked memory).
/// The range stays mapped; its contents are undefined, zeros if `true` on Linux.
///
/// # Safety
///
/// The range was mapped by this module and belongs to the caller; nothing accesses it during the call.
pub(super) unsafe fn purge(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: the caller owns the contents, which is all that is lost.
    unsafe { advise(start, len, PURGE) }
}

/// Asks for huge pages in a range. Only ever a wish.
///
/// # Safety
///
/// The range was mapped by this module and belongs to the caller.
pub(super) unsafe fn ask_huge(start: NonNull<u8>, len: usize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the advice changes neither contents nor access. It fails where there are no huge pages.
    let _ = unsafe { advise(start, len, libc::MADV_HUGEPAGE) };
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (start, len);
}

/// Keeps a sparsely used range sparse: no huge pages, and no place in core dumps. Only ever a wish.
///
/// # Safety
///
/// The range was mapped by this module and belongs to the caller.
pub(super) unsafe fn keep_sparse(start: NonNull<u8>, len: usize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: the advice changes neither contents nor access.
        let _ = unsafe { advise(start, len, advice) };
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (start, len);
}

/// Makes all hardware pages that a range touches resident and writable, contents unchanged; `false` if the
/// kernel does not know how (before 5.14) or cannot.
///
/// # Safety
///
/// Every hardware page of the range is mapped readable and writable.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) unsafe fn populate(start: NonNull<u8>, len: usize) -> bool {
    let lead = start.addr().get() % hardware_page();
    // Rounding out to hardware pages is harmless, as no contents change. The kernel rounds the end itself.
    let first = start.as_ptr().wrapping_sub(lead);
    // SAFETY: the advice changes no contents, and pages that are not mapped are an error.
    let result = unsafe { libc::madvise(first.cast(), len + lead, libc::MADV_POPULATE_WRITE) };
    result == 0
}

/// Turns a mapping of `old` bytes into one of `new` bytes aligned to `align`, in place or by moving the
/// page tables, not the contents. `None` leaves it as it was.
///
/// # Safety
///
/// The range was mapped by this module, belongs to the caller, and is not accessed during the call, nor at
/// its old place after success. Both lengths are multiples of the hardware page and not zero.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) unsafe fn remap(
    start: NonNull<u8>,
    old: usize,
    new: usize,
    align: usize,
) -> Option<NonNull<u8>> {
    if start.addr().get() % align == 0 {
        // SAFETY: the caller owns the range. Without flags it changes in place or not at all.
        let same = unsafe { libc::mremap(start.as_ptr().cast(), old, new, 0) };
        if same != MAP_FAILED {
            return NonNull::new(same.cast());
        }
    }
    let target = map(new, align, Mapping::Closed)?;
    // SAFETY: the target is a mapping of this call, `new` bytes long, which the old one may replace.
    let moved = unsafe {
        libc::mremap(
            start.as_ptr().cast(),
            old,
            new,
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            target.as_ptr().cast::<libc::c_void>(),
        )
    };
    // A failure may come before or after the kernel has unmapped the target. It cannot be unmapped here: it
    // may be another thread's by now. At worst address space leaks, and no memory.
    if moved == MAP_FAILED {
        None
    } else {
        NonNull::new(moved.cast())
    }
}

/// The most address space the process may map, in bytes.
pub(super) fn address_space_limit() -> usize {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut limit = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the kernel fills in a structure of ours. If it fails the structure says "no limit".
        unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    usize::MAX
}

/// `madvise`, told apart into done and not done.
///
/// # Safety
///
/// The range was mapped by this module, and what the advice does to it is the caller's to decide.
unsafe fn advise(start: NonNull<u8>, len: usize, advice: c_int) -> bool {
    // SAFETY: the caller's promise.
    let result = unsafe { libc::madvise(start.as_ptr().cast(), len, advice) };
    result == 0
}

/// How many hardware pages of a mapped range are resident; 0 if it is not mapped as a whole.
#[cfg(all(test, target_os = "linux"))]
pub(super) fn resident(start: NonNull<u8>, len: usize) -> usize {
    let mut pages = vec![0_u8; len.div_ceil(hardware_page())];
    // SAFETY: the kernel writes one byte a page to the vector, which has one a page.
    let result = unsafe { libc::mincore(start.as_ptr().cast(), len, pages.as_mut_ptr()) };
    if result != 0 {
        return 0;
    }
    pages.iter().filter(|&&page| page & 1 == 1).count()
}
