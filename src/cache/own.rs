//! The cache's unsafe end: the fast paths' ownership of the thread, and the pointer from a slab to its cache.
//!
//! A slot that is out keeps its cache in memory. While the cache is open its handles do; when the last of
//! them goes with slots still out, [`Cache::leave_to_slots`] leaves one count of the `Arc` behind, and
//! whoever brings the last slot home takes it back with [`Cache::take_from_slots`].

use core::ptr;

use super::Cache;
use super::bulk::Batch;
use crate::hook::report::{Report, ReportKind};
use crate::local::{self, Local};
use crate::page::{Entry, page_map};
use crate::slab::{Slot, owner_of};
use crate::sync::Arc;

/// The running thread's local for a cache, if its table points to it.
#[inline(always)]
fn owned<'a>(id: u32) -> Option<&'a Local> {
    // SAFETY: entries of the table point to the bootstrap local, which is static, or to a local that the
    // thread owns and repoints the table from before it frees it; the callers use it at once.
    let local = unsafe { &*local::entry(id) };
    (local.id() == id).then_some(local)
}

#[inline(always)]
pub(super) fn pop(id: u32) -> Option<Slot> {
    // SAFETY: a local with a cache's id is in the table of the thread that owns it only.
    unsafe { owned(id)?.pop() }
}

#[inline(always)]
pub(super) fn push(id: u32, slot: Slot) -> Result<(), Slot> {
    match owned(id) {
        // SAFETY: as in `pop`.
        Some(local) => unsafe { local.push(slot) },
        None => Err(slot),
    }
}

/// As [`pop`], where there is no `membarrier`.
pub(super) fn pop_fenced(id: u32) -> Option<Slot> {
    // SAFETY: as in `pop`.
    unsafe { owned(id)?.pop_fenced() }
}

/// As [`push`], where there is no `membarrier`.
pub(super) fn push_fenced(id: u32, slot: Slot) -> Result<(), Slot> {
    match owned(id) {
        // SAFETY: as in `pop`.
        Some(local) => unsafe { local.push_fenced(slot) },
        None => Err(slot),
    }
}

/// Frees a slot that the fast path could not.
#[cold]
#[inline(never)]
pub(crate) fn free_slow(slot: Slot) {
    if !page_map::get(slot.addr()).is_head() {
        // Only an unsafe function can have brought it here; leaked.
        return Report::new(ReportKind::NoPool, None, slot.addr()).send();
    }
    let mut slot = slot;
    if page_map::is_two_level() {
        match push(page_map::get(slot.addr()).raw(), slot) {
            Ok(()) => return,
            Err(back) => slot = back,
        }
    }
    let cache = Cache::keep(&slot);
    cache.free_cold(slot);
}

/// Frees the slots of a batch, which all belong to one cache.
pub(crate) fn free_batch(batch: &mut Batch) {
    let Some(slot) = batch.first() else { return };
    Cache::keep(slot).free_bulk(batch);
}

/// The cache of a slot, for as long as the slot is out.
pub(crate) fn cache_of(slot: &Slot) -> &Cache {
    let owner = owner_of(slot).cast::<Cache>();
    // SAFETY: slabs are made with the address of their cache, which lives while a slot of it is out; the
    // reference lives no longer than the borrow of the token.
    unsafe { &*owner }
}

impl Cache {
    /// A share of the cache of a slot, which may be freed meanwhile.
    pub(super) fn keep(slot: &Slot) -> Arc<Self> {
        let owner: *const Self = cache_of(slot);
        // SAFETY: the address is that of the value in an `Arc`, which is alive, see `cache_of`.
        unsafe { Arc::increment_strong_count(owner) };
        // SAFETY: takes over the count that was just added.
        unsafe { Arc::from_raw(owner) }
    }

    /// Leaves a count of the cache behind for the slots that are out.
    pub(super) fn leave_to_slots(&self) {
        // SAFETY: every cache lives in an `Arc`, see `Handle::build`, and `self` shows that it is alive.
        unsafe { Arc::increment_strong_count(ptr::from_ref(self)) };
    }

    /// Takes back the count that [`Cache::leave_to_slots`] left.
    pub(super) fn take_from_slots(&self) {
        // SAFETY: `leave_to_slots` left a count, and its taker is told once, by `Node::drain` or
        // `Node::remove_block`. The callers hold a share of their own, so `self` outlives this.
        unsafe { Arc::decrement_strong_count(ptr::from_ref(self)) };
    }

    /// Overwrites a slot with zeros, if the pool is to do that.
    #[inline]
    pub(crate) fn clear(&self, slot: &Slot) {
        if self.config.zero_on_free {
            self.zero(slot);
        }
    }

    fn zero(&self, slot: &Slot) {
        let size = self.config.geometry.size;
        // SAFETY: the token owns the slot, which is at least `size` bytes long.
        unsafe { ptr::write_bytes(slot.as_ptr().as_ptr(), 0, size) };
    }

    /// Whether a slot of this cache starts at `addr`.
    pub(crate) fn owns(&self, addr: ptr::NonNull<u8>) -> bool {
        self.node.hold(|| {
            if page_map::get(addr.addr().get()) != Entry::head(self.id) {
                return false;
            }
            // SAFETY: the page map names the page as a head of this cache, and slabs come and go under
            // the node's lock only.
            let located = unsafe { crate::slab::locate(addr, &self.config.geometry) };
            located == crate::slab::Located::Slot
        })
    }
}
