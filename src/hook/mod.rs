//! What the layers tell the outside: counters and reports.

#![forbid(unsafe_code)]

pub(crate) mod counter;
pub(crate) mod report;
