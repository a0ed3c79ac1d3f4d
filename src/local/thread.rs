//! The locals of the running thread.
//!
//! Two tables of pointers find a local. The fast path looks into [`RECENT`], which has the local that was used last
//! for objects of a size: that entry's place is a constant of the compiled type. So a free need not wait until the
//! page map has told whose slot it is: the processor goes on with the local that it was the last time, and the
//! id merely confirms it. Where it does not, [`ENTRIES`], direct-mapped by id, has the right one nearly always, and
//! makes it the recent one.
//!
//! Both are thread-locals without destructors, so they can be read at any time in a thread's life, from destructors
//! of other thread-locals and from signal handlers. Every entry points to a local at all times: at first, and again
//! when the thread is on its way out, to [`BOOTSTRAP`], which has an id that no cache has. So the fast path tests
//! one thing, whether the entry's local has the id it looks for.
//!
//! The locals themselves belong to another thread-local, [`OWNED`], whose destructor is the thread's exit:
//! it points the tables back to the bootstrap local, empties every local and hands what it held to its cache.
//! After that the thread has no locals, and what it still allocates and frees goes to slabs.

use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;

use super::{Held, Local};
use crate::hook::counter::OwnCounter;
use crate::registry;
use crate::sync::{BarrierMode, Cell, RefCell, Shared, thread_local};

/// Entries of the table, a power of two. Pools whose ids are equal modulo this share an entry, and a thread
/// that alternates between them pays for a search of its locals.
const TABLE: usize = 64;

/// Entries of the table by size, a power of two. Pools of one size share an entry: a thread that alternates between
/// them makes a call and looks into the other table, which costs some nanoseconds.
const KEYS: usize = 64;

/// Dead locals a thread may keep before it looks for them: closing a pool cannot free other threads' locals.
const SWEEP: usize = 8;

/// The local of nobody: shut for ever, and with an id that no cache has.
static BOOTSTRAP: Local = Local::new(NO_ID, BarrierMode::Fence, false);

/// Neither an id, which is below it, nor an entry of the page map, which is none of a cache with id 0.
const NO_ID: u32 = 1 << 31;

thread_local! {
    static ENTRIES: [Cell<*const Local>; TABLE] =
        const { [const { Cell::new(&raw const BOOTSTRAP) }; TABLE] };
    static RECENT: [Cell<*const Local>; KEYS] =
        const { [const { Cell::new(&raw const BOOTSTRAP) }; KEYS] };
    /// How many [`Mine`]s there are: calls inside calls, of a page source that uses pools.
    static IN_HAND: Cell<usize> = const { Cell::new(0) };
    static OWNED: Owned = const { Owned { locals: RefCell::new(Vec::new()), sweep_at: Cell::new(SWEEP) } };
}

/// The locals of a thread, ordered by id.
struct Owned {
    locals: RefCell<Vec<Shared<Local>>>,
    /// The number of locals at which dead ones are looked for.
    sweep_at: Cell<usize>,
}

/// The local that was last used for objects of a size, which may be any cache's or the bootstrap local: compare
/// the id.
#[inline(always)]
pub(crate) fn recent(key: SizeKey) -> *const Local {
    RECENT.with(|recent| recent[key.0].get())
}

/// The table's local for a cache, which may be another cache's or the bootstrap local: compare the id.
pub(crate) fn entry(id: u32) -> *const Local {
    ENTRIES.with(|entries| entries[id as usize % TABLE].get())
}

/// Makes a local of this thread the recent one of a size.
pub(crate) fn remember(key: SizeKey, local: &Local) {
    RECENT.with(|recent| recent[key.0].set(local));
}

/// The sizes of objects that share an entry of the table by size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeKey(usize);

impl SizeKey {
    /// The entry for objects of `size` bytes.
    #[inline(always)]
    pub(crate) const fn of(size: usize) -> Self {
        // Sizes are multiples of 8 as a rule.
        Self(size / 8 % KEYS)
    }
}

/// A local in the hands of the thread that owns it, which frees no local meanwhile.
///
/// # Invariants
///
/// 1. `local` is the running thread's, and the value stays on the thread, as pointers do.
/// 2. It is counted in [`IN_HAND`] from before it is made until it is dropped.
#[derive(Debug)]
pub(crate) struct Mine {
    local: *const Local,
}

impl Mine {
    /// # Safety
    ///
    /// `local` is the running thread's, and alive.
    unsafe fn new(local: *const Local) -> Self {
        IN_HAND.with(|count| count.set(count.get() + 1));
        Self { local }
    }

    pub(crate) fn local(&self) -> &Local {
        // SAFETY: a thread's locals live until it frees them: in `sweep`, which leaves all as they are while one is
        // in hand (invariant 2), or when it ends, and then it does not come back to whoever had this.
        unsafe { &*self.local }
    }

