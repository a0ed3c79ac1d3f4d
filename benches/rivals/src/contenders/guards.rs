//! Pools that hand out guards, each as its own documentation uses it.
#![forbid(unsafe_code)]

use infinity_pool::{PinnedPool, PooledMut};
use lockfree_object_pool::{LinearObjectPool, LinearReusable};
use opool::{PoolAllocator, RefGuard};

use crate::heap::{Heap, Kind, Local};
use crate::object::{MID_240, Object};

type Object240 = Object<MID_240>;

/// infinity_pool: slots behind one mutex.
pub struct Infinity(PinnedPool<Object240>);

/// lockfree-object-pool: objects stay constructed. A pull walks over the live ones.
pub struct Lockfree(LinearObjectPool<Object240>);

/// object-pool: a locked stack of constructed objects, here boxes, so that objects stay where they are.
pub struct ObjectPool(object_pool::Pool<Box<Object240>>);

/// opool: a bounded queue of constructed objects, here boxes. Its pool is `Send` for any maker of objects.
pub struct Opool(opool::Pool<Maker, Box<Object240>>);

/// Makes opool's objects.
pub struct Maker;

impl PoolAllocator<Box<Object240>> for Maker {
    fn allocate(&self) -> Box<Object240> {
        Box::new(Object::new(0))
    }
}

pub struct InfinityLocal<'a>(&'a PinnedPool<Object240>);
pub struct LockfreeLocal<'a>(&'a LinearObjectPool<Object240>);
pub struct ObjectPoolLocal<'a>(&'a object_pool::Pool<Box<Object240>>);
pub struct OpoolLocal<'a>(&'a opool::Pool<Maker, Box<Object240>>);

/// Live objects that lockfree-object-pool is asked for.
const LINEAR_MOST: usize = 4096;

macro_rules! heap {
    ($heap:ident, $name:literal, $kind:ident, $most:expr, $local:ident, |$n:ident| $build:expr) => {
        impl Heap for $heap {
            const NAME: &'static str = $name;
            const KIND: Kind = Kind::$kind;
            const MOST: usize = $most;
            type Local<'a> = $local<'a>;

            fn new($n: usize) -> Self {
                Self($build)
            }

            fn local(&self, _held: usize) -> $local<'_> {
                $local(&self.0)
            }
        }
    };
}

heap!(
    Infinity,
    "infinity_pool",
    Pool,
    usize::MAX,
    InfinityLocal,
    |_most| PinnedPool::new()
);
heap!(
    Lockfree,
    "lockfree-object-pool",
    Other,
    LINEAR_MOST,
    LockfreeLocal,
    |_most| LinearObjectPool::new(|| Object::new(0), |_| ())
);
heap!(
    ObjectPool,
    "object-pool",
    Pool,
    usize::MAX,
    ObjectPoolLocal,
    |_most| object_pool::Pool::new(0, || Box::new(Object::new(0)))
);
heap!(Opool, "opool", Other, usize::MAX, OpoolLocal, |most| {
    opool::Pool::new(most.max(1), Maker)
});

macro_rules! local {
    ($local:ident, $owned:ty, |$this:ident, $tag:ident| $alloc:expr) => {
        impl<'a> Local for $local<'a> {
            type Owned = $owned;

            #[inline(always)]
            fn alloc(&mut self, _place: usize, $tag: u64) -> Self::Owned {
                let $this = self;
                $alloc
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
    };
}

local!(InfinityLocal, PooledMut<Object240>, |this, tag| {
    this.0.insert(Object::new(tag))
});
local!(LockfreeLocal, LinearReusable<'a, Object240>, |this, tag| {
    let mut owned = this.0.pull();
    owned.stamp(tag);
    owned
});
local!(
    ObjectPoolLocal,
    object_pool::Reusable<'a, Box<Object240>>,
    |this, tag| {
        let mut owned = this.0.pull(|| Box::new(Object::new(0)));
        owned.stamp(tag);
        owned
    }
);
local!(
    OpoolLocal,
    RefGuard<'a, Maker, Box<Object240>>,
    |this, tag| {
        let mut owned = this.0.get();
        owned.stamp(tag);
        owned
    }
);
