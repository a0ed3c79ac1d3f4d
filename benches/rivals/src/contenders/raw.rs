//! Contenders behind raw pointers: the empty one and the mallocs.

use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::heap::{Heap, Kind, LAST, Local};
use crate::object::Object;

/// Owns an object through a pointer.
#[derive(Debug)]
pub struct Raw<const MID: usize>(NonNull<Object<MID>>);

// SAFETY: it owns the object, which is plain words.
unsafe impl<const MID: usize> Send for Raw<MID> {}

impl<const MID: usize> Raw<MID> {
    /// # Safety
    ///
    /// `start` is valid for writes of an object and is the caller's alone.
    #[inline(always)]
    pub(super) unsafe fn stamped(start: NonNull<Object<MID>>, tag: u64) -> Self {
        // SAFETY: passed on. The fields are written in place, as `Box::new` of a value built in place would.
        unsafe { start.write(Object::new(tag)) };
        Self(start)
    }

    #[inline(always)]
    pub(super) fn start(&self) -> NonNull<Object<MID>> {
        self.0
    }

    #[inline(always)]
    pub(super) fn check(&self) -> u64 {
        // SAFETY: it owns the object, which was stamped.
        unsafe { self.0.as_ref() }.check()
    }

    #[inline(always)]
    pub(super) fn touch(&mut self, times: u64) {
        // SAFETY: it owns the object, which was stamped.
        unsafe { self.0.as_mut() }.touch(times);
    }
}

/// Allocates nothing: the object of each place is always the same one.
pub struct Empty<const MID: usize> {
    objects: Box<[UnsafeCell<Object<MID>>]>,
}

// SAFETY: the workloads give every place to one holder at a time.
unsafe impl<const MID: usize> Sync for Empty<MID> {}

pub struct EmptyLocal<'a, const MID: usize> {
    objects: &'a [UnsafeCell<Object<MID>>],
    last: NonNull<Object<MID>>,
}

impl<const MID: usize> Heap for Empty<MID> {
    const NAME: &'static str = "harness";
    const KIND: Kind = Kind::Harness;
    type Local<'a> = EmptyLocal<'a, MID>;

    fn new(most: usize) -> Self {
        let objects = (0..=most).map(|_| UnsafeCell::new(Object::new(0)));
        Self {
            objects: objects.collect(),
        }
    }

    fn local(&self, _held: usize) -> EmptyLocal<'_, MID> {
        let objects = &self.objects;
        EmptyLocal {
            objects,
            last: as_ptr(&objects[objects.len() - 1]),
        }
    }
}

fn as_ptr<const MID: usize>(cell: &UnsafeCell<Object<MID>>) -> NonNull<Object<MID>> {
    NonNull::new(cell.get()).expect("a cell is somewhere")
}

impl<const MID: usize> Local for EmptyLocal<'_, MID> {
    type Owned = Raw<MID>;

    #[inline(always)]
    fn alloc(&mut self, place: usize, tag: u64) -> Raw<MID> {
        let start = if place == LAST {
            self.last
        } else {
            as_ptr(&self.objects[place])
        };
        // SAFETY: the place has one holder, which has no object at the moment.
        unsafe { Raw::stamped(start, tag) }
    }

    #[inline(always)]
    fn free(&mut self, owned: Raw<MID>) -> u64 {
        self.last = owned.0;
        owned.check()
    }

    #[inline(always)]
    fn touch(owned: &mut Raw<MID>, times: u64) {
        owned.touch(times);
    }
}

/// A malloc that Rust knows as a global allocator.
pub trait Named: GlobalAlloc + Sync + 'static {
    const NAME: &'static str;
    const ALLOC: Self;

    fn purge() {}
}

impl Named for System {
    const NAME: &'static str = "Box, glibc";
    const ALLOC: Self = Self;

    fn purge() {
        // SAFETY: it has no preconditions.
        unsafe { libc::malloc_trim(0) };
    }
}

impl Named for mimalloc::MiMalloc {
    const NAME: &'static str = "Box, mimalloc";
    const ALLOC: Self = Self;

    fn purge() {
        // SAFETY: it has no preconditions.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

impl Named for tikv_jemallocator::Jemalloc {
    const NAME: &'static str = "Box, jemalloc";
    const ALLOC: Self = Self;

    fn purge() {
        /// All arenas (MALLCTL_ARENAS_ALL).
        const PURGE: &core::ffi::CStr = c"arena.4096.purge";
        let none = core::ptr::null_mut();
        // SAFETY: the name is a string, and this control takes and gives no value.
        unsafe { tikv_jemalloc_sys::mallctl(PURGE.as_ptr(), none, none.cast(), none, 0) };
    }
}

impl Named for snmalloc_rs::SnMalloc {
    const NAME: &'static str = "Box, snmalloc";
    const ALLOC: Self = Self;
}

/// `Box` on a malloc: what the compiler makes of `Box::new` and its drop, with the malloc's own calls in place
/// of the global allocator's.
pub struct Malloc<A, const MID: usize>(PhantomData<A>);

/// A malloc finds what it needs by itself.
pub struct MallocLocal<A, const MID: usize>(PhantomData<A>);

impl<A: Named, const MID: usize> Heap for Malloc<A, MID> {
    const NAME: &'static str = A::NAME;
    const KIND: Kind = Kind::Malloc;
    type Local<'a> = MallocLocal<A, MID>;

    fn new(_most: usize) -> Self {
        Self(PhantomData)
    }

    fn local(&self, _held: usize) -> MallocLocal<A, MID> {
        MallocLocal(PhantomData)
    }

    fn purge(&self) {
        A::purge();
    }
}

impl<A: Named, const MID: usize> Local for MallocLocal<A, MID> {
    type Owned = Raw<MID>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Raw<MID> {
        let layout = const { Layout::new::<Object<MID>>() };
        // SAFETY: the layout is not of size zero.
        let start = unsafe { A::ALLOC.alloc(layout) };
        match NonNull::new(start) {
            // SAFETY: it was just allocated with this layout.
            Some(start) => unsafe { Raw::stamped(start.cast(), tag) },
            None => handle_alloc_error(layout),
        }
    }

    #[inline(always)]
    fn free(&mut self, owned: Raw<MID>) -> u64 {
        let tag = owned.check();
        let layout = const { Layout::new::<Object<MID>>() };
        // SAFETY: `alloc` of the same malloc gave it, with this layout, and its owner ends here.
        unsafe { A::ALLOC.dealloc(owned.0.as_ptr().cast(), layout) };
        tag
    }

    #[inline(always)]
    fn touch(owned: &mut Raw<MID>, times: u64) {
        owned.touch(times);
    }
}
