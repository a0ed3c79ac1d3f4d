//! The cache's unsafe end: the fast paths' ownership of the thread, and the pointer from a slab to its cache.
//!
//! A slot that is out keeps its cache in memory. While the cache is open its handles do; when the last of
//! them goes with slots still out, [`Cache::leave_to_slots`] leaves one count of the `Shared` behind, and
//! whoever brings the last slot home takes it back with [`Cache::take_from_slots`].

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr;

use super::Cache;
use super::bulk::Batch;
#[cfg(feature = "rcu")]
use crate::grace::{Elapsed, Remains, TICKETS, Ticket};
use crate::hook::counter::OwnCounter;
use crate::hook::poison::Site;
use crate::hook::report::{Report, ReportKind};
use crate::hook::shadow;
use crate::local::{self, Local, SizeKey};
use crate::page::{Entry, page_map};
use crate::registry::CacheOps;
#[cfg(feature = "rcu")]
use crate::sheaf::Sheaf;
use crate::slab::{Slot, owner_of, site_of};
use crate::sync::{BarrierMode, Shared, Weak};

/// The running thread's local for a cache, if it is the last that was used of its size.
#[inline(always)]
fn recent<'a>(key: SizeKey, id: u32) -> Option<&'a Local> {
    // SAFETY: both tables point to the bootstrap local, which is static, or to locals that the thread owns and
    // points the tables away from before it frees them; the callers use it at once.
    let local = unsafe { &*local::recent(key) };
    (local.id() == id).then_some(local)
}

/// The running thread's local for a cache, if its table points to it; the recent one from now on.
fn entry<'a>(key: SizeKey, id: u32) -> Option<&'a Local> {
    // SAFETY: as in `recent`.
    let local = unsafe { &*local::entry(id) };
    if local.id() != id {
        return None;
    }
    local::remember(key, local);
    Some(local)
}

#[inline(always)]
pub(super) fn pop(key: SizeKey, id: u32) -> Option<Slot> {
    // SAFETY: a local with a cache's id is in the tables of the thread that owns it only.
    unsafe { recent(key, id)?.pop() }
}

#[inline(always)]
pub(super) fn push(key: SizeKey, id: u32, slot: Slot) -> Result<(), Slot> {
    match recent(key, id) {
        // SAFETY: as in `pop`.
        Some(local) => unsafe { local.push(slot) },
        None => Err(slot),
    }
}

/// As [`pop`], for a local that was not the last of its size, or where there is no `membarrier`.
pub(super) fn pop_listed(key: SizeKey, id: u32, mode: BarrierMode) -> Option<Slot> {
    let local = entry(key, id)?;
    if mode.is_fence() {
        // SAFETY: as in `pop`.
        unsafe { local.pop_fenced() }
    } else {
        // SAFETY: as in `pop`.
        unsafe { local.pop() }
    }
}

/// As [`push`], for a local that was not the last of its size, or where there is no `membarrier`.
pub(super) fn push_listed(
    key: SizeKey,
    id: u32,
    mode: BarrierMode,
    slot: Slot,
) -> Result<(), Slot> {
    match entry(key, id) {
        // SAFETY: as in `pop`.
        Some(local) if mode.is_fence() => unsafe { local.push_fenced(slot) },
        // SAFETY: as in `pop`.
        Some(local) => unsafe { local.push(slot) },
        None => Err(slot),
    }
}

/// Retires the object in a slot; with `drops`, an object of a type with a destructor.
///
/// # Safety
///
/// The slot is out and given up, it holds an object of its pool's type, or, without `drops`, one that needs no
/// destructor; nobody uses the object but readers that are pinned now, and it may be dropped on any thread. `id` is the
/// page map's entry of the slot.
#[cfg(feature = "rcu")]
#[inline(always)]
pub(crate) unsafe fn retire(key: SizeKey, id: u32, slot: Slot, drops: bool) {
    let slot = match recent(key, id) {
        Some(local) if local.drops() == drops => {
            // SAFETY: a local with a cache's id is in the table of the thread that owns it only; the object is as the
            // caller says, and of the type that is dropped there.
            match unsafe { local.retire(slot) } {
                Ok(()) => return,
                Err(slot) => slot,
            }
        }
        _ => slot,
    };
    // SAFETY: passed on.
    unsafe { retire_slow(key, slot, drops) };
}

