//! The page map: for each 64 KiB page of the address space, whose it is.
//!
//! One map serves the process. Its entries are `u32`: a cache's id and whether slots start on the page.
//! It answers which cache a pointer belongs to without reading the memory pointed to, so any address may be
//! asked about, and the answer carries no provenance that the asker did not have.
//!
//! # Flat, or in two levels
//!
//! Where address space is plentiful the map is one array with an entry for every page there is (8 GiB of
//! address space on x86-64). It is reserved when the first entry is set and costs memory only where it was
//! written to: 4 KiB of it cover 64 MiB of slabs. The reservation reads as zeros and is made writable in
//! chunks, where entries are set. So it is not accounted as memory, and `mlockall` cannot make the system
//! fill all of it.
//!
//! Where the reservation is refused, or would eat much of what `RLIMIT_AS` leaves, and off unix, the map is
//! a static root of pointers to leaves of 65,536 entries (4 GiB of addresses each). Leaves are allocated
//! when their first entry is set and never freed. Which of the two it is, is settled once for a process.
//!
//! # Why relaxed loads are enough
//!
//! Who asks about a pointer into a live slab got that pointer, by whatever way, from the thread that
//! allocated the slot, and it from the one that set the slab's entries before it published the slab. That
//! way is synchronised, so the setting of the entry (and of the base of the map) happens before the question,
//! and coherence forbids an older answer. A question about an address that no live pointer names may get a
//! stale answer; it has no right one.

mod flat;
mod levels;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::base::layout::{PAGE_SHIFT, PAGE_SIZE};
use crate::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Bits of a user-space address. x86-64 gives out more than 47 only to those who ask for it by address;
/// 48 is the most that the other 64-bit architectures give out unasked.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };

/// Pages the map covers.
const PAGES: usize = 1 << (ADDRESS_BITS - PAGE_SHIFT);

/// What stands for the base of the flat array when there are levels instead: next to null, so that one
/// comparison rules out both.
const LEVELS: *mut AtomicU32 = core::ptr::without_provenance_mut(1);

/// Whose a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u32);

impl Entry {
    /// The page belongs to no cache.
    pub(crate) const NONE: Self = Self(0);

    /// Set on pages where no slot starts.
    const TAIL: u32 = 1 << 31;

    /// A page of cache `id` on which slots start. Ids are from 1 up to below `1 << 31`.
    pub(crate) const fn head(id: u32) -> Self {
        debug_assert!(id != 0 && id < Self::TAIL);
        Self(id)
    }

    /// A page of cache `id` that holds but the continuation of a slot, or a block that is no slab.
    pub(crate) const fn tail(id: u32) -> Self {
        debug_assert!(id != 0 && id < Self::TAIL);
        Self(id | Self::TAIL)
    }

    /// The id of the cache; 0 if there is none.
    #[cfg(test)]
    #[inline(always)]
    pub(crate) const fn id(self) -> u32 {
        self.0 & !Self::TAIL
    }

    /// The entry as it stands: the id of the cache where slots start on the page, and else a number that is
    /// no cache's id.
    #[inline(always)]
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    /// Whether slots start on the page. `false` for no cache.
    #[inline(always)]
    pub(crate) const fn is_head(self) -> bool {
        self.0.wrapping_sub(1) < Self::TAIL - 1
    }
}

/// Why entries could not be set. None of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum MapError {
    /// Pages lie beyond [`ADDRESS_BITS`].
    #[error("pages lie at addresses beyond {ADDRESS_BITS} bits; use a page source with lower ones")]
    OutOfRange,
    /// No memory for the entries.
    #[error("no memory for the page map")]
    OutOfMemory,
}

/// The map of this process.
static MAP: PageMap = PageMap::new();

/// The entry of the page at `addr`, which may be any number.
///
/// Real time: two loads where the map is flat, else three. The first question about a stretch of addresses
/// that has no slabs may fault once.
#[inline(always)]
pub(crate) fn get(addr: usize) -> Entry {
    MAP.get(addr)
}

/// [`get`] without the test whether `addr` is within reach.
///
/// # Safety
///
/// `addr` lies in a page whose entry is set, and the setting happened before this call.
#[inline(always)]
pub(crate) unsafe fn get_known(addr: usize) -> Entry {
    // SAFETY: the caller's promise is the one asked for.
    unsafe { MAP.get_known(addr) }
}

/// [`get_known`] without a call: where the map is in two levels it answers [`Entry::NONE`].
///
/// # Safety
///
/// As for [`get_known`].
#[inline(always)]
pub(crate) unsafe fn get_flat(addr: usize) -> Entry {
    // SAFETY: the caller's promise is the one asked for.
    unsafe { MAP.get_flat(addr) }
}

/// Sets the entries of `pages` pages from the one at `addr` on to `entry(0)`, `entry(1)` and so forth; all of
/// them or none. The pages belong to the caller.
///
/// Real time: may map memory, and fault where entries are set for the first time; time in proportion to
/// `pages`. Off unix it may allocate from the global allocator.
pub(crate) fn set_range(
    addr: usize,
    pages: usize,
    entry: impl Fn(usize) -> Entry,
) -> Result<(), MapError> {
    MAP.set_range(addr, pages, entry)
}

/// Sets entries that [`set_range`] has set to [`Entry::NONE`]. The pages still belong to the caller.
///
/// Real time: no system call and no allocation; time in proportion to `pages`.
pub(crate) fn clear_range(addr: usize, pages: usize) {
    MAP.clear_range(addr, pages);
}

