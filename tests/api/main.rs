//! The public behaviour, one module for each area.
#![allow(missing_docs, reason = "tests")]

extern crate alloc;

mod allocator;
mod boxed;
mod bulk;
mod collections;
mod errors;
mod fixed;
mod kernel;
mod lifecycle;
mod limits;
mod objects;
mod panics;
mod prefill;
mod reentry;
mod shapes;
mod stats;
mod support;
mod threads;
mod trade;
mod types;
