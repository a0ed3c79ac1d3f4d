//! A sheaf: a bounded stack of free slots.
//!
//! Threads take from and put into a sheaf of their own; whole sheaves change hands at the barn. A sheaf
//! never grows past the capacity that it was made with.
#![forbid(unsafe_code)]

use crate::slab::Slot;

/// A bounded stack of slots.
#[derive(Debug)]
pub(crate) struct Sheaf {
    slots: Vec<Slot>,
    capacity: usize,
}

impl Sheaf {
    /// An empty sheaf; `None` if there is no memory for its array.
    pub(crate) fn try_new(capacity: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).ok()?;
        Some(Self { slots, capacity })
    }

    /// A sheaf from an array that was a sheaf's before; see [`Sheaf::into_parts`].
    pub(crate) fn from_parts(slots: Vec<Slot>, capacity: usize) -> Self {
        debug_assert!(slots.len() <= capacity && capacity <= slots.capacity());
        Self { slots, capacity }
    }

    /// The array and the capacity.
    pub(crate) fn into_parts(mut self) -> (Vec<Slot>, usize) {
        (core::mem::take(&mut self.slots), self.capacity)
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
        self.slots
            .extend(other.slots.drain(other.slots.len() - n..));
    }

    /// Takes every slot out, lowest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Slot> {
        self.slots.drain(..)
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
