//! What is measured. Each job is one function, generic over the contender; it gives nanoseconds an operation.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod ranges;
pub mod retire;
pub mod single;
pub mod special;
pub mod threads;
pub mod vectors;

use std::time::{Duration, Instant};

use crate::heap::{Heap, Kind};

/// A job that one thread does.
pub trait Job: Copy + Send + Sync + 'static {
    /// Objects live at a time, for contenders that cannot have many.
    fn held(self) -> usize;

    /// Whether objects are written while they are held.
    fn writes(self) -> bool {
        false
    }

    /// One turn of about `budget`.
    fn run<H: Heap>(self, budget: Duration) -> f64;
}

/// A job that several threads do.
pub trait SharedJob: Copy + Send + Sync + 'static {
    fn held(self) -> usize;

    fn writes(self) -> bool {
        false
    }

    fn run<H: Heap + Sync>(self, budget: Duration) -> f64;
}

/// Repeats `chunk`, of `operations` each, for about `budget`; nanoseconds an operation. The first repetition warms
/// up and does not count.
#[inline(always)]
pub fn timed(budget: Duration, operations: usize, mut chunk: impl FnMut()) -> f64 {
    let mut start = None;
    let mut done = 0;
    loop {
        chunk();
        let now = Instant::now();
        let Some(start) = start else {
            start = Some(now);
            continue;
        };
        done += operations;
        let spent = now - start;
        if spent >= budget {
            return spent.as_nanos() as f64 / done as f64;
        }
    }
}

/// A small generator: the harness must not weigh more than what it measures.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: usize) -> Self {
        Self(0x2545_F491_4F6C_DD1D ^ ((seed as u64) << 17))
    }

    /// Below `bound`, which is below 2^32.
    #[inline(always)]
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * bound as u64) >> 32) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// One turn of a contender.
pub type Turn = Box<dyn Fn(Duration) -> f64 + Send + Sync>;

/// A contender in a workload.
pub struct Entry {
    pub name: &'static str,
    pub kind: Kind,
    pub turn: Turn,
}

impl Entry {
    /// A contender on a job that one thread does, unless it cannot.
    pub fn of_job<H: Heap, J: Job>(job: J) -> Option<Self> {
        able::<H>(job.held(), job.writes()).then(|| Self {
            name: H::NAME,
            kind: H::KIND,
            turn: Box::new(move |budget| job.run::<H>(budget)),
        })
    }

    /// A contender on a job that several threads do, unless it cannot.
    pub fn of_shared<H: Heap + Sync, J: SharedJob>(job: J) -> Option<Self> {
        able::<H>(job.held(), job.writes()).then(|| Self {
            name: H::NAME,
            kind: H::KIND,
            turn: Box::new(move |budget| job.run::<H>(budget)),
        })
    }
}

fn able<H: Heap>(held: usize, writes: bool) -> bool {
    held <= H::MOST && !(writes && H::KEYS)
}
