//! The locals of the running thread.
//!
//! A direct-mapped table of pointers finds a local in two loads. It is a thread-local without a destructor,
//! so it can be read at any time in a thread's life, from destructors of other thread-locals and from signal
//! handlers. Every entry points to a local at all times: at first, and again when the thread is on its way
//! out, to [`BOOTSTRAP`], which has an id that no cache has. So the fast path tests one thing, whether the
//! entry's local has the id it looks for.
//!
//! The locals themselves belong to a second thread-local, [`OWNED`], whose destructor is the thread's exit:
//! it points the table back to the bootstrap local, empties every local and hands what it held to its cache.
//! After that the thread has no locals, and what it still allocates and frees goes to slabs.

use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;

use super::{Held, Local};
use crate::registry;
use crate::sync::{Arc, BarrierMode, Cell, RefCell, thread_local};

/// Entries of the table, a power of two. Pools whose ids are equal modulo this share an entry, and a thread
/// that alternates between them pays for a search of its locals.
const TABLE: usize = 64;

/// Dead locals a thread may keep before it looks for them: closing a pool cannot free other threads' locals.
const SWEEP: usize = 8;

/// The local of nobody: shut for ever, and with an id that no cache has.
static BOOTSTRAP: Local = Local::new(NO_ID, BarrierMode::Fence, false);

/// Neither an id, which is below it, nor an entry of the page map, which is none of a cache with id 0.
const NO_ID: u32 = 1 << 31;

thread_local! {
    static ENTRIES: [Cell<*const Local>; TABLE] =
        const { [const { Cell::new(&raw const BOOTSTRAP) }; TABLE] };
    static OWNED: Owned = const { Owned { locals: RefCell::new(Vec::new()), sweep_at: Cell::new(SWEEP) } };
}

/// The locals of a thread, ordered by id.
struct Owned {
    locals: RefCell<Vec<Arc<Local>>>,
    /// The number of locals at which dead ones are looked for.
    sweep_at: Cell<usize>,
}

/// The table's local for a cache, which may be another cache's or the bootstrap local: compare the id.
#[inline(always)]
pub(crate) fn entry(id: u32) -> *const Local {
    ENTRIES.with(|entries| entries[id as usize % TABLE].get())
}

/// A local in the hands of the thread that owns it.
#[derive(Debug)]
pub(crate) struct Mine {
    local: Arc<Local>,
    /// Stays on its thread.
    _not_send: PhantomData<*const ()>,
}

impl Mine {
    fn new(local: &Arc<Local>) -> Self {
        Self {
            local: Arc::clone(local),
            _not_send: PhantomData,
        }
    }

    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    /// Locks the local; `None` if this runs in a signal handler that interrupted its gate.
    pub(crate) fn hold(&self) -> Option<Held<'_>> {
        // SAFETY: a `Mine` is made for locals of the running thread and cannot leave it.
        unsafe { self.local.hold() }
    }

    /// As [`Mine::hold`], but gives up if the lock is held.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        // SAFETY: as above.
        unsafe { self.local.try_hold() }
    }
}

/// The running thread's local for a cache, if it has one; the table points to it from now on.
pub(crate) fn find(id: u32) -> Option<Mine> {
    let found = OWNED.try_with(|owned| {
        // Borrowed already: a signal handler, or an allocator that uses this cache, came in between.
        let locals = owned.locals.try_borrow().ok()?;
        let at = locals.binary_search_by_key(&id, |local| local.id()).ok()?;
        Some(Mine::new(&locals[at]))
    });
    let mine = found.ok().flatten()?;
    point(id, Arc::as_ptr(&mine.local));
    Some(mine)
}

/// Whether a local is the running thread's.
pub(crate) fn is_own(local: &Arc<Local>) -> bool {
    let found = OWNED.try_with(|owned| {
        owned.locals.try_borrow().is_ok_and(|locals| {
            let at = locals.binary_search_by_key(&local.id(), |other| other.id());
            at.is_ok_and(|at| Arc::ptr_eq(&locals[at], local))
        })
    });
    found.unwrap_or(false)
}

/// Makes a local one of the running thread's; `None` if the thread is on its way out or has no memory.
pub(crate) fn adopt(local: Arc<Local>) -> Option<Mine> {
    let adopted = OWNED.try_with(|owned| {
        let mut locals = owned.locals.try_borrow_mut().ok()?;
        if locals.len() >= owned.sweep_at.get() {
            sweep(&mut locals);
            owned.sweep_at.set((locals.len() * 2).max(SWEEP));
        }
        locals.try_reserve(1).ok()?;
        let at = locals.partition_point(|other| other.id() < local.id());
        let mine = Mine::new(&local);
        locals.insert(at, local);
        Some(mine)
    });
    let mine = adopted.ok().flatten()?;
    point(mine.local.id(), Arc::as_ptr(&mine.local));
    Some(mine)
}

/// Frees the locals of caches that are closed.
fn sweep(locals: &mut Vec<Arc<Local>>) {
    locals.retain(|local| {
        let dead = local.is_dead();
        if dead && ptr::eq(entry(local.id()), Arc::as_ptr(local)) {
            point(local.id(), &raw const BOOTSTRAP);
        }
        !dead
    });
}

fn point(id: u32, local: *const Local) {
    ENTRIES.with(|entries| entries[id as usize % TABLE].set(local));
}

impl Drop for Owned {
    fn drop(&mut self) {
        ENTRIES.with(|entries| {
            entries
                .iter()
                .for_each(|entry| entry.set(&raw const BOOTSTRAP))
        });
        for local in self.locals.take() {
            // A cache that is gone has closed its locals before.
            let Some(cache) = registry::find(local.id()) else {
                continue;
            };
            let mine = Mine::new(&local);
            // A page source that panics must not end the process: this is a destructor of a thread-local.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                cache.thread_exit(Arc::as_ptr(&local).addr(), &mut || {
                    mine.hold().map_or([None, None], Held::kill)
                });
                drop(cache);
            }));
        }
    }
}
