//! The public behaviour, one module for each area.
#![allow(missing_docs, reason = "tests")]

mod smoke;
