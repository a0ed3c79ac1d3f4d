#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
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
mod page;
mod slab;

mod sheaf;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod node;
// Of the layers that stand on pages a model build has the protocols only.
#[cfg(all(loom, any(test, feature = "loom")))]
mod node {
    #[cfg(test)]
    mod model;
    pub(crate) mod tenancy;
}

mod barn;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod registry;

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

pub use base::config::{Align, Config, Order};
pub use base::error::{AllocError, AllocErrorKind, BuildError, Busy, Exhausted};
pub use base::flags::{DebugFlags, ParseDebugFlagsError};
pub use hook::counter::Stats;
pub use hook::report::{Report, ReportKind, set_report_hook};
#[cfg(all(unix, not(all(loom, any(test, feature = "loom")))))]
pub use page::Mmap;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use page::{Heap, Hint, PageSource};
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use pool::{Builder, Pool, PoolBox, Pooled, PrefilledSheaf};
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub use registry::{PoolInfo, SlabInfo, pools, shrink, slabinfo};
#[cfg(feature = "derive")]
pub use sheaves_derive::Pooled;
