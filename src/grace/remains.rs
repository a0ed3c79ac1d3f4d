//! What is left of retired objects: their slots, with the objects still in them.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::tickets::{Clock, Ticket, Tickets};
use crate::sheaf::Sheaf;
use crate::slab::{Destructor, Slot};

/// A slot with an object that was retired, on its way to others.
///
/// # Invariants
///
/// 1. The slot holds an object of its cache's type, or, without `drops`, one that needs no destructor.
/// 2. Nobody uses the object but readers that are pinned now, and it may be dropped on any thread.
#[derive(Debug)]
pub(crate) struct Retired {
    slot: Slot,
    drops: bool,
}

impl Retired {
    /// # Safety
    ///
    /// The invariants hold.
    pub(crate) unsafe fn new(slot: Slot, drops: bool) -> Self {
        Self { slot, drops }
    }

    /// Whether the object is of a type with a destructor.
    pub(crate) fn drops(&self) -> bool {
        self.drops
    }

    /// The slot, whose object is lost.
    pub(crate) fn into_slot(self) -> Slot {
        self.slot
    }
}

/// Slots whose objects may still be read.
///
/// # Invariants
///
/// 1. Each slot holds an object of the type that `destructor` drops, or one that needs no destructor where there is
///    none.
/// 2. Nobody uses the objects but readers that were pinned before this was made, and the objects may be dropped on
///    any thread.
#[derive(Debug)]
pub(crate) struct Remains {
    sheaf: Sheaf,
    destructor: Destructor,
}

impl Remains {
    /// # Safety
    ///
    /// The invariants hold.
    pub(crate) unsafe fn new(sheaf: Sheaf, destructor: Destructor) -> Self {
        Self { sheaf, destructor }
    }

    /// Nothing yet, of one cache with this destructor.
    pub(crate) fn empty(array: Sheaf, destructor: Destructor) -> Self {
        debug_assert!(array.is_empty());
        Self {
            sheaf: array,
            destructor,
        }
    }

    /// Adds a slot of the same cache; gives it back if there is no room, or its object is not to be dropped as the
    /// others are.
    pub(crate) fn push(&mut self, retired: Retired) -> Result<(), Retired> {
        let Retired { slot, drops } = retired;
        if drops != self.destructor.is_some() {
            return Err(Retired { slot, drops });
        }
        self.sheaf
            .push(slot)
            .map_err(|slot| Retired { slot, drops })
    }

    pub(crate) fn len(&self) -> usize {
        self.sheaf.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sheaf.is_full()
    }

    /// The slots, whose objects are lost.
    pub(crate) fn into_sheaf(self) -> Sheaf {
        self.sheaf
    }
}

/// Remains that nobody reads any more.
///
/// # Invariants
///
/// 1. No reader that can see the objects is pinned.
/// 2. The objects of the slots from `next` on are not dropped yet, those before are.
#[derive(Debug)]
pub(crate) struct Elapsed {
    remains: Remains,
    next: usize,
}

impl Remains {
    /// Lets go of what waited for `ticket`, if that is over. `self` was made before the ticket was stamped.
    ///
    /// # Safety
    ///
    /// `ticket` was stamped by `tickets` after these remains were made, and `tickets` goes by the clock that readers
    /// pin with.
    pub(crate) unsafe fn elapse<C: Clock>(
        self,
        ticket: Ticket,
        tickets: &Tickets<C>,
    ) -> Result<Elapsed, Self> {
        if tickets.is_over(ticket) {
            Ok(Elapsed {
                remains: self,
                next: 0,
            })
        } else {
            Err(self)
        }
    }
}

/// What a destructor panicked with.
pub(crate) type Payload = Box<dyn core::any::Any + Send>;

impl Elapsed {
    pub(crate) fn len(&self) -> usize {
        self.remains.len()
    }

    /// Drops the objects, in the order in which they were retired; `panicked` gets what a destructor panicked with
    /// and the address of its object. Runs user code: never under a lock, nor pinned.
    pub(crate) fn destroy(&mut self, mut panicked: impl FnMut(Payload, usize)) {
        let destructor = self.remains.destructor;
        if !destructor.is_some() {
            self.next = self.len();
            return;
        }
        for slot in self.remains.sheaf.iter().skip(self.next) {
            self.next += 1;
            // SAFETY: the slot holds an object of the destructor's type (invariant 1 of `Remains`), which nobody
            // uses (invariant 1) and which is not dropped yet (invariant 2); `next` has moved past it.
            let drop = || unsafe { destructor.run(slot.as_ptr()) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(drop)) {
                panicked(payload, slot.addr());
            }
        }
    }

    /// The slots, whose objects are gone.
    pub(crate) fn into_sheaf(self) -> Sheaf {
        self.remains.sheaf
    }
}
