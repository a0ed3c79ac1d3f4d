//! A sheaf: a bounded stack of free slots.
//!
//! Threads take from and put into a sheaf of their own; whole sheaves change hands at the barn. A sheaf
//! never grows past the capacity that it was made with.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::slab::Slot;
use crate::sync::{AtomicUsize, Ordering, Shared};

/// Slots in one lent sheaf, 0 while it is not lent. Written by its borrower, read by whoever asks for stats.
pub(crate) type Tally = CachePadded<AtomicUsize>;

/// What a sheaf is made of, for those who keep its array elsewhere.
pub(crate) type Parts = (Vec<Slot>, usize, Option<Shared<Tally>>);

/// A bounded stack of slots.
#[derive(Debug, Default)]
pub(crate) struct Sheaf {
    slots: Vec<Slot>,
    capacity: usize,
    /// Made when the sheaf is lent for the first time, and kept for the next.
    tally: Option<Shared<Tally>>,
    /// Whether all slots are known to be resident; what is put in is not.
    resident: bool,
}

impl Sheaf {
    /// An empty sheaf; `None` if there is no memory for its array.
    pub(crate) fn try_new(capacity: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).ok()?;
        Some(Self {
            slots,
            capacity,
            tally: None,
            resident: false,
        })
    }

    /// A sheaf from an array that was a sheaf's before; see [`Sheaf::into_parts`].
    pub(crate) fn from_parts((slots, capacity, tally): Parts) -> Self {
        debug_assert!(slots.len() <= capacity && capacity <= slots.capacity());
        Self {
            slots,
            capacity,
            tally,
            resident: false,
        }
    }

    /// The array, the capacity, and the tally.
    pub(crate) fn into_parts(mut self) -> Parts {
        let slots = core::mem::take(&mut self.slots);
        (slots, self.capacity, self.tally.take())
    }

    pub(crate) fn is_resident(&self) -> bool {
        self.resident
    }

    /// Says that all slots were made resident.
    pub(crate) fn set_resident(&mut self) {
        self.resident = true;
    }

    pub(crate) fn has_tally(&self) -> bool {
        self.tally.is_some()
    }

    pub(crate) fn set_tally(&mut self, tally: Shared<Tally>) {
        self.tally = Some(tally);
    }

    /// Notes in its tally how many slots a lent sheaf has.
    #[inline(always)]
    pub(crate) fn tell(&self, slots: usize) {
        if let Some(tally) = &self.tally {
            // Relaxed: a gauge, with one writer.
            tally.store(slots, Ordering::Relaxed);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity - self.slots.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() >= self.capacity
    }

    /// Puts a slot on top; gives it back if the sheaf is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot) -> Result<(), Slot> {
        if self.is_full() {
            return Err(slot);
        }
        self.slots.push(slot);
        self.resident = false;
        Ok(())
    }

    /// Takes the slot on top.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        self.slots.pop()
    }

    /// Turns round the slots above the `below` lowest.
    ///
    /// Slabs give slots in address order; turned round they are handed out in that order too.
    pub(crate) fn reverse_above(&mut self, below: usize) {
        self.slots[below..].reverse();
    }

    /// Moves slots from the top of `other` until it is empty or this one is full.
    pub(crate) fn take_from(&mut self, other: &mut Self) {
        let n = self.room().min(other.len());
        self.resident = false;
        self.slots
            .extend(other.slots.drain(other.slots.len() - n..));
    }

    /// Takes every slot out, lowest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Slot> {
        self.slots.drain(..)
    }

    /// Takes out the slots of which `leaves` is true; the others stay in their order.
    pub(crate) fn drain_if(
        &mut self,
        leaves: impl Fn(&Slot) -> bool,
    ) -> impl Iterator<Item = Slot> {
        let mut kept = 0;
        for at in 0..self.slots.len() {
            if !leaves(&self.slots[at]) {
                self.slots.swap(kept, at);
                kept += 1;
            }
        }
        self.slots.drain(kept..)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }
}

impl Drop for Sheaf {
    fn drop(&mut self) {
        debug_assert!(
            self.slots.is_empty(),
            "the array of a sheaf was freed with slots in it"
        );
    }
}
