//! The least that anything costs which keeps free objects in memory and hands out the last of them.
#![deny(unsafe_op_in_unsafe_fn)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::raw::Raw;
use crate::heap::{Heap, Kind, Local};
use crate::object::Object;

pub const FLOOR: &str = "floor: a bare stack";

/// Objects that are all there from the start, and a stack of those that are free: its top is loaded and stored at each
/// turn, as it must be wherever another thread may look at it. Nobody does: no thread-local is found, no pool told from
/// another, no end looked for, no free checked.
pub struct Bare<const MID: usize> {
    objects: Box<[UnsafeCell<Object<MID>>]>,
}

pub struct BareLocal<'a, const MID: usize> {
    top: AtomicUsize,
    free: Box<[NonNull<Object<MID>>]>,
    _objects: PhantomData<&'a Bare<MID>>,
}

impl<const MID: usize> Heap for Bare<MID> {
    const NAME: &'static str = FLOOR;
    const KIND: Kind = Kind::Other;
    type Local<'a> = BareLocal<'a, MID>;

    fn new(most: usize) -> Self {
        let objects = (0..most).map(|_| UnsafeCell::new(Object::new(0))).collect();
        Self { objects }
    }

    fn local(&self, _held: usize) -> BareLocal<'_, MID> {
        let all = self.objects.iter().rev();
        let free: Box<[_]> = all.filter_map(|cell| NonNull::new(cell.get())).collect();
        BareLocal {
            top: AtomicUsize::new(free.len()),
            free,
            _objects: PhantomData,
        }
    }
}

impl<const MID: usize> Local for BareLocal<'_, MID> {
    type Owned = Raw<MID>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Raw<MID> {
        // Relaxed: one thread.
        let top = self.top.load(Ordering::Relaxed) - 1;
        // SAFETY: no workload holds more objects than it said.
        let slot = unsafe { *self.free.get_unchecked(top) };
        self.top.store(top, Ordering::Relaxed);
        // SAFETY: a free object of this contender is nobody's.
        unsafe { Raw::stamped(slot, tag) }
    }

    #[inline(always)]
    fn free(&mut self, owned: Raw<MID>) -> u64 {
        let tag = owned.check();
        // Relaxed: one thread.
        let top = self.top.load(Ordering::Relaxed);
        // SAFETY: what is freed was allocated, so there is room for it.
        unsafe { *self.free.get_unchecked_mut(top) = owned.start() };
        self.top.store(top + 1, Ordering::Relaxed);
        tag
    }

    #[inline(always)]
    fn touch(owned: &mut Raw<MID>, times: u64) {
        owned.touch(times);
    }
}
