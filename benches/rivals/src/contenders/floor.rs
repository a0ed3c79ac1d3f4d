//! The least that anything costs which keeps free objects in memory and hands out the last of them.
#![deny(unsafe_op_in_unsafe_fn)]

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::raw::Raw;
use crate::heap::{Heap, Kind, Local};
use crate::object::Object;

pub const FLOOR: &str = "floor: a bare stack";

/// Objects that are all there from the start, and a stack of those that are free, which the thread finds by a
/// thread-local. Its top is loaded and stored at each turn, as it must be wherever another thread may look at it. Nobody
/// does: no pool is told from another, no end looked for, no free checked.
pub struct Bare<const MID: usize> {
    objects: Box<[UnsafeCell<Object<MID>>]>,
}

/// The address of the object that is free, and nobody's, in each place below the top.
struct Stack {
    top: AtomicPtr<*mut u8>,
    places: Box<[*mut u8]>,
}

thread_local! {
    static STACK: Cell<*const Stack> = const { Cell::new(std::ptr::null()) };
}

/// Keeps the stack of the thread.
pub struct BareLocal<'a, const MID: usize> {
    stack: Box<Stack>,
    _objects: PhantomData<&'a Bare<MID>>,
}

impl<const MID: usize> Drop for BareLocal<'_, MID> {
    fn drop(&mut self) {
        STACK.set(std::ptr::null());
        debug_assert!(!self.stack.places.is_empty(), "workloads hold something");
    }
}

impl<const MID: usize> Heap for Bare<MID> {
    const NAME: &'static str = FLOOR;
    const KIND: Kind = Kind::Other;
    type Local<'a> = BareLocal<'a, MID>;

    fn new(most: usize) -> Self {
        let objects = (0..=most)
            .map(|_| UnsafeCell::new(Object::new(0)))
            .collect();
        Self { objects }
    }

    fn local(&self, _held: usize) -> BareLocal<'_, MID> {
        let all = self.objects.iter().rev();
        let mut places: Box<[*mut u8]> = all.map(|cell| cell.get().cast()).collect();
        let top = AtomicPtr::new(places.as_mut_ptr().wrapping_add(places.len()));
        let stack = Box::new(Stack { top, places });
        STACK.set(&raw const *stack);
        BareLocal {
            stack,
            _objects: PhantomData,
        }
    }
}

/// The stack of the running thread.
///
/// # Safety
///
/// A [`BareLocal`] lives, and was made by this thread after all others.
#[inline(always)]
unsafe fn own<'a>() -> &'a Stack {
    // SAFETY: the local has pointed to it, and keeps it.
    unsafe { &*STACK.get() }
}

impl<const MID: usize> Local for BareLocal<'_, MID> {
    type Owned = Raw<MID>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Raw<MID> {
        // SAFETY: this is the thread's only one.
        let stack = unsafe { own() };
        // Relaxed: one thread.
        let top = stack.top.load(Ordering::Relaxed).wrapping_sub(1);
        // SAFETY: no workload holds more objects than it said.
        let slot = unsafe { *top };
        stack.top.store(top, Ordering::Relaxed);
        // SAFETY: cells are somewhere.
        let slot = unsafe { NonNull::new_unchecked(slot.cast()) };
        // SAFETY: a free object of this contender is nobody's.
        unsafe { Raw::stamped(slot, tag) }
    }

    #[inline(always)]
    fn free(&mut self, owned: Raw<MID>) -> u64 {
        let tag = owned.check();
        // SAFETY: this is the thread's only one.
        let stack = unsafe { own() };
        // Relaxed: one thread.
        let top = stack.top.load(Ordering::Relaxed);
        // SAFETY: what is freed was allocated, so there is room for it.
        unsafe { *top = owned.start().as_ptr().cast() };
        stack.top.store(top.wrapping_add(1), Ordering::Relaxed);
        tag
    }

    #[inline(always)]
    fn touch(owned: &mut Raw<MID>, times: u64) {
        owned.touch(times);
    }
}
