//! The public behaviour, one module for each area.
#![cfg_attr(gated_allocator, feature(allocator_api))]
#![allow(missing_docs, reason = "tests")]

extern crate alloc;

mod allocator;
mod boxed;
mod bulk;
mod classes;
mod collections;
mod errors;
mod fixed;
#[path = "../common/isolated.rs"]
mod isolated;
mod kernel;
mod lifecycle;
mod limits;
#[path = "../common/machine.rs"]
mod machine;
mod objects;
mod panics;
mod prefill;
#[path = "../common/random.rs"]
mod random;
mod reentry;
mod shapes;
mod sources;
mod stats;
mod support;
mod threads;
mod trade;
mod traits;
mod types;
#[path = "../common/watchdog.rs"]
mod watchdog;
