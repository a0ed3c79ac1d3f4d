//! plurality's `Box`: its pointer that, as `PoolBox`, may be sent and outlive its pool. Its `Alloc<'pool>` may
//! not, and is a little cheaper.
#![forbid(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use plurality::{Box, Pool};

use crate::heap::{Heap, Kind, Local};
use crate::object::{MID_240, Object};

type Object240 = Object<MID_240>;

/// The pool used by one thread, as it is meant to be.
pub struct OneThread(Pool<Object240>);

/// A pool for each thread.
pub struct ThreadLocal;

/// One pool for all threads. Frees do not need the lock.
pub struct Locked(Mutex<Pool<Object240>>);

pub struct OneThreadLocal<'a>(&'a Pool<Object240>);
pub struct ThreadLocalLocal;
pub struct LockedLocal<'a>(&'a Mutex<Pool<Object240>>);

thread_local! {
    static POOL: Pool<Object240> = Pool::new();
}

impl Heap for OneThread {
    const NAME: &'static str = "plurality, one thread";
    const KIND: Kind = Kind::Pool;
    type Local<'a> = OneThreadLocal<'a>;

    fn new(_most: usize) -> Self {
        Self(Pool::new())
    }

    fn local(&self, _held: usize) -> OneThreadLocal<'_> {
        OneThreadLocal(&self.0)
    }
}

impl Heap for ThreadLocal {
    const NAME: &'static str = "plurality, thread-local";
    const KIND: Kind = Kind::Pool;
    type Local<'a> = ThreadLocalLocal;

    fn new(_most: usize) -> Self {
        Self
    }

    fn local(&self, _held: usize) -> ThreadLocalLocal {
        ThreadLocalLocal
    }
}

impl Heap for Locked {
    const NAME: &'static str = "plurality in a Mutex";
    const KIND: Kind = Kind::Pool;
    type Local<'a> = LockedLocal<'a>;

    fn new(_most: usize) -> Self {
        Self(Mutex::new(Pool::new()))
    }

    fn local(&self, _held: usize) -> LockedLocal<'_> {
        LockedLocal(&self.0)
    }
}

macro_rules! local {
    ($local:ty, |$this:ident, $make:ident| $alloc:expr) => {
        impl Local for $local {
            type Owned = Box<Object240>;

            #[inline(always)]
            fn alloc(&mut self, _place: usize, tag: u64) -> Self::Owned {
                let $this = self;
                let $make = || Object::new(tag);
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

local!(OneThreadLocal<'_>, |this, make| this.0.alloc_box_with(make));
local!(ThreadLocalLocal, |_this, make| POOL
    .with(|pool| pool.alloc_box_with(make)));
local!(LockedLocal<'_>, |this, make| {
    let pool = this.0.lock().unwrap_or_else(PoisonError::into_inner);
    pool.alloc_box_with(make)
});
