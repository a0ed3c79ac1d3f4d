//! A sheaf in the hands of its borrower: no lock, no system call and no allocator, but where it is refilled or given
//! back.
#![forbid(unsafe_code)]

use core::mem;

use super::{Failure, Handle};
use crate::hook::shadow;
use crate::sheaf::Sheaf;
use crate::slab::Slot;

/// A sheaf in the hands of a borrower; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(super) sheaf: Sheaf,
    pub(super) handle: Handle,
    /// A copy of the configuration's, nearer.
    pub(super) zero_on_free: bool,
    /// In the place of `sheaf` where the pool is debugged, so that the fast path finds nothing: one, or none.
    pub(super) checked: Vec<Sheaf>,
}

impl Lent {
    /// Takes a slot: no lock, no system call, no allocator.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        let slot = self.sheaf.pop()?;
        self.note();
        Some(slot)
    }

    /// Puts a slot in; gives it back if the sheaf is full. As cheap as taking one.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot) -> Result<(), Slot> {
        if shadow::WATCHED {
            shadow::close(slot.as_ptr(), self.handle.cache().config.geometry.size);
        }
        self.sheaf.push(slot)?;
        self.note();
        Ok(())
    }

    /// Overwrites a slot with zeros, if the pool is to do that.
    #[inline]
    pub(crate) fn clear(&self, slot: &Slot) {
        if self.zero_on_free {
            self.handle.cache().clear(slot);
        }
    }

    /// Whether a slot can be put in without a check.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.sheaf.is_full()
    }

    #[inline]
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sees to it that the sheaf holds `n` slots at least. After a failure it holds what it had.
    pub(crate) fn refill(&mut self, n: usize) -> Result<(), Failure> {
        let cache = self.handle.cache();
        let sheaf = self.checked.first_mut().unwrap_or(&mut self.sheaf);
        if sheaf.len() >= n {
            return Ok(());
        }
        cache.ask()?;
        if n > sheaf.capacity() {
            cache.widen(sheaf, n)?;
        }
        let moving = cache.take_slots(|supply| cache.refill(sheaf, n, true, supply))?;
        cache.nodes.warm_up(sheaf, &cache.config.geometry);
        sheaf.tell(sheaf.len());
        drop(moving);
        Ok(())
    }

    /// Notes how many slots are left.
    #[inline]
    fn note(&self) {
        self.sheaf.tell(self.sheaf.len());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let cache = self.handle.cache();
        let own = mem::take(&mut self.sheaf);
        let sheaf = self.checked.pop().unwrap_or(own);
        if let Err(sheaf) = cache.return_near(sheaf) {
            cache.return_any(sheaf);
        }
    }
}
