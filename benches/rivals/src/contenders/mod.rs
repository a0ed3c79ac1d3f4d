//! Who takes part, and where.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod allocators;
pub mod cells;
pub mod floor;
pub mod guards;
pub mod keys;
pub mod ours;
pub mod plurality;
pub mod raw;
pub mod retire;

use std::alloc::System;

use mimalloc::MiMalloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;

use crate::heap::Heap;
use crate::object::MID_240;
use raw::{Empty, Malloc};

/// What is done with a contender that one thread uses.
pub trait Visit {
    fn visit<H: Heap>(&mut self);
}

/// What is done with a contender that threads share.
pub trait VisitShared {
    fn visit<H: Heap + Sync>(&mut self);
}

/// The harness, the pool and the mallocs, with objects of `16 + 8 * MID` bytes.
pub fn of_size<const MID: usize>(visitor: &mut impl VisitShared) {
    visitor.visit::<Empty<MID>>();
    visitor.visit::<ours::Plain<MID>>();
    mallocs::<MID>(visitor);
}

fn mallocs<const MID: usize>(visitor: &mut impl VisitShared) {
    visitor.visit::<Malloc<System, MID>>();
    visitor.visit::<Malloc<MiMalloc, MID>>();
    visitor.visit::<Malloc<Jemalloc, MID>>();
    visitor.visit::<Malloc<SnMalloc, MID>>();
}

/// All that threads can share, with objects of 240 bytes.
pub fn shared(visitor: &mut impl VisitShared) {
    visitor.visit::<Empty<MID_240>>();
    visitor.visit::<ours::Plain<MID_240>>();
    visitor.visit::<ours::Large<MID_240>>();
    visitor.visit::<ours::InBox<MID_240>>();
    visitor.visit::<ours::Prefilled<MID_240>>();
    mallocs::<MID_240>(visitor);
    visitor.visit::<plurality::ThreadLocal>();
    visitor.visit::<plurality::Locked>();
    visitor.visit::<keys::ShardedPool>();
    visitor.visit::<guards::ObjectPool>();
    visitor.visit::<guards::Infinity>();
    visitor.visit::<guards::Opool>();
    visitor.visit::<guards::Lockfree>();
    visitor.visit::<keys::Sharded>();
}

/// All, with objects of 240 bytes.
pub fn all(visitor: &mut impl Visit) {
    struct Lone<'a, V>(&'a mut V);
    impl<V: Visit> VisitShared for Lone<'_, V> {
        fn visit<H: Heap + Sync>(&mut self) {
            self.0.visit::<H>();
        }
    }
    shared(&mut Lone(visitor));
    visitor.visit::<floor::Bare<MID_240>>();
    visitor.visit::<plurality::OneThread>();
    visitor.visit::<keys::Keys>();
}

/// What is compared where boxes come and go by the thousand.
pub fn boxes(visitor: &mut impl VisitShared) {
    visitor.visit::<ours::InBox<MID_240>>();
    of_size::<MID_240>(visitor);
}

/// What is compared where whole batches change hands: the pool's bulk calls against loops.
pub fn bulk(visitor: &mut impl VisitShared) {
    visitor.visit::<ours::Bulk<MID_240>>();
    of_size::<MID_240>(visitor);
}

/// What is compared where a latency is taken.
pub fn latency(visitor: &mut impl VisitShared) {
    visitor.visit::<ours::Prefilled<MID_240>>();
    of_size::<MID_240>(visitor);
}
