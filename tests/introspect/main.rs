//! What other programs and crates are told of pools.

#[cfg(feature = "metrics")]
mod facade;
mod snapshots;
#[cfg(feature = "tracing")]
mod tracing_events;
