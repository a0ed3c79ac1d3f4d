//! What happens to pools when the process forks.
//!
//! The child has one thread, a copy of the one that called `fork`. Whatever lock another thread held at that
//! moment would stay locked in the child for ever, so the forking thread takes all of the crate's locks
//! before, in their order, and both sides let them go after. What other threads had parked in their sheaves is
//! then the child's to take back: they do not exist there. A thread that was in the middle of a fast path when
//! it was copied leaves its sheaf in an unknown state, so what it held is leaked in the child; so are slots
//! that were in a thread's hands on the slow path, and objects that only the other threads knew.
//!
//! The forking thread itself holds no lock of the crate: no user code runs under one.

use core::ffi::c_int;
use core::mem::{self, ManuallyDrop};

use super::Cache;
use crate::hook::report;
use crate::local;
use crate::page;
use crate::registry::{self, CacheOps, HeldLock};
use crate::sync::{Cell, OnceLock, Shared, thread_local};

thread_local! {
    /// What the running thread holds between the handler before and the one after the fork.
    /// Without a destructor, so that a thread may fork in the last destructor of its thread-locals.
    static HELD: Cell<Option<ManuallyDrop<Held>>> = const { Cell::new(None) };
}

/// Every lock of the crate.
///
/// # Invariants
///
/// 1. `locks` are locks of `caches`, or static. Fields are dropped in order, so the locks go first.
struct Held {
    locks: Vec<HeldLock<'static>>,
    caches: Vec<Shared<dyn CacheOps>>,
}

/// Sees to it that forks are prepared for; called before the first pool is built.
pub(super) fn register() {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // SAFETY: the handlers are functions of this program with the type that is asked for. That they
        // run on the forking thread and hold no lock of the C library's is all they need.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) }
    });
}

extern "C" fn before() {
    let (registry, caches) = registry::hold();
    let mut locks = vec![registry, Box::new(report::hold()) as HeldLock<'static>];
    for cache in &caches {
        let of_cache = cache.hold_locks();
        // SAFETY: the locks are borrowed from a cache that `Held` keeps alive until after they were
        // let go (invariant 1); the layout of a vector does not depend on a lifetime.
        let of_cache: Vec<HeldLock<'static>> =
            unsafe { mem::transmute::<Vec<HeldLock<'_>>, Vec<HeldLock<'static>>>(of_cache) };
        locks.extend(of_cache);
    }
    #[cfg(feature = "rcu")]
    locks.push(Box::new(crate::grace::hold()));
    locks.push(Box::new(page::lock_for_fork()));
    let held = Held { locks, caches };
    HELD.with(|cell| cell.set(Some(ManuallyDrop::new(held))));
}

/// Lets the locks go, last taken first.
fn release() -> Vec<Shared<dyn CacheOps>> {
    let Some(held) = HELD.with(Cell::take) else {
        return Vec::new();
    };
    let Held { mut locks, caches } = ManuallyDrop::into_inner(held);
    while let Some(lock) = locks.pop() {
        drop(lock);
    }
    caches
}

extern "C" fn after_in_parent() {
    drop(release());
}

extern "C" fn after_in_child() {
    let caches = release();
    #[cfg(feature = "rcu")]
    crate::grace::forget();
    caches.iter().for_each(|cache| cache.forget_movers());
    for cache in caches {
        cache.take_over_after_fork();
    }
}

impl Cache {
    /// Takes back what threads had parked that this process does not have.
    pub(super) fn take_over(&self) {
        let mut locals = self.locals.lock();
        let (own, foreign): (Vec<_>, Vec<_>) = mem::take(&mut locals.list)
            .into_iter()
            .partition(local::is_own);
        locals.list = own;
        drop(locals);
        #[cfg(feature = "rcu")]
        let mut drained = {
            self.queue.make_room(foreign.len());
            crate::node::Drained::default()
        };
        let mut moving = self.moving();
        for local in foreign {
            self.counters.absorb(&local.counters);
            #[cfg(feature = "rcu")]
            if let Some(remains) = local.salvage_side() {
                self.hand_in_remains(remains, &mut drained);
            }
            for sheaf in local.salvage().into_iter().flatten() {
                moving.take_up(sheaf.len());
                self.put_away(Some(sheaf), &mut moving);
            }
        }
    }
}