    /// Locks the local; `None` if this runs in a signal handler that interrupted its gate.
    pub(crate) fn hold(&self) -> Option<Held<'_>> {
        // SAFETY: the running thread owns it (invariant 1).
        unsafe { self.local().hold() }
    }

    /// Locks the local's retired objects; `None` if this runs in a signal handler that interrupted their gate.
    #[cfg(feature = "rcu")]
    pub(crate) fn hold_side(&self) -> Option<super::HeldSide<'_>> {
        // SAFETY: as above.
        unsafe { self.local().hold_side() }
    }

    /// As [`Mine::hold`], but gives up if the lock is held.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        // SAFETY: as above.
        unsafe { self.local().try_hold() }
    }

    /// Counts an event of this thread.
    pub(crate) fn count(&self, counter: OwnCounter, n: usize) {
        self.local().counters.add(counter, n);
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        IN_HAND.with(|count| count.set(count.get() - 1));
    }
}

/// The running thread's local for a cache, if it has one; the table points to it from now on.
pub(crate) fn find(id: u32) -> Option<Mine> {
    let local = entry(id);
    // SAFETY: entries point to the bootstrap local or to living locals of the thread.
    if unsafe { (*local).id() } != id {
        return find_owned(id);
    }
    // SAFETY: a local with a cache's id is in the table of the thread that owns it only.
    Some(unsafe { Mine::new(local) })
}

#[cold]
fn find_owned(id: u32) -> Option<Mine> {
    let found = OWNED.try_with(|owned| {
        // Borrowed already: a signal handler, or an allocator that uses this cache, came in between.
        let locals = owned.locals.try_borrow().ok()?;
        let at = locals.binary_search_by_key(&id, |local| local.id()).ok()?;
        // SAFETY: the thread owns it.
        Some(unsafe { Mine::new(Shared::as_ptr(&locals[at])) })
    });
    let mine = found.ok().flatten()?;
    point(id, mine.local);
    Some(mine)
}

/// Whether a local is the running thread's.
pub(crate) fn is_own(local: &Shared<Local>) -> bool {
    let found = OWNED.try_with(|owned| {
        owned.locals.try_borrow().is_ok_and(|locals| {
            let at = locals.binary_search_by_key(&local.id(), |other| other.id());
            at.is_ok_and(|at| Shared::ptr_eq(&locals[at], local))
        })
    });
    found.unwrap_or(false)
}

/// Makes a local one of the running thread's; `None` if the thread is on its way out or has no memory.
pub(crate) fn adopt(local: Shared<Local>) -> Option<Mine> {
    let adopted = OWNED.try_with(|owned| {
        let mut locals = owned.locals.try_borrow_mut().ok()?;
        if locals.len() >= owned.sweep_at.get() && IN_HAND.get() == 0 {
            sweep(&mut locals);
            owned.sweep_at.set((locals.len() * 2).max(SWEEP));
        }
        locals.try_reserve(1).ok()?;
        let at = locals.partition_point(|other| other.id() < local.id());
        // SAFETY: the thread owns it from here on.
        let mine = unsafe { Mine::new(Shared::as_ptr(&local)) };
        locals.insert(at, local);
        Some(mine)
    });
    let mine = adopted.ok().flatten()?;
    point(mine.local().id(), mine.local);
    Some(mine)
}

/// Frees the locals of caches that are closed.
fn sweep(locals: &mut Vec<Shared<Local>>) {
    locals.retain(|local| {
        let dead = local.is_dead();
        if dead {
            unpoint(Shared::as_ptr(local));
        }
        !dead
    });
}

fn point(id: u32, local: *const Local) {
    ENTRIES.with(|entries| entries[id as usize % TABLE].set(local));
}

/// Points what points to a local to the bootstrap local.
fn unpoint(local: *const Local) {
    let unpoint = |cell: &Cell<*const Local>| {
        if ptr::eq(cell.get(), local) {
            cell.set(&raw const BOOTSTRAP);
        }
    };
    ENTRIES.with(|entries| entries.iter().for_each(unpoint));
    RECENT.with(|recent| recent.iter().for_each(unpoint));
}

impl Drop for Owned {
    fn drop(&mut self) {
        let unpoint = |cell: &Cell<*const Local>| cell.set(&raw const BOOTSTRAP);
        ENTRIES.with(|entries| entries.iter().for_each(unpoint));
        RECENT.with(|recent| recent.iter().for_each(unpoint));
        for local in self.locals.take() {
            // A cache that is gone has closed its locals before.
            let Some(cache) = registry::find(local.id()) else {
                continue;
            };
            // SAFETY: the thread owns it until it ends.
            let mine = unsafe { Mine::new(Shared::as_ptr(&local)) };
            // A page source that panics must not end the process: this is a destructor of a thread-local.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                #[cfg(feature = "rcu")]
                if let Some(held) = mine.hold_side() {
                    held.leave();
                }
                cache.thread_exit(Shared::as_ptr(&local).addr(), &mut || {
                    mine.hold().map_or([None, None], Held::kill)
                });
                drop(cache);
            }));
        }
    }
}
