//! Pages from the system's mappings.
//!
//! # Reservations
//!
//! Slabs are not mapped one by one. Address space is reserved in large pieces aligned to 2 MiB, from 32 MiB
//! on, each twice as large as the last up to 1 GiB, and all pools of the process draw from them: so mappings
//! stay few, however many slabs there are. A reservation is made readable and writable as it fills, 4 MiB at a
//! time, and costs memory where it was touched. There are two families of reservations, since huge pages are
//! asked for by the mapping: ordinary ones, and those for slabs that want huge pages.
//!
//! A block is the lowest run of free pages that fits, in address order. A run whose length is a power of two
//! is aligned to its length, up to 2 MiB. Blocks above 32 MiB, and those aligned to more than 2 MiB, are
//! mappings of their own, made and unmade at once. A run grows where it lies while the pages behind it are free,
//! and a mapping of its own where the system likes, by moving page tables; neither copies anything.
//!
//! # Parts of huge pages
//!
//! Pools ask for huge pages for small slabs too once they have some ([`Hint::huge`]), since a fault for each 4 KiB
//! of new memory costs more than all else that an allocation does. Such slabs share huge pages, which become
//! resident as a whole: so they get them once the process uses 2 MiB, unless there is warm memory to be had without.
//!
//! # Warm pages
//!
//! To free a block is to clear bits: its pages stay resident, *warm*, and the next block there needs no fault.
//! Warm is also what a huge page holds beside the first block in it.
//! [`Mmap::trim`](PageSource::trim) gives warm pages back, neighbours in one call, and unmaps reservations that
//! have become empty but for one of each family.
//!
//! # Metadata
//!
//! Bitmaps live in a mapping of their own beside each reservation, so this module never enters the global
//! allocator, not even one that is built on a pool. One lock guards them all.

mod bits;
mod family;
mod mapped;
mod reservation;
#[cfg(test)]
mod tests;

use core::alloc::Layout;
use core::ptr::NonNull;

use family::Family;
use reservation::{ALIGN_PAGES, MAX_RUN};

use super::sys::{self, Mapping};
use super::{Hint, PageSource, populate};
use crate::base::layout::PAGE_SIZE;
use crate::sync::{Guard, Lock};

/// Pages from anonymous memory mappings: the default on unix.
///
/// All values of this type are the same source: address space is reserved once for the process and shared by
/// all its pools. Freed slabs are kept warm, without a system call, until [`trim`](PageSource::trim), which
/// [`shrink`](crate::Pool::shrink) calls, gives them back: those of all pools.
///
/// [`Hint::huge`](crate::Hint::huge) draws from address space for which transparent huge pages were asked for; less
/// than 2 MiB does so in processes that use 2 MiB already, where all huge pages together hold at most one more than
/// what is used needs.
/// [`Hint::populate`](crate::Hint::populate) makes the block resident before it is returned.
///
/// # Real time
///
/// Allocating takes a lock of the process and searches a bitmap; at times, under the lock, it maps address
/// space or opens another 4 MiB of it. Without `populate` the block faults where it is first touched. Freeing
/// up to 32 MiB takes the lock and makes no system call. Trimming holds the lock for at most 8 MiB at a time.
/// Larger blocks are one system call or a few, without the lock.
///
/// Both search in proportion to the address space reserved: a step for each GiB, and for allocating up to 256
/// more for each GiB that is neither full nor fits.
///
/// # Examples
///
/// ```
/// use core::alloc::Layout;
/// use sheaves::{Hint, Mmap, PageSource};
///
/// let layout = Layout::from_size_align(2 << 20, 1 << 16)?;
/// let slab = Mmap.alloc_pages_hinted(layout, Hint::NONE.huge()).expect("2 MiB are there");
/// assert_eq!(slab.addr().get() % (2 << 20), 0);
/// // SAFETY: `slab` is a block of `Mmap` with this layout, and nothing uses it any more.
/// unsafe { Mmap.free_pages(slab, layout) };
/// # Ok::<(), core::alloc::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Mmap;

/// The reservations of the process.
struct State {
    ordinary: Family,
    huge: Family,
}

static STATE: Lock<State> = Lock::new(State::new());

/// Holds the lock of this module while the process forks, so that no child is born with it held.
pub(crate) fn lock_for_fork() -> impl Sized {
    let guard: Guard<'static, State> = STATE.lock();
    guard
}

// SAFETY: a block is a run of pages of a reservation that is marked used for as long as it is a block, or a
// mapping of its own. Both are readable and writable mappings that nobody else has a pointer to, of the size
// and at the alignment asked for. They belong to the process and not to the value `Mmap`.
unsafe impl PageSource for Mmap {
    fn alloc_pages(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc_pages_hinted(layout, Hint::NONE)
    }

    unsafe fn free_pages(&self, pages: NonNull<u8>, layout: Layout) {
        if has_own_mapping(layout) {
            // SAFETY: blocks of such layouts are mappings of their own, this long, and the caller is done.
            unsafe { sys::unmap(pages, layout.size()) };
        } else {
            // SAFETY: other blocks are runs of the reservations, and the caller is done with this one.
            unsafe { STATE.lock().free(pages, layout) };
        }
    }

