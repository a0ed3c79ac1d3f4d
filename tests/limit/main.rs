//! Promise 3: a limit is exact, under threads that park slots, leave, search, refuse and reenter.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod bounded;
mod churn;
mod exact;
mod leaving;
mod prefilled;
#[path = "../common/random.rs"]
mod random;
mod reentry;
mod support;
mod tight;
mod traces;
#[path = "../common/watchdog.rs"]
mod watchdog;
