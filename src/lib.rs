//! A typed `kmem_cache` in user space: pools for the structs that a program allocates all day.
//!
//! A [`Pool<T>`] hands out slots of exactly one size from *slabs*, runs of pages that it has from a *page source*. Each
//! thread keeps *sheaves*, small stacks of free slots, and uses them without locks or atomic read-modify-writes. Whole
//! sheaves change hands at a shared *barn*. A [`PoolBox`] is one pointer, finds its pool by its address, and may be sent
//! and dropped anywhere, also when the pool's last handle has gone.
#![doc = concat!("\n", include_str!("../docs/pool.svg"), "\n")]
//! # Three uses
//!
//! ```
//! # #[cfg(all(feature = "derive", feature = "allocator-api2-02"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use allocator_api2::vec::Vec;
//! use sheaves::{Pool, PoolBox, Pooled};
//!
//! #[derive(Pooled)] // 1. objects: one pool for a hot struct
//! struct Request {
//!     fd: i32,
//! }
//! let request: PoolBox<Request> = Request { fd: 3 }.pooled();
//! assert_eq!(request.fd, 3);
//!
//! let pool: Pool<u64> = Pool::builder("key").limit(100).build()?;
//! let mut keys = Vec::new_in(&pool); // 2. collections in a pool's memory
//! keys.extend([10_u64, 20]);
//!
//! let mut sheaf = pool.prefill(2)?; // 3. slots set aside, here where blocking is allowed
//! let key = sheaf.alloc(keys[0])?; // no lock, no system call, no page fault
//! assert!(sheaf.free(key).is_ok());
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "derive", feature = "allocator-api2-02")))]
//! # fn main() {}
//! ```
//!
//! # Where to go on
//!
//! - [`guide`]: choosing what a pool is built with, each use step by step, executors, real time, moving from `Box` and
//!   from `kmem_cache`.
//! - [`Pool`], [`Builder`], [`PoolBox`], [`PrefilledSheaf`]: most of what there is to call. [`Pooled`] is the derive.
//! - [`rcu`], [`RcuCell`], [`StablePool`]: readers without locks.
//! - [`PoolOf`] and `&Pool`: the allocators of collections.
//! - [`page`]: where memory comes from: [`PageSource`], and the sources there are.
//! - [`Stats`], [`slabinfo`], [`export`]: what pools hold. [`DebugFlags`], [`report`], [`Fault`], [`testing`]: finding
//!   faults, and making them.
//!
//! # Promises
//!
//! User code (constructors, destructors, closures, iterators, page sources, hooks) never runs under a lock of the crate,
//! and may use every pool; a panic in it leaves the pool usable. A limit is exact over all threads. When everything is
//! freed, one [`Pool::shrink`] from any thread returns all memory but the reserve. Safe code cannot free twice. Forked
//! children, destructors of thread-locals and `atexit` handlers may use pools.
//!
//! # Features
//!
//! Each only adds. On by default: `derive`, `allocator-api2-02` (the `Allocator` trait of allocator-api2 0.2, for
//! hashbrown and others), `arena` ([`Arena`]), `rcu`. Off: `allocator-api2-04`, `nightly` (core's `Allocator`),
//! `op-counters` (counts fast paths too), `valgrind`, `tracing`, `metrics`, `serde`.
//!
//! # Platforms
//!
//! 64-bit only. Linux on x86-64 is tested; other systems are meant to compile, and have slower fast paths where there
//! is no `membarrier`. Rust 1.85 or newer.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Badges tell of features and systems, not of what only this crate's builds set.
#![cfg_attr(
    docsrs,
    doc(auto_cfg(hide(
        loom,
        test,
        feature = "loom",
        any_allocator,
        core_allocator,
        gated_allocator
    )))
)]
#![cfg_attr(gated_allocator, feature(allocator_api))]
#![cfg_attr(rtsan, feature(sanitize))]
// What the library needs of std is meant to be seen; tests and examples may take all of it from there.
#![warn(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core
)]
#![cfg_attr(
    all(loom, any(test, feature = "loom")),
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "a model build compiles the lower layers only"
    )
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("sheaves needs a 64-bit target: its page map spans the address space");

extern crate alloc;

mod sync;

mod base;
mod hook;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub mod page;
mod slab;

mod sheaf;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod node;
// Of the layers that stand on pages a model build has the protocols only.
#[cfg(all(loom, any(test, feature = "loom")))]
mod node {
    #[cfg(test)]
    mod model;
    pub(crate) mod quota;
    pub(crate) mod tenancy;
}

mod barn;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod registry;

#[cfg(feature = "rcu")]
mod grace;

mod local;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod cache;
#[cfg(all(loom, any(test, feature = "loom")))]
mod cache {
    #[cfg(test)]
    mod model;
    mod tightness;
}

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod pool;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
#[doc(hidden)]
pub mod private;

/// Help for tests of code that uses pools.
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub mod testing {
    pub use crate::pool::testing::{NodeStats, Swept, Topology, exact_prefill, sweep};
}

/// Snapshots of all pools for other programs.
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub mod export {
    #[cfg(feature = "metrics")]
    pub use crate::registry::export::record_metrics;
    pub use crate::registry::export::{Exporter, ParseSnapshotError, PoolSnapshot, Snapshot};
}

/// Reports of faults, and what is done with them.
pub mod report {
    pub use crate::hook::leaks::{Leak, Leaks};
    pub use crate::hook::report::{
        Damage, Report, ReportKind, default_hook, panic_hook, set_report_hook,
    };
    pub use crate::hook::track::Track;
}

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/GUIDE.md")]
pub mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use base::config::{Align, Config, Order};
pub use base::error::{AllocError, AllocErrorKind, BarrierError, BuildError, Busy, Exhausted};
pub use base::flags::{DebugFlags, ParseDebugFlagsError};
#[cfg(all(feature = "rcu", not(all(loom, any(test, feature = "loom")))))]
pub use grace::rcu;
pub use hook::counter::Stats;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use hook::fault::{Fault, ParseFaultError};
pub use hook::leaks::{Leak, Leaks};
pub use hook::report::{Damage, Report, ReportKind, set_report_hook};
pub use hook::track::Track;
#[cfg(all(
    feature = "allocator-api2-02",
    not(all(loom, any(test, feature = "loom")))
))]
pub use page::AllocatorV02;
#[cfg(all(
    feature = "allocator-api2-04",
    not(all(loom, any(test, feature = "loom")))
))]
pub use page::AllocatorV04;
#[cfg(all(feature = "arena", not(all(loom, any(test, feature = "loom")))))]
pub use page::Arena;
#[cfg(all(unix, not(all(loom, any(test, feature = "loom")))))]
pub use page::Mmap;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use page::{Heap, Hint, Logged, Metered, PageSource, Region, SourceCall};
#[cfg(all(any_allocator, not(all(loom, any(test, feature = "loom")))))]
pub use pool::PoolOf;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use pool::{Builder, Pool, PoolBox, Pooled, PrefilledSheaf};
#[cfg(all(feature = "rcu", not(all(loom, any(test, feature = "loom")))))]
pub use pool::{RcuCell, RcuCellOption, StableBox, StableCell, StablePool, TypeStable, Unlinked};
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use registry::{PoolInfo, SlabInfo, pools, report_leaks_at_exit, shrink, slabinfo};
#[cfg(feature = "derive")]
pub use sheaves_derive::Pooled;
