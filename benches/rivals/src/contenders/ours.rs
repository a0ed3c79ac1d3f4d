//! The crate's own ways to allocate.
#![forbid(unsafe_code)]

use allocator_api2::boxed::Box as BoxIn;
use sheaves::{Order, Pool, PoolBox, PrefilledSheaf};

use crate::heap::{Heap, Kind, Local};
use crate::object::Object;

/// `PoolBox` of a pool with nothing configured.
pub struct Plain<const MID: usize>(pub Pool<Object<MID>>);

/// The same with 2 MiB slabs and sheaves of 256.
pub struct Large<const MID: usize>(Pool<Object<MID>>);

/// allocator-api2's `Box` over a borrowed pool.
pub struct InBox<const MID: usize>(Pool<Object<MID>>);

/// A prefilled sheaf with a slot for every object that its thread holds; freed into the sheaf.
pub struct Prefilled<const MID: usize>(Pool<Object<MID>>);

/// `PoolBox` through the bulk calls.
pub struct Bulk<const MID: usize>(Pool<Object<MID>>);

pub struct PlainLocal<'a, const MID: usize>(&'a Pool<Object<MID>>);
pub struct InBoxLocal<'a, const MID: usize>(&'a Pool<Object<MID>>);
pub struct PrefilledLocal<const MID: usize>(PrefilledSheaf<Object<MID>>);
pub struct BulkLocal<'a, const MID: usize> {
    pool: &'a Pool<Object<MID>>,
    uninit: Vec<PoolBox<std::mem::MaybeUninit<Object<MID>>>>,
}

macro_rules! heap {
    ($heap:ident, $name:literal, $local:ty, |$pool:ident, $held:ident| $make:expr, $build:expr) => {
        impl<const MID: usize> Heap for $heap<MID> {
            const NAME: &'static str = $name;
            const KIND: Kind = Kind::Ours;
            type Local<'a> = $local;

            fn new(_most: usize) -> Self {
                Self($build)
            }

            fn local(&self, $held: usize) -> Self::Local<'_> {
                let $pool = &self.0;
                $make
            }

            fn purge(&self) {
                self.0.shrink();
            }
        }
    };
}

heap!(
    Plain,
    "PoolBox",
    PlainLocal<'a, MID>,
    |pool, _held| PlainLocal(pool),
    Pool::new("plain")
);
heap!(
    Large,
    "PoolBox, 2 MiB slabs, sheaves of 256",
    PlainLocal<'a, MID>,
    |pool, _held| PlainLocal(pool),
    Pool::builder("large")
        .order(Order::LARGE)
        .sheaf_capacity(256)
        .build()
        .expect("the options are possible")
);
heap!(
    InBox,
    "Box in &Pool",
    InBoxLocal<'a, MID>,
    |pool, _held| InBoxLocal(pool),
    Pool::new("in_box")
);
heap!(
    Prefilled,
    "prefilled sheaf",
    PrefilledLocal<MID>,
    |pool, held| PrefilledLocal(pool.prefill(held).expect("there is memory")),
    Pool::new("prefilled")
);
heap!(
    Bulk,
    "PoolBox, bulk calls",
    BulkLocal<'a, MID>,
    |pool, held| BulkLocal {
        pool,
        uninit: Vec::with_capacity(held)
    },
    Pool::new("bulk")
);

impl<const MID: usize> Local for PlainLocal<'_, MID> {
    type Owned = PoolBox<Object<MID>>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
        self.0.alloc(Object::new(tag))
    }

    #[inline(always)]
    fn free(&mut self, owned: Self::Owned) -> u64 {
        owned.check()
    }

    #[inline(always)]
    fn touch(owned: &mut Self::Owned, times: u64) {
        owned.touch(times);
    }
}

impl<'a, const MID: usize> Local for InBoxLocal<'a, MID> {
    type Owned = BoxIn<Object<MID>, &'a Pool<Object<MID>>>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
        BoxIn::new_in(Object::new(tag), self.0)
    }

    #[inline(always)]
    fn free(&mut self, owned: Self::Owned) -> u64 {
        owned.check()
    }

    #[inline(always)]
    fn touch(owned: &mut Self::Owned, times: u64) {
        owned.touch(times);
    }
}

impl<const MID: usize> PrefilledLocal<MID> {
    /// For workloads whose objects are freed elsewhere.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, tag: u64) -> PoolBox<Object<MID>> {
        let capacity = self.0.capacity();
        self.0.refill(capacity).expect("there is memory");
        self.0.alloc(Object::new(tag)).expect("it was refilled")
    }
}

impl<const MID: usize> Local for PrefilledLocal<MID> {
    type Owned = PoolBox<Object<MID>>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
        // `alloc_with`: what comes back when the sheaf is empty is a small closure, not the object.
        match self.0.alloc_with(|| Object::new(tag)) {
            Ok(owned) => owned,
            Err(_) => self.refill(tag),
        }
    }

    #[inline(always)]
    fn free(&mut self, owned: Self::Owned) -> u64 {
        let tag = owned.check();
        // What finds no room is dropped, as any box.
        drop(self.0.free(owned));
        tag
    }

    #[inline(always)]
    fn touch(owned: &mut Self::Owned, times: u64) {
        owned.touch(times);
    }
}

impl<const MID: usize> Local for BulkLocal<'_, MID> {
    type Owned = PoolBox<Object<MID>>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
        self.pool.alloc(Object::new(tag))
    }

    #[inline(always)]
    fn free(&mut self, owned: Self::Owned) -> u64 {
        owned.check()
    }

    #[inline(always)]
    fn touch(owned: &mut Self::Owned, times: u64) {
        owned.touch(times);
    }

    #[inline(always)]
    fn alloc_many(&mut self, n: usize, mut tag: impl FnMut() -> u64, held: &mut Vec<Self::Owned>) {
        let uninit = &mut self.uninit;
        let got = self.pool.try_alloc_uninit_bulk(n, uninit);
        got.expect("there is memory");
        held.extend(
            uninit
                .drain(..)
                .map(|slot| PoolBox::write(slot, Object::new(tag()))),
        );
    }

    #[inline(always)]
    fn free_many(&mut self, held: &mut Vec<Self::Owned>, mut tag: impl FnMut(u64)) {
        PoolBox::free_bulk(held.drain(..).inspect(|owned| tag(owned.check())));
    }
}
