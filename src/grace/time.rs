//! Coarse time: milliseconds since the process first asked.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::time::Instant;

use crate::sync::OnceLock;

/// A moment, in milliseconds.
pub(crate) type Millis = u64;

/// Now.
pub(crate) fn now() -> Millis {
    static START: OnceLock<Instant> = OnceLock::new();
    millis(START.get_or_init(Instant::now).elapsed())
}

/// A length of time, as long as can be told.
pub(crate) fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
