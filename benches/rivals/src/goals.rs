//! What the pool must reach, and whether it did.
#![forbid(unsafe_code)]

use serde::Serialize;

use crate::heap::Kind;
use crate::latency::Latency;
use crate::stats::{Measured, Row, Spread};
use crate::workloads::special;

/// The pool's name in every workload.
const POOL: &str = "PoolBox";
const SIZE: usize = 240;
/// Of the best malloc's time.
const AGAINST_MALLOCS: [(&str, f64); 7] = [
    ("one-held", 0.50),
    ("batch-32", 0.60),
    ("batch-256", 0.45),
    ("replace", 0.55),
    ("shuffled-free", 0.80),
    ("handover", 0.50),
    ("two-threads", 0.50),
];
/// Of the time of each sound pool that hands out pointers, in each of these workloads.
const AGAINST_POOLS: f64 = 0.60;
/// Of the bulk calls' time.
const RESERVE: f64 = 0.25;
/// Of glibc's, at the percentile below.
const PREFILLED_LATENCY: f64 = 0.50;
const LATE: f64 = 99.9;

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Goal {
    pub work: String,
    pub against: String,
    pub ratio: Option<Spread>,
    pub at_most: Option<f64>,
    pub met: Option<bool>,
}

impl Goal {
    fn new(work: &str, against: &str, ratio: Spread, at_most: f64) -> Self {
        Self {
            work: work.to_owned(),
            against: against.to_owned(),
            ratio: Some(ratio),
            at_most: Some(at_most),
            met: Some(ratio.median <= at_most),
        }
    }

    /// Measured by another program.
    fn elsewhere(work: &str, where_: &str) -> Self {
        Self {
            work: work.to_owned(),
            against: where_.to_owned(),
            ratio: None,
            at_most: None,
            met: None,
        }
    }
}

pub fn goals(measured: &[Measured], latencies: &[Latency]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let at_240 = |key| {
        measured
            .iter()
            .find(|one| one.key == key && one.size == SIZE)
    };
    for (key, at_most) in AGAINST_MALLOCS {
        let found = at_240(key).and_then(|one| against_best(one, Kind::Malloc, at_most));
        goals.extend(found);
    }
    for (key, _) in AGAINST_MALLOCS {
        let found = at_240(key).and_then(|one| against_best(one, Kind::Pool, AGAINST_POOLS));
        goals.extend(found);
    }
    goals.extend(at_240("reserve").and_then(|one| {
        let (own, other) = (one.row(special::PREFILLED)?, one.row(special::BULK)?);
        Some(Goal::new(
            own.name,
            other.name,
            one.ratio(own, other),
            RESERVE,
        ))
    }));
    goals.extend(latency(latencies));
    goals.push(Goal::elsewhere("NOPs per second", "the example nop_ring"));
    goals.push(Goal::elsewhere("instructions", "benches/icount"));
    goals
}

/// Against the fastest of a kind: then the goal holds against each.
fn against_best(measured: &Measured, kind: Kind, at_most: f64) -> Option<Goal> {
    let own: &Row = measured.row(POOL)?;
    let best = measured.best(kind)?;
    let ratio = measured.ratio(own, best);
    Some(Goal::new(&measured.title, best.name, ratio, at_most))
}

fn latency(latencies: &[Latency]) -> Vec<Goal> {
    let alloc = |name: &str| {
        let mut rows = latencies.iter();
        rows.find(|row| row.name == name && row.operation == "alloc")
    };
    let rows = (
        alloc("prefilled sheaf"),
        alloc("Box, glibc"),
        alloc("harness"),
    );
    let (Some(own), Some(glibc), Some(empty)) = rows else {
        return Vec::new();
    };
    let floor = empty.at(50.0);
    let ratio = (own.at(LATE) - floor) / (glibc.at(LATE) - floor);
    let worst = |row: &Latency| class(row.at(100.0));
    let once = |value| Spread::of(&[value]);
    let own_class = f64::from(worst(own) - worst(empty));
    vec![
        Goal::new(
            "prefilled alloc, p99.9",
            glibc.name,
            once(ratio),
            PREFILLED_LATENCY,
        ),
        Goal::new(
            "prefilled alloc, worst sample: powers of two above",
            "the empty operation's worst",
            once(own_class),
            0.0,
        ),
    ]
}

/// Times within a factor of two are of one class.
fn class(nanos: f64) -> i32 {
    nanos.max(1.0).log2().floor() as i32
}
