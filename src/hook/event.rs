//! Events for subscribers of the `tracing` crate, with the feature of that name; else nothing.
//!
//! A subscriber is a user's code: none of these is called under a lock.
#![forbid(unsafe_code)]

use core::fmt;

/// A pool was built.
pub(crate) fn built(pool: &str, slot: usize, order: u8) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "sheaves", pool, slot, order, "pool built");
    #[cfg(not(feature = "tracing"))]
    let _ = (pool, slot, order);
}

/// Something was found.
pub(crate) fn reported(report: &dyn fmt::Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "sheaves", "{report}");
    #[cfg(not(feature = "tracing"))]
    let _ = report;
}

/// The page source was asked for slabs, for this many slots at least.
pub(crate) fn gathered(pool: &str, slots: usize, all: bool) {
    #[cfg(feature = "tracing")]
    tracing::trace!(target: "sheaves", pool, slots, all, "slabs gathered");
    #[cfg(not(feature = "tracing"))]
    let _ = (pool, slots, all);
}

/// All sheaves were searched for slots, since the limit was reached.
pub(crate) fn searched(pool: &str, limit: usize) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "sheaves", pool, limit, "limit reached, sheaves searched");
    #[cfg(not(feature = "tracing"))]
    let _ = (pool, limit);
}

/// A pool was shrunk by this many bytes.
pub(crate) fn shrunk(pool: &str, bytes: usize) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "sheaves", pool, bytes, "pool shrunk");
    #[cfg(not(feature = "tracing"))]
    let _ = (pool, bytes);
}
