//! The contest: three contenders, rounds in turn.

#![forbid(unsafe_code)]

use sheaves::Order;

use super::contender::{Boxed, Contender, InPool};
use super::drive::round;
use super::failure::Failure;
use super::ring::Ring;

/// How many contenders there are.
pub(crate) const CONTENDERS: usize = 3;

/// The contenders.
pub(crate) struct Contest {
    boxed: Boxed,
    auto: InPool,
    large: InPool,
}

/// Nanoseconds a NOP took in each counted round of one contender.
pub(crate) struct Times {
    /// Whose.
    pub(crate) contender: &'static str,
    /// One a round, in the order they ran.
    pub(crate) ns_per_nop: Vec<f64>,
}

impl Contest {
    /// Builds the pools, with sheaves of `depth` objects.
    ///
    /// # Errors
    ///
    /// When a pool cannot be built.
    pub(crate) fn new(depth: u16) -> Result<Self, Failure> {
        let depth = usize::from(depth);
        Ok(Self {
            boxed: Boxed,
            auto: InPool::new("pool-auto", Order::AUTO, depth)?,
            large: InPool::new("pool-large", Order::LARGE, depth)?,
        })
    }

    /// The pools, for their counters.
    pub(crate) const fn pools(&self) -> [&InPool; 2] {
        [&self.auto, &self.large]
    }

    /// Runs one round of each contender as a warm-up, then `rounds` that count. Who goes first
    /// changes from round to round, so that what drifts (clock speed, other work) falls on all
    /// alike. `tick` is called after each run, outside the time taken.
    ///
    /// # Errors
    ///
    /// The first failure of any run.
    pub(crate) fn run<R: Ring>(
        &self,
        ring: &mut R,
        nops: u64,
        depth: u16,
        rounds: u32,
        mut tick: impl FnMut(),
    ) -> Result<[Times; CONTENDERS], Failure> {
        let names = [self.boxed.name(), self.auto.name(), self.large.name()];
        let mut times = names.map(|contender| Times {
            contender,
            ns_per_nop: Vec::new(),
        });
        for turn in 0..=rounds {
            for step in 0..CONTENDERS {
                let who = (turn as usize + step) % CONTENDERS;
                let elapsed = match who {
                    0 => round(&self.boxed, ring, nops, depth)?,
                    1 => round(&self.auto, ring, nops, depth)?,
                    _ => round(&self.large, ring, nops, depth)?,
                };
                if turn > 0 {
                    times[who]
                        .ns_per_nop
                        .push(elapsed.as_secs_f64() * 1e9 / nops as f64);
                }
                tick();
            }
        }
        Ok(times)
    }
}