/// As [`retire`], when the fast path could not.
///
/// # Safety
///
/// As for [`retire`].
#[cfg(feature = "rcu")]
#[cold]
#[inline(never)]
unsafe fn retire_slow(key: SizeKey, slot: Slot, drops: bool) {
    if !page_map::get(slot.addr()).is_head() {
        // Only an unsafe function can have brought it here; leaked.
        return Report::new(ReportKind::NoPool, None, slot.addr()).send();
    }
    let cache = Cache::keep(&slot);
    let mut slot = slot;
    // It was not the last of its size, or there is no `membarrier`.
    if let Some(local) = entry(key, cache.id).filter(|local| local.drops() == drops) {
        let pushed = if cache.mode.is_fence() {
            // SAFETY: as in `retire`.
            unsafe { local.retire_fenced(slot) }
        } else {
            // SAFETY: as in `retire`.
            unsafe { local.retire(slot) }
        };
        match pushed {
            Ok(()) => return,
            Err(back) => slot = back,
        }
    }
    // SAFETY: by the caller's word.
    let retired = unsafe { crate::grace::Retired::new(slot, drops) };
    cache.retire_cold(retired);
}

/// Frees a slot that the fast path could not.
#[cold]
#[inline(never)]
pub(crate) fn free_slow(key: SizeKey, slot: Slot) {
    let entry = page_map::get(slot.addr());
    if !entry.is_head() {
        // Only an unsafe function can have brought it here; leaked.
        return Report::new(ReportKind::NoPool, None, slot.addr()).send();
    }
    let mode = cache_of(&slot).mode;
    let slot = match push_listed(key, entry.raw(), mode, slot) {
        Ok(()) => return,
        Err(slot) => slot,
    };
    let slot = match free_near(entry.raw(), slot) {
        Ok(()) => return,
        Err(slot) => slot,
    };
    let cache = Cache::keep(&slot);
    cache.free_cold(slot);
}

/// Frees a slot of a cache into the running thread's sheaves or in trade for one of them at the barn, if that takes
/// neither memory nor a slab; gives it back otherwise. When this returns the cache may be gone.
fn free_near(id: u32, slot: Slot) -> Result<(), Slot> {
    let Some(mine) = local::find(id) else {
        return Err(slot);
    };
    let Some(mut held) = mine.hold() else {
        return Err(slot);
    };
    let owner: *const Cache = cache_of(&slot);
    // SAFETY: the cache lives while the slot is out; once the slot is in an open local or the barn it lives until the
    // local's lock is let go, since whoever ends it has to close the local first. The reference ends before that.
    unsafe { &*owner }.push_near(&mut held, slot)?;
    mine.count(OwnCounter::FreeSlowpath, 1);
    Ok(())
}

/// Frees the slots of a batch, which all belong to one cache.
pub(crate) fn free_batch(batch: &mut Batch) {
    let Some(slot) = batch.first() else { return };
    Cache::keep(slot).free_bulk(batch);
}

