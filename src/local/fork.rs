//! A thread's sheaves when the process forks.

use core::mem::{self, ManuallyDrop};

use super::Local;
#[cfg(feature = "rcu")]
use super::rcu::Pile;
use super::shelf::Shelf;
use crate::sheaf::Sheaf;
use crate::sync::{Guard, Shared};

/// A local's locks, held together with the local.
///
/// # Invariants
///
/// 1. The guards borrow from what `_local` points to, which stays in place, and are dropped before it.
#[derive(Debug)]
pub(crate) struct LockedLocal {
    guard: ManuallyDrop<Guard<'static, Shelf>>,
    #[cfg(feature = "rcu")]
    pile: ManuallyDrop<Guard<'static, Pile>>,
    _local: Shared<Local>,
}

/// Locks a local that is not the caller's to use, but to keep others from using.
pub(crate) fn hold_lock(local: Shared<Local>) -> LockedLocal {
    let guard = local.shelf.lock();
    // SAFETY: the guard outlives neither the local nor the borrow: `LockedLocal` keeps the local, whose
    // memory does not move, and drops the guard first (invariant 1).
    let guard = unsafe { mem::transmute::<Guard<'_, Shelf>, Guard<'static, Shelf>>(guard) };
    #[cfg(feature = "rcu")]
    let pile = local.lock_pile();
    // SAFETY: as above.
    #[cfg(feature = "rcu")]
    let pile = unsafe { mem::transmute::<Guard<'_, Pile>, Guard<'static, Pile>>(pile) };
    LockedLocal {
        guard: ManuallyDrop::new(guard),
        #[cfg(feature = "rcu")]
        pile: ManuallyDrop::new(pile),
        _local: local,
    }
}

impl Drop for LockedLocal {
    fn drop(&mut self) {
        #[cfg(feature = "rcu")]
        // SAFETY: as below.
        unsafe {
            ManuallyDrop::drop(&mut self.pile)
        };
        // SAFETY: dropped once, here, while the local is alive.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
    }
}

impl Local {
    /// In a forked child: what the local of a thread held that the child does not have, or nothing if the
    /// thread was copied in the middle of its fast path.
    pub(crate) fn salvage(&self) -> [Option<Sheaf>; 2] {
        if self.gate.is_busy() {
            return [None, None];
        }
        self.shelf.lock().kill(self)
    }
}
