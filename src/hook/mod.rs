//! What the layers tell the outside, and what watches over memory: counters, reports, patterns, tracks.

pub(crate) mod counter;
mod damage;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) mod environment;
pub(crate) mod event;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) mod exit;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) mod fault;
mod fields;
pub(crate) mod leaks;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) mod poison;
pub(crate) mod report;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) mod shadow;
pub(crate) mod thread;
pub(crate) mod track;
