//! The one door to shared memory: atomics, locks, thread-locals and barriers.
//!
//! No other module names `std::sync`, `core::sync::atomic`, `thread_local!` or loom. In a model build
//! (`--cfg loom` in this crate's own tests, or with the feature `loom`) the same names are loom's, so a
//! protocol is checked as it is written and not as a copy of itself.
//!
//! # Two barriers
//!
//! The gate of a thread's sheaves needs a store to be ordered before a later load, which is the one order
//! that costs a fence. It is split in two halves of unequal weight:
//!
//! * the *light* half runs on every allocation and free. [`light_barrier`] only keeps the compiler from
//!   reordering; [`full_fence`] is the fallback, a real fence.
//! * the *heavy* half runs in a drainer. [`heavy_barrier`] makes every running thread of the process pass
//!   a full fence (`membarrier(PRIVATE_EXPEDITED)`), or is a full fence itself where the light half is one.
//!
//! After a heavy barrier, for every thread either its light half came first and the drainer sees the store
//! before it, or the load after the light half sees what the drainer stored before the heavy one.

mod cpu;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod membarrier;
#[cfg(all(loom, any(test, feature = "loom")))]
mod model;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod real;
#[cfg_attr(
    all(loom, any(test, feature = "loom")),
    allow(dead_code, reason = "a model build compiles the lower layers only")
)]
mod shared;

pub(crate) use cpu::current_cpu;
#[cfg(all(loom, any(test, feature = "loom")))]
pub(crate) use model::*;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use real::*;
pub(crate) use shared::Shared;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use shared::Weak;