    fn alloc_pages_hinted(&self, layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
        debug_assert!(layout.size() != 0 && layout.size() % PAGE_SIZE == 0);
        debug_assert!(layout.align() >= PAGE_SIZE);
        let block = if has_own_mapping(layout) {
            alloc_own_mapping(layout, hint)
        } else {
            let mut state = STATE.lock();
            let huge = hint.is_huge() && state.is_worth_huge(layout);
            state.alloc(layout, huge)
        }?;
        if hint.is_populate() {
            // SAFETY: the block is this long, and nobody else knows of it yet.
            unsafe { populate(block, layout.size()) };
        }
        Some(block)
    }

    unsafe fn discard(&self, pages: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the range lies in a block of this source, all of which are mappings or part of one, and
        // the caller gives the contents up.
        unsafe { sys::purge(pages, layout.size()) }
    }

    fn trim(&self) -> usize {
        trim(&STATE, |state| &mut state.ordinary) + trim(&STATE, |state| &mut state.huge)
    }

    unsafe fn remap(&self, pages: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // A layout says which kind a block is, so a block must not become one of the other kind.
        if has_own_mapping(old) != has_own_mapping(new) {
            return None;
        }
        if !has_own_mapping(old) {
            // SAFETY: the block is a run of the reservations, and the caller gives up what it loses.
            let resized = unsafe { STATE.lock().resize(pages, old, new) };
            return resized.then_some(pages);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: the block is a mapping of its own, of the size of its layout, and the caller uses neither it
        // during the call nor its old place afterwards.
        return unsafe { sys::remap(pages, old.size(), new.size(), new.align()) };
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = pages;
            None
        }
    }
}

/// Whether blocks of this layout are mappings of their own, rather than runs of a reservation.
fn has_own_mapping(layout: Layout) -> bool {
    layout.size() > MAX_RUN * PAGE_SIZE || layout.align() > ALIGN_PAGES * PAGE_SIZE
}

fn alloc_own_mapping(layout: Layout, hint: Hint) -> Option<NonNull<u8>> {
    // Whole huge pages even if less was asked for: it is a small part of so large a block.
    let align = layout.align().max(ALIGN_PAGES * PAGE_SIZE);
    let block = sys::map(layout.size(), align, Mapping::Open)?;
    if hint.is_huge() {
        // SAFETY: a mapping of this call, this long.
        unsafe { sys::ask_huge(block, layout.size()) };
    }
    Some(block)
}

/// The length and alignment of the run of pages for a layout.
fn run_of(layout: Layout) -> (usize, usize) {
    let pages = layout.size() / PAGE_SIZE;
    let align = layout.align() / PAGE_SIZE;
    let natural = if pages.is_power_of_two() {
        pages.min(ALIGN_PAGES)
    } else {
        1
    };
    (pages, align.max(natural))
}

/// Trims one family, with the lock held for a step at a time only.
fn trim(state: &Lock<State>, family: impl Fn(&mut State) -> &mut Family) -> usize {
    let mut bytes = 0;
    let mut from = 0;
    loop {
        let step = family(&mut state.lock()).purge_next(from);
        let Some(step) = step else { break };
        bytes += step.bytes;
        from = step.end;
    }
    bytes + family(&mut state.lock()).release_idle()
}

impl State {
    const fn new() -> Self {
        Self {
            ordinary: Family::new(false),
            huge: Family::new(true),
        }
    }

    /// Whether a run for which huge pages are asked for is to have them.
    ///
    /// A part of a huge page makes all of it resident, so a process has 2 MiB without them before. And memory that
    /// is there is better used than left warm.
    fn is_worth_huge(&self, layout: Layout) -> bool {
        let (pages, align) = run_of(layout);
        if pages >= ALIGN_PAGES {
            return true;
        }
        self.ordinary.used() + self.huge.used() >= ALIGN_PAGES
            && (self.huge.has_warm(pages, align) || !self.ordinary.has_warm(pages, align))
    }

    /// Takes a run of pages for a layout that has no mapping of its own.
    fn alloc(&mut self, layout: Layout, huge: bool) -> Option<NonNull<u8>> {
        let (pages, align) = run_of(layout);
        let family = if huge {
            &mut self.huge
        } else {
            &mut self.ordinary
        };
        family.alloc(pages, align)
    }

    /// Makes a block longer or shorter where it lies; whether it could.
    ///
    /// # Safety
    ///
    /// `block` is a run of a reservation with the layout `old`, and nothing uses the pages that it loses.
    unsafe fn resize(&mut self, block: NonNull<u8>, old: Layout, new: Layout) -> bool {
        let addr = block.addr().get();
        let found = self.ordinary.find(addr).or_else(|| self.huge.find(addr));
        let Some((reservation, page)) = found else {
            debug_assert!(false, "the block is in no reservation");
            return false;
        };
        let (old, pages) = (old.size() / PAGE_SIZE, new.size() / PAGE_SIZE);
        // SAFETY: passed on; the block is this run of this reservation.
        addr % new.align() == 0 && unsafe { reservation.resize(page, old, pages) }
    }

    /// Gives a run of pages back.
    ///
    /// # Safety
    ///
    /// `block` came from [`alloc`](Self::alloc) with this layout, and nothing uses it any more.
    unsafe fn free(&mut self, block: NonNull<u8>, layout: Layout) {
        let addr = block.addr().get();
        let found = self.ordinary.find(addr).or_else(|| self.huge.find(addr));
        let Some((reservation, page)) = found else {
            debug_assert!(false, "the block is in no reservation");
            return;
        };
        // SAFETY: the caller gives up the block, which is this run of this reservation.
        unsafe { reservation.put_back(page, layout.size() / PAGE_SIZE) };
    }
}
