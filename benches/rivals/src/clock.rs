//! A clock for single operations.
//!
//! On x86-64 the time stamp counter, which ticks at one rate whatever the processor's frequency; elsewhere
//! `Instant`. Reading it twice costs as much as the `harness` row of the latencies shows.

use std::time::{Duration, Instant};

/// Ticks of this clock for a nanosecond.
#[derive(Clone, Copy, Debug)]
pub struct Rate(f64);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // What came before is done when the counter is read, and what comes after has not begun.
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn now() -> u64 {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Rate {
    /// Compares with `Instant` for a while.
    pub fn measure() -> Self {
        let (wall, ticks) = (Instant::now(), now());
        while wall.elapsed() < Duration::from_millis(50) {}
        let passed = now() - ticks;
        Self(passed as f64 / wall.elapsed().as_nanos() as f64)
    }

    pub fn nanos(self, ticks: u64) -> f64 {
        ticks as f64 / self.0
    }
}
