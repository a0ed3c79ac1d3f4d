//! How long single operations take while other threads allocate and memory is given back.
//!
//! One thread holds 256 objects and replaces them at random, each allocation and each free timed by itself; a second
//! thread allocates and frees batches from the same contender; a third calls the pool's `shrink` a thousand times
//! a second. The mallocs have nobody who purges them: that is to their advantage. The harness row times nothing
//! between two looks at the clock, while the other threads work on a pool: what it shows is the machine.
#![forbid(unsafe_code)]

use std::any::TypeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::clock::{self, Rate};
use crate::contenders::{self, VisitShared, ours, raw};
use crate::filter::Filter;
use crate::heap::{Heap, Kind, LAST, Local};
use crate::object::{MID_240, Tags};
use crate::workloads::Random;

pub const KEY: &str = "latency";
/// Objects of the thread that is timed.
const HELD: usize = 256;
const HAMMERED: usize = 256;
const SHRINK_EVERY: Duration = Duration::from_millis(1);
/// Operations between two looks at the wall clock.
const CHUNK: usize = 256;
/// Longest time told apart.
const MOST_TICKS: u64 = 1 << 40;
/// What is shown of a distribution.
const SHOWN: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 100.0];

/// One operation of one contender.
#[derive(Debug, Serialize)]
pub struct Latency {
    pub name: &'static str,
    pub kind: Kind,
    pub operation: &'static str,
    pub samples: u64,
    /// Percentiles and nanoseconds, as in [`SHOWN`].
    pub shown: Vec<(f64, f64)>,
    /// The whole distribution.
    pub curve: Vec<(f64, f64)>,
}

impl Latency {
    fn of(row: &Timed, operation: &'static str, ticks: &Histogram<u64>, rate: Rate) -> Self {
        let at = |part: f64| (part, rate.nanos(ticks.value_at_percentile(part)));
        let fine = (0..=60).map(|step| 100.0 - 100.0 * 10_f64.powf(-f64::from(step) / 10.0));
        let samples = ticks.len();
        let enough = move |part: &f64| (100.0 - part) / 100.0 * samples as f64 >= 1.0;
        Self {
            name: row.name,
            kind: row.kind,
            operation,
            samples,
            shown: SHOWN.into_iter().map(at).collect(),
            curve: fine.filter(enough).map(at).collect(),
        }
    }

    pub fn at(&self, percentile: f64) -> f64 {
        let mut shown = self.shown.iter();
        shown
            .find(|(part, _)| *part == percentile)
            .map_or(f64::NAN, |(_, nanos)| *nanos)
    }
}

struct Histograms {
    alloc: Histogram<u64>,
    free: Histogram<u64>,
}

impl Histograms {
    fn new() -> Self {
        let new = || Histogram::new_with_max(MOST_TICKS, 3).expect("the bounds are possible");
        Self {
            alloc: new(),
            free: new(),
        }
    }
}

type Turn = fn(&mut Histograms, Duration);

struct Timed {
    name: &'static str,
    kind: Kind,
    turn: Turn,
}

struct Collect(Vec<Timed>);

impl VisitShared for Collect {
    fn visit<H: Heap + Sync>(&mut self) {
        self.0.push(Timed {
            name: H::NAME,
            kind: H::KIND,
            turn: turn::<H>,
        });
    }
}

/// All of them in rounds, as everything else.
pub fn run(rounds: usize, budget: Duration, filter: &Filter) -> Vec<Latency> {
    if !filter.takes_workload(KEY) {
        return Vec::new();
    }
    let rate = Rate::measure();
    let mut rows = Collect(Vec::new());
    contenders::latency(&mut rows);
    let mut rows = rows.0;
    rows.retain(|row| row.kind == Kind::Harness || filter.takes_contender(row.name));
    let mut ticks: Vec<_> = rows.iter().map(|_| Histograms::new()).collect();
    for round in 0..rounds {
        for step in 0..rows.len() {
            let number = (step + round) % rows.len();
            (rows[number].turn)(&mut ticks[number], budget);
        }
    }
    let told = rows.iter().zip(&ticks).flat_map(|(row, ticks)| {
        [
            Latency::of(row, "alloc", &ticks.alloc, rate),
            Latency::of(row, "free", &ticks.free, rate),
        ]
    });
    told.collect()
}

fn turn<H: Heap + Sync>(ticks: &mut Histograms, budget: Duration) {
    let heap = H::new(HELD + 1);
    // The empty contender cannot be hammered: the pool is, beside it.
    if TypeId::of::<H>() == TypeId::of::<raw::Empty<MID_240>>() {
        let pool = ours::Plain::<MID_240>::new(HELD);
        return beside(&pool, || empty(ticks, budget));
    }
    beside(&heap, || replace(&heap, ticks, budget));
}

/// Runs `body` while two other threads are busy with `heap`.
fn beside<H: Heap + Sync>(heap: &H, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    // Relaxed: it carries nothing.
    let goes_on = || !stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut local = heap.local(HAMMERED);
            let mut tags = Tags::default();
            let mut held = Vec::with_capacity(HAMMERED);
            while goes_on() {
                held.extend((0..HAMMERED).map(|place| local.alloc(place, tags.give())));
                for owned in held.drain(..) {
                    tags.take(local.free(owned));
                }
            }
            tags.settle();
        });
        scope.spawn(|| {
            while H::KIND == Kind::Ours && goes_on() {
                heap.purge();
                thread::sleep(SHRINK_EVERY);
            }
        });
        body();
        // Relaxed: it carries nothing.
        stop.store(true, Ordering::Relaxed);
    });
}

fn empty(ticks: &mut Histograms, budget: Duration) {
    let start = Instant::now();
    while start.elapsed() < budget {
        for _ in 0..CHUNK {
            let before = clock::now();
            ticks.alloc.saturating_record(clock::now() - before);
            let before = clock::now();
            ticks.free.saturating_record(clock::now() - before);
        }
    }
}

fn replace<H: Heap>(heap: &H, ticks: &mut Histograms, budget: Duration) {
    let mut local = heap.local(HELD + 1);
    let mut tags = Tags::new(1);
    let mut random = Random::new(3);
    let mut held: Vec<_> = (0..HELD)
        .map(|place| local.alloc(place, tags.give()))
        .collect();
    let start = Instant::now();
    while start.elapsed() < budget {
        for _ in 0..CHUNK {
            let tag = tags.give();
            let before = clock::now();
            let new = local.alloc(LAST, tag);
            let between = clock::now();
            ticks.alloc.saturating_record(between - before);
            let victim = random.below(HELD);
            let old = std::mem::replace(&mut held[victim], new);
            let before = clock::now();
            let tag = local.free(old);
            ticks.free.saturating_record(clock::now() - before);
            tags.take(tag);
        }
    }
    for owned in held {
        tags.take(local.free(owned));
    }
    tags.settle();
}
