//! One reservation: a stretch of address space, and which of its pages are used, warm and open.

use core::ptr::NonNull;

use super::bits::{Bitmap, MAX_LEN};
use super::mapped::Mapped;
use crate::base::layout::PAGE_SIZE;
use crate::page::sys::{self, Mapping};

/// Pages of the largest reservation: 1 GiB, so that a TiB of slabs is a thousand mappings, well below the
/// 65,530 that Linux allows, and metadata has a fixed size.
pub(super) const MAX_PAGES: usize = MAX_LEN;

/// Pages of the largest run: the largest slab, 32 MiB.
pub(super) const MAX_RUN: usize = 512;

/// Pages to which a reservation is aligned: a huge page of 2 MiB. No run has a larger alignment.
pub(super) const ALIGN_PAGES: usize = 32;

/// Pages that are made readable and writable at once: 4 MiB, enough that the system call is lost among the
/// faults of touching them, and little enough for a process that locks its memory.
const OPEN_STEP: usize = 64;

/// Pages given back in one step of a trim: 8 MiB, some hundred microseconds under the lock.
const PURGE_STEP: usize = 128;

/// A stretch of address space. Dropping it unmaps it.
///
/// # Invariants
///
/// 1. `base` is the start of a mapping of `used.len()` pages that belongs to this value, aligned to
///    [`ALIGN_PAGES`].
/// 2. The pages below `open` are readable and writable.
/// 3. Bits of `used` are set for the pages handed out, all of which are below `open`. Nobody accesses others.
/// 4. Bits of `warm` are set for the pages that may hold memory and are not used.
pub(super) struct Reservation {
    /// The next one of the family, at a higher address.
    pub(super) next: Option<Mapped<Reservation>>,
    base: NonNull<u8>,
    huge: bool,
    open: usize,
    used: Bitmap,
    warm: Bitmap,
}

// SAFETY: it owns the mapping that `base` points to (invariant 1), so it can be used from any thread.
unsafe impl Send for Reservation {}

/// What a step of a trim did.
pub(super) struct Purged {
    /// The page after the last one looked at.
    pub(super) end: usize,
    /// Pages given back.
    pub(super) pages: usize,
}

impl Reservation {
    /// Reserves `pages` pages, with huge pages asked for if `huge`.
    pub(super) fn new(pages: usize, huge: bool) -> Option<Mapped<Self>> {
        debug_assert!(pages <= MAX_PAGES && pages % ALIGN_PAGES == 0);
        let base = sys::map(pages * PAGE_SIZE, ALIGN_PAGES * PAGE_SIZE, Mapping::Closed)?;
        if huge {
            // SAFETY: a mapping of this call, this long.
            unsafe { sys::ask_huge(base, pages * PAGE_SIZE) };
        }
        // If there is no place for it, dropping it unmaps it again.
        let (used, warm) = (Bitmap::new(pages), Bitmap::new(pages));
        Mapped::new(Self {
            next: None,
            base,
            huge,
            open: 0,
            used,
            warm,
        })
    }

    /// Address of the first page.
    pub(super) fn start(&self) -> usize {
        self.base.addr().get()
    }

    /// The page number of an address, if it lies here.
    pub(super) fn page_of(&self, addr: usize) -> Option<usize> {
        let page = addr.checked_sub(self.start())? / PAGE_SIZE;
        (page < self.used.len()).then_some(page)
    }

    /// The first page of the lowest free run of `run` pages at a multiple of `align` pages.
    pub(super) fn find(&self, run: usize, align: usize) -> Option<usize> {
        self.used.find_clear(run, align)
    }

    /// Hands out a run that [`find`](Self::find) has found; `None` if the system refuses memory for it.
    pub(super) fn take(&mut self, page: usize, run: usize) -> Option<NonNull<u8>> {
        let end = page + run;
        if end > self.open {
            self.open_to(end)?;
        }
        if self.huge {
            self.warm_neighbours(page, run);
        }
        self.used.set(page, run);
        self.warm.clear(page, run);
        Some(self.pointer(page))
    }

    /// Where the first run of a huge page is about to be handed out all of it comes to hold memory.
    fn warm_neighbours(&mut self, page: usize, run: usize) {
        let first = page - page % ALIGN_PAGES;
        for start in (first..page + run).step_by(ALIGN_PAGES) {
            // Reservations are whole huge pages long, and opened by whole ones.
            if self.used.all_clear(start, ALIGN_PAGES) {
                self.warm.set(start, ALIGN_PAGES);
            }
        }
    }

    /// Takes a run back. Its pages are warm until purged.
    ///
    /// # Safety
    ///
    /// The run came from [`take`](Self::take) of this reservation, and nothing uses it any more.
    pub(super) unsafe fn put_back(&mut self, page: usize, run: usize) {
        debug_assert!(self.used.all_set(page, run), "the run was handed out");
        self.used.clear(page, run);
        self.warm.set(page, run);
    }

    /// Makes a run longer, by the pages behind it if they are free, or shorter; whether it could.
    ///
    /// # Safety
    ///
    /// The run of `old` pages came from [`take`](Self::take) of this reservation, and nothing uses the pages that
    /// it loses.
    pub(super) unsafe fn resize(&mut self, page: usize, old: usize, new: usize) -> bool {
        if new == old {
            return true;
        }
        if new < old {
            // SAFETY: the pages are the end of the run, which the caller gives up.
            unsafe { self.put_back(page + new, old - new) };
            return true;
        }
        let fits = page + new <= self.used.len() && self.used.all_clear(page + old, new - old);
        fits && self.take(page + old, new - old).is_some()
    }

    /// Gives the memory of the first warm pages at or after `from` back to the system, as many as one step
    /// may. `None` if there are none.
    pub(super) fn purge_next(&mut self, from: usize) -> Option<Purged> {
        let run = self.warm.next_run(from, PURGE_STEP)?;
        let (start, len) = (self.pointer(run.start), run.len() * PAGE_SIZE);
        // SAFETY: the range is part of our mapping, and no page of it is used (invariants 1, 3 and 4).
        let done = unsafe { sys::purge(start, len) };
        if done {
            self.warm.clear(run.start, run.len());
        }
        Some(Purged {
            end: run.end,
            pages: if done { run.len() } else { 0 },
        })
    }

    /// Whether no page is used.
    pub(super) fn is_idle(&self) -> bool {
        self.used() == 0
    }

    /// Number of pages used.
    pub(super) fn used(&self) -> usize {
        self.used.ones()
    }

    /// Whether all pages of a run may hold memory and are not used.
    pub(super) fn is_warm(&self, page: usize, run: usize) -> bool {
        self.warm.all_set(page, run)
    }

    /// Number of warm pages.
    pub(super) fn warm(&self) -> usize {
        self.warm.ones()
    }

    #[cold]
    fn open_to(&mut self, end: usize) -> Option<()> {
        let end = end.next_multiple_of(OPEN_STEP).min(self.used.len());
        let (start, len) = (self.pointer(self.open), (end - self.open) * PAGE_SIZE);
        // SAFETY: the range is part of our mapping (invariant 1).
        if !unsafe { sys::open(start, len) } {
            return None;
        }
        self.open = end;
        Some(())
    }

    fn pointer(&self, page: usize) -> NonNull<u8> {
        assert!(page < self.used.len(), "the page lies in the reservation");
        // SAFETY: within the mapping (invariant 1).
        unsafe { self.base.add(page * PAGE_SIZE) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours (invariant 1). The owner drops a reservation when it is idle.
        unsafe { sys::unmap(self.base, self.used.len() * PAGE_SIZE) };
    }
}