/// A map, of one kind or the other.
///
/// # Invariants
///
/// 1. `base` is null (undecided: no entry is set), [`LEVELS`], or a flat array of [`PAGES`] entries that lives
///    as long as the map. It changes once at most.
/// 2. A bit of `open` is set only if the entries of that chunk of the flat array may be written to.
///
/// `base` is read by every free, so it comes first on two cache lines (the unit of prefetching) that hold
/// nothing that is often written to.
#[repr(C, align(128))]
struct PageMap {
    base: AtomicPtr<AtomicU32>,
    open: [AtomicUsize; flat::OPEN_WORDS],
    levels: levels::Levels,
}

impl PageMap {
    /// A map that settles its kind when the first entry is set.
    const fn new() -> Self {
        Self {
            base: AtomicPtr::new(core::ptr::null_mut()),
            open: [const { AtomicUsize::new(0) }; flat::OPEN_WORDS],
            levels: levels::Levels::new(),
        }
    }

    #[inline(always)]
    fn get(&self, addr: usize) -> Entry {
        if addr >> ADDRESS_BITS != 0 {
            return Entry::NONE;
        }
        // SAFETY: the address is within reach.
        unsafe { self.lookup(addr) }
    }

    /// # Safety
    ///
    /// As the function of this name.
    #[inline(always)]
    unsafe fn get_known(&self, addr: usize) -> Entry {
        // SAFETY: only addresses within reach have entries.
        unsafe { self.lookup(addr) }
    }

    /// # Safety
    ///
    /// `addr` is below `1 << ADDRESS_BITS`.
    #[inline(always)]
    unsafe fn lookup(&self, addr: usize) -> Entry {
        // SAFETY: only addresses within reach have entries; passed on.
        let entry = unsafe { self.get_flat(addr) };
        // Relaxed: see the module's text.
        if entry == Entry::NONE && self.base.load(Ordering::Relaxed).addr() <= LEVELS.addr() {
            return self.lookup_cold(addr >> PAGE_SHIFT);
        }
        entry
    }

    /// # Safety
    ///
    /// `addr` is below `1 << ADDRESS_BITS`.
    #[inline(always)]
    unsafe fn get_flat(&self, addr: usize) -> Entry {
        let page = addr >> PAGE_SHIFT;
        // Relaxed: see the module's text. Nothing was written to the array before its base was published.
        let base = self.base.load(Ordering::Relaxed);
        if base.addr() <= LEVELS.addr() {
            return Entry::NONE;
        }
        // SAFETY: the array has an entry for each page within reach (invariant 1).
        let entry = unsafe { base.add(page) };
        // SAFETY: the array lives as long as the map and is only ever accessed as atomics.
        let entry = unsafe { &*entry };
        // Relaxed: see the module's text.
        Entry(entry.load(Ordering::Relaxed))
    }

    #[cold]
    #[inline(never)]
    fn lookup_cold(&self, page: usize) -> Entry {
        // While the kind is undecided there are no leaves, and the answer is right as well.
        self.levels.get(page)
    }

    fn set_range(
        &self,
        addr: usize,
        pages: usize,
        entry: impl Fn(usize) -> Entry,
    ) -> Result<(), MapError> {
        debug_assert!(addr % PAGE_SIZE == 0, "entries are those of whole pages");
        let first = addr >> PAGE_SHIFT;
        match first.checked_add(pages) {
            Some(end) if end <= PAGES => {}
            _ => return Err(MapError::OutOfRange),
        }
        let base = self.settle();
        if base == LEVELS {
            self.levels
                .reserve(first, pages)
                .ok_or(MapError::OutOfMemory)?;
        } else {
            // SAFETY: the array and the bitmap are of this map (invariants 1 and 2), the range is within reach.
            let open = unsafe { flat::reserve(&self.open, base, first, pages) };
            if !open {
                return Err(MapError::OutOfMemory);
            }
        }
        for page in 0..pages {
            // SAFETY: the entry has just been reserved.
            unsafe { self.store(base, first + page, entry(page)) };
        }
        Ok(())
    }

    fn clear_range(&self, addr: usize, pages: usize) {
        let cleared = self.set_range(addr, pages, |_| Entry::NONE);
        debug_assert!(cleared.is_ok(), "entries that were set can be set again");
    }

    /// Stores an entry.
    ///
    /// # Safety
    ///
    /// `base` is the settled base of this map, and the entry has been reserved by `set_range`.
    unsafe fn store(&self, base: *mut AtomicU32, page: usize, entry: Entry) {
        if base == LEVELS {
            self.levels.set(page, entry);
            return;
        }
        // SAFETY: pages that were reserved are within reach, and have an entry in the array.
        let slot = unsafe { base.add(page) };
        // SAFETY: the array lives as long as the map (invariant 1), is accessed as atomics only, and its
        // reserved entries may be written to (invariant 2).
        let slot = unsafe { &*slot };
        // Relaxed: see the module's text.
        slot.store(entry.0, Ordering::Relaxed);
    }

    /// The base of the flat array or [`LEVELS`]; the first call settles which.
    fn settle(&self) -> *mut AtomicU32 {
        // Relaxed: as in `lookup`.
        let base = self.base.load(Ordering::Relaxed);
        if base.is_null() {
            self.settle_cold()
        } else {
            base
        }
    }

    #[cold]
    fn settle_cold(&self) -> *mut AtomicU32 {
        let new = flat::map().unwrap_or(LEVELS);
        let null = core::ptr::null_mut();
        // Relaxed: as in `lookup`. That there is one exchange in the life of a map is all that matters.
        match self
            .base
            .compare_exchange(null, new, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => new,
            Err(other) => {
                if new != LEVELS {
                    // SAFETY: another thread was first, so nobody else has seen this array.
                    unsafe { flat::unmap(new) };
                }
                other
            }
        }
    }
}
