//! Pools, threads and processes that come and go, in every order.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod close;
mod fork;
mod many;
mod process;
mod slabs;
mod support;
