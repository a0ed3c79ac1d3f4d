//! The headers at the start of runs, and the handle of a slab.

use core::mem::{offset_of, size_of};
use core::ptr::{self, NonNull};
use core::slice;

use super::slot::Slot;
use crate::base::layout::{Geometry, PAGE_SIZE, RUN_HEADER, bitmap_words};
use crate::base::list::Links;
use crate::hook::shadow;
use crate::sync::{AtomicU32, Ordering};

/// At the start of every run.
#[repr(C)]
pub(super) struct RunHeader {
    /// The header of the slab. Never changes once the run is set up.
    slab: NonNull<SlabHeader>,
    /// Offset of the first slot from the start of the run. Never changes.
    first: u32,
    /// Which run of its slab this is. Never changes.
    index: u32,
    /// Bytes from the start of the run that are known to be resident and writable; only grows.
    populated: AtomicU32,
    /// Under the node's lock.
    state: RunState,
}

/// What the node's lock guards in a run.
pub(super) struct RunState {
    /// Free slots.
    pub(super) free: u32,
    /// No word of the bitmap below this one has a free slot.
    pub(super) hint: u32,
    /// The grace period after which the slots marked in the retired bitmap may be reused; 0 if none is marked.
    #[cfg_attr(
        not(feature = "rcu"),
        expect(dead_code, reason = "read by deferred free")
    )]
    pub(super) stamp: u64,
}

/// At the start of a slab, which is the start of its first run.
#[repr(C)]
pub(crate) struct SlabHeader {
    run: RunHeader,
    /// Never changes once the slab is set up.
    pub(super) fixed: SlabFixed,
    /// Touched by the list that the slab is in.
    pub(super) links: Links<Self>,
    /// Under the node's lock.
    pub(super) state: SlabState,
}

impl SlabHeader {
    /// The header of a slab of which no run is set up.
    pub(super) fn new(slab: NonNull<Self>, fixed: SlabFixed, state: SlabState) -> Self {
        let run = RunHeader {
            slab,
            first: 0,
            index: 0,
            populated: AtomicU32::new(0),
            state: RunState {
                free: 0,
                hint: 0,
                stamp: 0,
            },
        };
        Self {
            run,
            fixed,
            links: Links::new(),
            state,
        }
    }
}

/// What never changes in a slab.
#[derive(Clone, Copy)]
pub(super) struct SlabFixed {
    /// The cache that owns the slab.
    pub(super) owner: *const (),
    /// The id of that cache.
    pub(super) id: u32,
    /// Slots in the slab.
    pub(super) total: u32,
    /// Runs in the slab.
    pub(super) runs: u32,
    pub(super) order: u8,
    /// The node in whose set the slab is.
    pub(super) home: u8,
}

/// What the node's lock guards in a slab.
pub(super) struct SlabState {
    /// Slots that are out: allocated, or in somebody's sheaf.
    pub(super) out: u32,
    /// Runs that are set up.
    pub(super) ready: u32,
    /// No run below this one has a free slot.
    pub(super) run_hint: u32,
    /// The slab stays in its list while `low <= out <= high`.
    pub(super) low: u32,
    pub(super) high: u32,
    /// The colour of its first run; each further run has the next.
    pub(super) colour: u32,
    /// Which list of its set the slab is in.
    pub(super) list: u32,
}

const _: () = assert!(
    size_of::<SlabHeader>() <= RUN_HEADER,
    "headers fit before the bitmap"
);
const _: () = assert!(
    offset_of!(SlabHeader, run) == 0,
    "a slab starts with its first run"
);

/// A run of a standing slab.
///
/// # Invariants
///
/// 1. The pointer is the start of a run that is set up, with the provenance of the whole slab.
#[derive(Clone, Copy)]
pub(super) struct Run(NonNull<RunHeader>);

impl Run {
    /// The run on whose first page `slot` starts.
    pub(super) fn of(slot: &Slot) -> Self {
        Self::at(page_start(slot.as_ptr()))
    }

