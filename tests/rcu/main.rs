//! Deferred free, through the public interface: each test names the promise that it covers.
#![cfg(feature = "rcu")]

mod barrier;
mod cells;
mod closing;
mod drain;
#[path = "../common/isolated.rs"]
mod isolated;
mod oracle;
mod panics;
#[path = "../common/random.rs"]
mod random;
mod readers;
mod retire;
mod stable;
mod support;
mod threads;
#[path = "../common/watchdog.rs"]
mod watchdog;
