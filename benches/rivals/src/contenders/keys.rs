//! Slabs that hand out keys, and sharded-slab's pool.
#![forbid(unsafe_code)]

use std::sync::Arc;

use sharded_slab::pool::OwnedRefMut;
use slab::Slab;

use crate::heap::{Heap, Kind, Local};
use crate::object::{MID_240, Object};

type Object240 = Object<MID_240>;

/// slab: a vector of objects, found by key, on one thread.
pub struct Keys;
pub struct KeysLocal(Slab<Object240>);

/// sharded-slab's slab, with keys.
pub struct Sharded(sharded_slab::Slab<Object240>);
pub struct ShardedLocal<'a>(&'a sharded_slab::Slab<Object240>);

/// sharded-slab's pool of cleared objects, with guards that own their share of the pool.
pub struct ShardedPool(Arc<sharded_slab::Pool<Object240>>);
pub struct ShardedPoolLocal<'a>(&'a Arc<sharded_slab::Pool<Object240>>);

impl sharded_slab::Clear for Object240 {
    #[inline(always)]
    fn clear(&mut self) {}
}

impl Heap for Keys {
    const NAME: &'static str = "slab, keys";
    const KIND: Kind = Kind::Other;
    const KEYS: bool = true;
    type Local<'a> = KeysLocal;

    fn new(_most: usize) -> Self {
        Self
    }

    fn local(&self, _held: usize) -> KeysLocal {
        KeysLocal(Slab::new())
    }
}

impl Local for KeysLocal {
    type Owned = usize;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> usize {
        self.0.insert(Object::new(tag))
    }

    #[inline(always)]
    fn free(&mut self, owned: usize) -> u64 {
        self.0.remove(owned).check()
    }

    #[inline(always)]
    fn touch(_owned: &mut usize, _times: u64) {
        unreachable!("keys are left out where objects are written");
    }
}

impl Heap for Sharded {
    const NAME: &'static str = "sharded-slab, keys";
    const KIND: Kind = Kind::Other;
    const KEYS: bool = true;
    type Local<'a> = ShardedLocal<'a>;

    fn new(_most: usize) -> Self {
        Self(sharded_slab::Slab::new())
    }

    fn local(&self, _held: usize) -> ShardedLocal<'_> {
        ShardedLocal(&self.0)
    }
}

impl Local for ShardedLocal<'_> {
    type Owned = usize;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> usize {
        let key = self.0.insert(Object::new(tag));
        key.expect("there is room")
    }

    #[inline(always)]
    fn free(&mut self, owned: usize) -> u64 {
        let tag = self.0.get(owned).expect("the key is live").check();
        self.0.remove(owned);
        tag
    }

    #[inline(always)]
    fn touch(_owned: &mut usize, _times: u64) {
        unreachable!("keys are left out where objects are written");
    }
}

impl Heap for ShardedPool {
    const NAME: &'static str = "sharded-slab, pool";
    const KIND: Kind = Kind::Pool;
    type Local<'a> = ShardedPoolLocal<'a>;

    fn new(_most: usize) -> Self {
        Self(Arc::new(sharded_slab::Pool::new()))
    }

    fn local(&self, _held: usize) -> ShardedPoolLocal<'_> {
        ShardedPoolLocal(&self.0)
    }
}

impl Local for ShardedPoolLocal<'_> {
    type Owned = OwnedRefMut<Object240>;

    #[inline(always)]
    fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
        let owned = Arc::clone(self.0).create_owned();
        let mut owned = owned.expect("there is room");
        owned.stamp(tag);
        owned
    }

    #[inline(always)]
    fn free(&mut self, owned: Self::Owned) -> u64 {
        let (tag, key) = (owned.check(), owned.key());
        drop(owned);
        self.0.clear(key);
        tag
    }

    #[inline(always)]
    fn touch(owned: &mut Self::Owned, times: u64) {
        owned.touch(times);
    }
}