    /// The run that starts with the page at `page`, which the page map names as a head.
    pub(super) fn at(page: NonNull<u8>) -> Self {
        Self(page.cast())
    }

    pub(super) fn slab(self) -> NonNull<SlabHeader> {
        // SAFETY: the run is set up (invariant 1) and this field never changes.
        unsafe { (*self.0.as_ptr()).slab }
    }

    pub(super) fn first(self) -> usize {
        // SAFETY: the run is set up (invariant 1) and this field never changes.
        unsafe { (*self.0.as_ptr()).first as usize }
    }

    pub(super) fn index(self) -> u32 {
        // SAFETY: the run is set up (invariant 1) and this field never changes.
        unsafe { (*self.0.as_ptr()).index }
    }

    pub(super) fn populated(&self) -> &AtomicU32 {
        // SAFETY: the run is set up (invariant 1); the field is an atomic, so it may be shared.
        unsafe { &(*self.0.as_ptr()).populated }
    }

    /// Whether the run is known to be resident up to `end` bytes from its start.
    pub(super) fn is_populated(self, end: usize) -> bool {
        // Relaxed: a mark about the page tables, which the kernel synchronises; a stale one costs a call.
        self.populated().load(Ordering::Relaxed) as usize >= end
    }

    /// The first byte of the run.
    pub(super) fn start(self) -> NonNull<u8> {
        self.0.cast()
    }

    /// # Safety
    ///
    /// The caller holds the node's lock, and no other reference to the state is alive.
    pub(super) unsafe fn state<'a>(self) -> &'a mut RunState {
        // SAFETY: the run is set up (invariant 1); exclusive by the caller's word.
        unsafe { &mut (*self.0.as_ptr()).state }
    }

    /// The bitmap of free slots.
    ///
    /// # Safety
    ///
    /// As for [`Run::state`]; `words` is the number of words that the run was set up with.
    pub(super) unsafe fn bits<'a>(self, words: usize) -> &'a mut [u64] {
        // SAFETY: the bitmap starts `RUN_HEADER` bytes into the run, which is longer than that.
        let bits = unsafe { self.0.cast::<u8>().add(RUN_HEADER) }.cast::<u64>();
        // SAFETY: the words were written when the run was set up; aligned, since runs start on pages and
        // `RUN_HEADER` is a multiple of 8; exclusive by the caller's word.
        unsafe { slice::from_raw_parts_mut(bits.as_ptr(), words) }
    }

    /// The bitmap of retired slots, which lies behind that of free ones.
    ///
    /// # Safety
    ///
    /// As for [`Run::bits`].
    #[cfg(feature = "rcu")]
    pub(super) unsafe fn retired_bits<'a>(self, words: usize) -> &'a mut [u64] {
        // SAFETY: the bitmaps start `RUN_HEADER` bytes into the run, which is longer than that and both.
        let bits = unsafe { self.0.cast::<u8>().add(RUN_HEADER + words * 8) }.cast::<u64>();
        // SAFETY: as in `bits`.
        unsafe { slice::from_raw_parts_mut(bits.as_ptr(), words) }
    }

    /// The token of a slot that was just taken from the bitmap.
    ///
    /// # Safety
    ///
    /// The slot exists, its bit was just cleared, and no token of it is made but this one.
    pub(super) unsafe fn slot(self, geometry: &Geometry, index: usize) -> Slot {
        let offset = self.first() + index * geometry.stride;
        // SAFETY: slots lie within their run.
        let start = unsafe { self.0.cast::<u8>().add(offset) };
        // SAFETY: the slot's bit is clear and this is its only token, by the caller's word.
        unsafe { Slot::from_ptr(start) }
    }
}

/// The parts of a standing slab that never change.
pub(super) fn fixed(slab: NonNull<SlabHeader>) -> SlabFixed {
    // SAFETY: pointers to slab headers are only made for slabs that are set up, and last as long as these.
    unsafe { (*slab.as_ptr()).fixed }
}

