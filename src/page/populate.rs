//! Making memory resident before it is used.

use core::ptr::NonNull;

/// Makes every hardware page of the `len` bytes from `start` on resident and writable, so that later
/// accesses do not fault.
///
/// Linux does it in one system call which leaves all contents as they are. Where that fails (kernels before
/// 5.14, other systems) a zero byte is written to each hardware page, inside the range only.
///
/// Real time: faults in what is not resident, about a microsecond for each hardware page at best.
///
/// # Safety
///
/// The range lies in one allocation that is readable and writable, and belongs to the caller alone during the
/// call. Its contents are undefined afterwards.
pub(crate) unsafe fn populate(start: NonNull<u8>, len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: the range is allocated, by the caller's promise.
    if unsafe { populate_shared(start, len) } {
        return;
    }
    // SAFETY: the caller's promise is the one asked for.
    unsafe { touch(start, len) };
}

/// As [`populate`], but contents stay as they are, so others may be using parts of the range. `false` where
/// the system has no call for that; then nothing was done.
///
/// # Safety
///
/// The range lies in one allocation that is readable and writable and stays so during the call.
pub(crate) unsafe fn populate_shared(start: NonNull<u8>, len: usize) -> bool {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
    // SAFETY: the range is allocated, so every hardware page it touches is mapped.
    let populated = unsafe { super::sys::populate(start, len) };
    #[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
    let populated = {
        let _ = (start, len);
        false
    };
    populated
}

/// Writes a zero byte to each hardware page of a range.
///
/// # Safety
///
/// As [`populate`].
pub(crate) unsafe fn touch(start: NonNull<u8>, len: usize) {
    #[cfg(all(unix, not(miri)))]
    let step = super::sys::hardware_page();
    // The smallest hardware page there is: at worst a page is written to more than once.
    #[cfg(not(all(unix, not(miri))))]
    let step = 4096;
    let mut at = 0;
    while at < len {
        // SAFETY: `at` is below `len`, so this stays in the caller's allocation.
        let byte = unsafe { start.add(at) };
        // SAFETY: the caller says the range is writable and nobody else's. Volatile, lest the write be
        // left out as one nobody reads.
        unsafe { byte.write_volatile(0) };
        // To the start of the next hardware page: `start` need not be at one.
        at += step - byte.addr().get() % step;
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use crate::page::sys::{self, Mapping, resident};

    const LEN: usize = 64 * 1024;

    /// A pointer `offset` bytes into a block.
    fn at(block: NonNull<u8>, offset: usize) -> NonNull<u8> {
        block.map_addr(|addr| addr.checked_add(offset).unwrap())
    }

    fn fresh() -> NonNull<u8> {
        sys::map(LEN, sys::hardware_page(), Mapping::Open).unwrap()
    }

    #[test]
    fn makes_the_range_resident_and_keeps_its_neighbours() {
        let page = sys::hardware_page();
        let block = fresh();
        // SAFETY: both bytes are in the fresh mapping.
        unsafe { at(block, page).write(7) };
        assert_eq!(resident(block, LEN), 1);
        // SAFETY: the range is in the fresh mapping: the last byte of one page to the first of another.
        unsafe { populate(at(block, 2 * page - 1), 2 * page + 2) };
        assert_eq!(resident(block, LEN), 4);
        // SAFETY: in the mapping, and outside the populated range.
        assert_eq!(unsafe { at(block, page).read() }, 7);
        // SAFETY: nothing uses the mapping any more.
        unsafe { sys::unmap(block, LEN) };
    }

    #[test]
    fn touching_reaches_every_page_and_nothing_outside() {
        let page = sys::hardware_page();
        let block = fresh();
        // SAFETY: the mapping is this long and ours.
        unsafe { block.write_bytes(0xFF, 4 * page) };
        let (from, len) = (page + 3, 2 * page);
        // SAFETY: the range is in the mapping.
        unsafe { touch(at(block, from), len) };
        // SAFETY: initialised above.
        let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), 4 * page) };
        let zeros: Vec<usize> = (0..4 * page).filter(|&at| bytes[at] == 0).collect();
        assert_eq!(zeros, [from, 2 * page, 3 * page]);
        // SAFETY: the range is in the mapping and untouched so far.
        unsafe { touch(at(block, 4 * page), LEN - 4 * page) };
        assert_eq!(resident(block, LEN), LEN / page);
        // SAFETY: nothing uses the mapping any more.
        unsafe { sys::unmap(block, LEN) };
    }

    #[test]
    fn nothing_to_populate_is_fine() {
        // SAFETY: an empty range touches nothing.
        unsafe { populate(NonNull::dangling(), 0) };
    }
}