/// The address of an object of a layout, for all that can be told: a slot of that size starts there, of a pool that
/// aligns its slots as much. What is found otherwise is reported.
///
/// # Safety
///
/// If a slab is there, it does not go while this runs.
pub(crate) unsafe fn check_object(pointer: *mut u8, layout: Layout) -> Option<ptr::NonNull<u8>> {
    let address = pointer.addr();
    let start = ptr::NonNull::new(pointer).filter(|_| page_map::get(address).is_head());
    let Some(start) = start else {
        Report::new(ReportKind::NoPool, None, address).send();
        return None;
    };
    // SAFETY: no slot is claimed: the token only leads to the header of its page, which is a head.
    let page = ManuallyDrop::new(unsafe { Slot::from_ptr(start) });
    let cache = cache_of(&page);
    let geometry = &cache.config.geometry;
    if geometry.size != layout.size().max(1) || geometry.align < layout.align() {
        cache.report_misuse(ReportKind::WrongPool, address);
        return None;
    }
    // SAFETY: the page is a head of this cache, and stands by the caller's word.
    if unsafe { crate::slab::locate(start, geometry) } != crate::slab::Located::Slot {
        cache.report_misuse(ReportKind::Interior, address);
        return None;
    }
    Some(start)
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
    pub(super) fn keep(slot: &Slot) -> Shared<Self> {
        let owner: *const Self = cache_of(slot);
        // SAFETY: the address is that of the value in a `Shared`, which is alive, see `cache_of`.
        unsafe { Shared::increment_strong_count(owner) };
        // SAFETY: takes over the count that was just added.
        unsafe { Shared::from_raw(owner) }
    }

    /// The cache as the registry lists it.
    pub(super) fn listed(this: &Shared<Self>) -> Weak<dyn CacheOps> {
        // SAFETY: an unsizing coercion, to a trait of the cache.
        unsafe { Shared::downgrade_as::<dyn CacheOps>(this, |cache| cache) }
    }

    /// Leaves a count of the cache behind for the slots that are out.
    pub(super) fn leave_to_slots(&self) {
        // SAFETY: every cache lives in a `Shared`, see `Handle::build`, and `self` shows that it is alive.
        unsafe { Shared::increment_strong_count(ptr::from_ref(self)) };
    }

    /// Takes back the count that [`Cache::leave_to_slots`] left.
    pub(super) fn take_from_slots(&self) {
        // SAFETY: `leave_to_slots` left a count, and its taker is told once, by `Node::drain` or
        // `Node::remove_block`. The callers hold a share of their own, so `self` outlives this.
        unsafe { Shared::decrement_strong_count(ptr::from_ref(self)) };
    }

    /// Lets go of what was handed in with a ticket, if that is over.
    #[cfg(feature = "rcu")]
    pub(super) fn elapse(remains: Remains, ticket: Ticket) -> Option<Elapsed> {
        // SAFETY: batches and marks are stamped by `TICKETS` when, or after, they are handed in; readers pin with
        // crossbeam-epoch's default collector, by which it goes.
        unsafe { remains.elapse(ticket, &TICKETS) }.ok()
    }

    /// What slots that were marked in their pages hold.
    #[cfg(feature = "rcu")]
    pub(super) fn marked(&self, slots: Sheaf) -> Remains {
        // SAFETY: only slots with objects of this cache's own kind are marked, see `Cache::retire_cold`, with what they
        // were retired with.
        unsafe { Remains::new(slots, self.nature.destructor) }
    }

    /// The memory of a slot, with the book of its debugging locked (rule 1 there). `None` if no slot starts there.
    pub(super) fn site(&self, slot: &Slot) -> Option<Site> {
        // SAFETY: the slot is out, so its slab stands while the caller has the token; patterns of this cache are
        // changed under the book's lock only.
        unsafe { site_of(slot, &self.config.geometry) }
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
        shadow::open(slot.as_ptr(), size);
        // SAFETY: the token owns the slot, which is at least `size` bytes long.
        unsafe { ptr::write_bytes(slot.as_ptr().as_ptr(), 0, size) };
        shadow::close(slot.as_ptr(), size);
    }

    /// Whether a slot of this cache starts at `addr`.
    pub(crate) fn owns(&self, addr: ptr::NonNull<u8>) -> bool {
        self.nodes.hold(|| {
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