/// # Safety
///
/// The slab stands, the caller holds the node's lock, and no other reference to the state is alive.
pub(super) unsafe fn state<'a>(slab: NonNull<SlabHeader>) -> &'a mut SlabState {
    // SAFETY: the slab stands; exclusive by the caller's word.
    unsafe { &mut (*slab.as_ptr()).state }
}

/// Run `index` of a slab, which must be set up.
///
/// # Safety
///
/// The slab stands and run `index` of it is set up.
pub(super) unsafe fn run(slab: NonNull<SlabHeader>, geometry: &Geometry, index: u32) -> Run {
    let offset = index as usize * geometry.run_pages * PAGE_SIZE;
    // SAFETY: the run lies within the slab.
    Run(unsafe { slab.cast::<u8>().add(offset) }.cast())
}

/// Sets up run `index` of a slab: all its slots are free.
///
/// # Safety
///
/// The slab stands, run `index` exists and no slot of it is out, and the caller holds the node's lock.
pub(super) unsafe fn set_up_run(
    slab: NonNull<SlabHeader>,
    geometry: &Geometry,
    index: u32,
    colour: usize,
) {
    // SAFETY: passed on; only the pointer is used before the header is written.
    let Run(header) = unsafe { run(slab, geometry, index) };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a run's first slot starts on its first page"
    )]
    let first = geometry.first_of(colour) as u32;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a run has fewer slots than bytes of a page"
    )]
    let free = geometry.run_slots as u32;
    let state = RunState {
        free,
        hint: 0,
        stamp: 0,
    };
    let new = RunHeader {
        slab,
        first,
        index,
        populated: AtomicU32::new(0),
        state,
    };
    let words = bitmap_words(geometry.run_slots);
    if index > 0 {
        shadow::open(header.cast(), RUN_HEADER + 2 * words * 8);
    }
    // SAFETY: no slot of the run is out and the lock is held, so the header may be written.
    unsafe { header.write(new) };
    // SAFETY: as for the header; plain integers, so old bytes are valid once written.
    let bits = unsafe { header.cast::<u8>().add(RUN_HEADER) }.cast::<u64>();
    // SAFETY: the words lie between the header and the first slot.
    unsafe { ptr::write_bytes(bits.as_ptr(), 0xff, words) };
    // SAFETY: the second bitmap lies between the first and the first slot too.
    let retired = unsafe { bits.add(words) };
    // SAFETY: as above.
    unsafe { ptr::write_bytes(retired.as_ptr(), 0, words) };
    let spare_bits = words * 64 - geometry.run_slots;
    // SAFETY: the last word lies within the bitmap.
    let last = unsafe { bits.add(words - 1) };
    // SAFETY: as above.
    unsafe { last.write(u64::MAX >> spare_bits) };
    if shadow::WATCHED && index > 0 {
        // SAFETY: the header ends before the bitmap.
        let slack = unsafe { header.add(1) }.cast();
        shadow::close(slack, RUN_HEADER - size_of::<RunHeader>());
    }
}

/// Overwrites all slots of a run with zeros, which readers may see from now on.
///
/// # Safety
///
/// The slab stands, run `index` is set up, and nobody else accesses its slots.
pub(super) unsafe fn zero_run(slab: NonNull<SlabHeader>, geometry: &Geometry, index: u32) {
    // SAFETY: passed on.
    let run = unsafe { run(slab, geometry, index) };
    // SAFETY: the first slot lies within its run.
    let first = unsafe { run.start().add(run.first()) };
    let len = (geometry.run_slots - 1) * geometry.stride + geometry.size;
    shadow::open(first, len);
    // SAFETY: the slots lie within the run, and are the caller's to write.
    unsafe { ptr::write_bytes(first.as_ptr(), 0, len) };
}

/// The start of the page that holds `ptr`, with the provenance that its slab exposed.
pub(super) fn page_start(ptr: NonNull<u8>) -> NonNull<u8> {
    let addr = ptr.addr().get() & !(PAGE_SIZE - 1);
    NonNull::new(ptr::with_exposed_provenance_mut(addr)).unwrap_or(NonNull::dangling())
}
