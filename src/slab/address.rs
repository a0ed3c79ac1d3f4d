//! From an address to what is there.

use core::ptr::NonNull;

use super::header::{Run, fixed, page_start};
use super::slot::Slot;
use crate::base::layout::Geometry;
use crate::hook::shadow;
use crate::page;
use crate::sync::Ordering;

/// The cache that owns a slot.
pub(crate) fn owner_of(slot: &Slot) -> *const () {
    fixed(Run::of(slot).slab()).owner
}

/// The node that a slot belongs to, as its cache counts nodes.
pub(crate) fn home_of(slot: &Slot) -> usize {
    fixed(Run::of(slot).slab()).home.into()
}

/// Makes the run of a free slot resident, so that using its slots does not fault; whether it became so just now.
/// May call the system; where that cannot help, bytes of the slot are overwritten, and nothing is said of the run.
pub(crate) fn populate_run_of(slot: &Slot, geometry: &Geometry) -> Option<bool> {
    let run = Run::of(slot);
    let len = geometry.run_bytes();
    if run.is_populated(len) {
        return Some(false);
    }
    // SAFETY: the run stands while a slot of it is out.
    if unsafe { page::populate_shared(run.start(), len) } {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "runs are at most 32 MiB long"
        )]
        // Relaxed: see `Run::is_populated`.
        let before = run.populated().fetch_max(len as u32, Ordering::Relaxed);
        return Some((before as usize) < len);
    }
    shadow::open(slot.as_ptr(), geometry.size);
    // SAFETY: the slot is owned by whoever holds its token, and holds no value.
    unsafe { page::touch(slot.as_ptr(), geometry.size) };
    shadow::close(slot.as_ptr(), geometry.size);
    None
}

/// What an arbitrary address is to a slab.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// The start of a slot.
    Slot,
    /// Inside a slot, between slots, or in a header.
    Interior,
}

/// Tells what `addr` is, on a page whose page map entry is the head of a run of the cache with `geometry`.
///
/// # Safety
///
/// The page map names the page as a head of that cache, and the slab cannot go while this runs.
pub(crate) unsafe fn locate(addr: NonNull<u8>, geometry: &Geometry) -> Located {
    let start = page_start(addr);
    let run = Run::at(start);
    // A page at which a run starts may belong to one that is not set up yet; its slab's first run always is.
    // The page map only names pages as heads once their run is set up.
    let offset = (addr.addr().get() - start.addr().get()).checked_sub(run.first());
    match offset.and_then(|offset| geometry.index_at(offset)) {
        Some(_) => Located::Slot,
        None => Located::Interior,
    }
}
