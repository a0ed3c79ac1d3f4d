//! Allocations and frees of a debugged pool, each checked on its way.
#![forbid(unsafe_code)]

#[cfg(feature = "rcu")]
use core::panic::AssertUnwindSafe;
#[cfg(feature = "rcu")]
use std::panic::catch_unwind;

use super::debug::{Debug, Rejected};
use super::{Batch, Cache, Failure, Lent, Sink};
use crate::base::error::AllocErrorKind;
#[cfg(feature = "rcu")]
use crate::hook::shadow;
use crate::sheaf::Sheaf;
use crate::slab::Slot;

impl Cache {
    /// Allocates one slot and checks it. A damaged one is told and left out; another takes its place.
    pub(super) fn alloc_checked(&self, debug: &Debug) -> Result<Slot, Failure> {
        loop {
            let slot = self.alloc_from_slab()?;
            if let Some(slot) = self.check_out(debug, slot)? {
                return Ok(slot);
            }
        }
    }

    /// As [`Cache::alloc_checked`], from what is at hand in slabs.
    pub(super) fn alloc_now_checked(&self, debug: &Debug) -> Result<Slot, Failure> {
        loop {
            let slot = self.nodes.try_take().ok_or(AllocErrorKind::WouldBlock)?;
            if let Some(slot) = self.check_out(debug, slot)? {
                return Ok(slot);
            }
        }
    }

    /// Makes a slot live; `None` if it was damaged.
    fn check_out(&self, debug: &Debug, slot: Slot) -> Result<Option<Slot>, Failure> {
        match self.activate(debug, &slot) {
            Ok(()) => Ok(Some(slot)),
            Err(Rejected::Found(reports)) => {
                self.tell(reports);
                Ok(None)
            }
            Err(Rejected::Memory) => {
                self.free_to_slab(slot);
                Err(AllocErrorKind::OutOfMemory)
            }
        }
    }

    pub(super) fn alloc_bulk_checked(
        &self,
        debug: &Debug,
        n: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Failure> {
        for got in 0..n {
            match self.alloc_checked(debug) {
                Ok(slot) => sink.put(slot),
                Err(failure) => {
                    let back = core::iter::from_fn(|| sink.take_back()).take(got);
                    back.for_each(|slot| self.free_checked(debug, slot));
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Frees a slot if it is live and sound; else it is told and leaked.
    pub(super) fn free_checked(&self, debug: &Debug, slot: Slot) {
        match self.deactivate(debug, &slot) {
            Ok(()) => self.free_to_slab(slot),
            Err(reports) => self.tell(reports),
        }
    }

    /// What is to be done to slots whose objects were reaped, before they go back. In a debugged pool they go to slabs
    /// here, each checked; a hook that panics does so in the middle of nobody's call.
    #[cfg(feature = "rcu")]
    pub(super) fn close_buried(&self, sheaf: &mut Sheaf) {
        if shadow::WATCHED {
            let size = self.config.geometry.size;
            sheaf
                .iter()
                .for_each(|slot| shadow::close(slot.as_ptr(), size));
        }
        let Some(debug) = &self.debug else {
            return sheaf.iter().for_each(|slot| self.clear(slot));
        };
        while let Some(slot) = sheaf.pop() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.free_checked(debug, slot)));
        }
    }

    pub(super) fn free_bulk_checked(&self, debug: &Debug, batch: &mut Batch) {
        batch
            .drain(..)
            .for_each(|slot| self.free_checked(debug, slot));
    }
}

impl Lent {
    fn any(&self) -> &Sheaf {
        self.checked.first().unwrap_or(&self.sheaf)
    }

    /// Slots left.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.any().len()
    }

    /// Slots that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.any().capacity()
    }

    /// Takes a slot from the sheaf of a debugged pool. For one that is damaged another is allocated.
    #[cold]
    #[inline(never)]
    pub(crate) fn pop_checked(&mut self) -> Option<Slot> {
        let sheaf = self.checked.first_mut()?;
        let slot = sheaf.pop()?;
        sheaf.tell(sheaf.len());
        let cache = self.handle().cache();
        let Some(debug) = &cache.debug else {
            return Some(slot);
        };
        match cache.activate(debug, &slot) {
            Ok(()) => Some(slot),
            Err(Rejected::Found(reports)) => {
                cache.tell(reports);
                // Mended it is better than none: the sheaf was promised.
                let mended = |_| cache.activate(debug, &slot).map(|()| slot);
                cache.alloc_checked(debug).or_else(mended).ok()
            }
            // Unknown to the book it would be told as a double free later. That is the price of having been
            // promised.
            Err(Rejected::Memory) => Some(slot),
        }
    }

    /// Puts a slot into the sheaf of a debugged pool, if it is live and sound; else it is told and leaked.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_checked(&mut self, slot: Slot) {
        let cache = self.handle().cache();
        let Some(debug) = &cache.debug else { return };
        if let Err(reports) = cache.deactivate(debug, &slot) {
            return cache.tell(reports);
        }
        if let Some(sheaf) = self.checked.first_mut() {
            let pushed = sheaf.push(slot);
            debug_assert!(pushed.is_ok(), "there was room, and the sheaf is borrowed");
            sheaf.tell(sheaf.len());
        }
    }

    /// Whether this is the sheaf of a debugged pool and has room for a slot.
    #[cold]
    pub(crate) fn has_room_checked(&self) -> bool {
        self.checked.first().is_some_and(|sheaf| !sheaf.is_full())
    }
}
