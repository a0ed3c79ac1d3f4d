//! Pools, threads and processes that come and go, in every order.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod close;
mod fork;
#[path = "../common/machine.rs"]
mod machine;
mod many;
mod process;
#[path = "../common/random.rs"]
mod random;
#[cfg(feature = "rcu")]
mod retired;
mod slabs;
mod support;
#[path = "../common/watchdog.rs"]
mod watchdog;
