//! What the pool must reach, and whether it did.
#![forbid(unsafe_code)]

use serde::Serialize;

use crate::contenders::floor::FLOOR;
use crate::contenders::retire::{EPOCH_GLIBC, EPOCH_MIMALLOC, OURS};
use crate::footprint::Footprint;
use crate::heap::Kind;
use crate::latency::Latency;
use crate::stats::{Measured, Row, Spread};
use crate::workloads::{ranges, special, vectors};

/// The pool's name in every workload.
const POOL: &str = "PoolBox";
/// The pool as it is set up for the hottest structs, shown beside the default.
const HOT_POOL: &str = "PoolBox, 2 MiB slabs, sheaves of 256";
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
/// The pool as an allocator: of which malloc's time.
const COLLECTIONS: [(&str, &str, f64); 4] = [
    ("boxes", "Box in &Pool", 0.667),
    ("vectors-fresh", vectors::OURS, 1.0),
    ("vectors-used", vectors::OURS, 1.0),
    ("vector", vectors::OURS, 1.0),
];
/// Mallocs that one growing vector is held against. The others are printed only: one grows in place in address space
/// of its own.
const GROWN_AGAINST: [&str; 2] = [vectors::GLIBC, vectors::MIMALLOC];
/// Of the time of crossbeam-epoch's `defer_destroy` of a box.
const RETIRED: [(&str, f64); 2] = [(EPOCH_GLIBC, 0.50), (EPOCH_MIMALLOC, 0.77)];
/// Of its memory, at one rate.
const FOOTPRINT: f64 = 1.1;
/// Of the bulk calls' time.
const RESERVE: f64 = 0.25;
/// A map whose writer keeps a prefilled sheaf for the worst case: of the time of the other ways to have one.
const RANGES: [(&str, f64); 3] = [
    (ranges::GLIBC, 0.65),
    (ranges::MIMALLOC, 0.85),
    (ranges::BULK, 0.80),
];
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

pub fn goals(measured: &[Measured], latencies: &[Latency], footprints: &[Footprint]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let at_240 = |key| {
        measured
            .iter()
            .find(|one| one.key == key && one.size == SIZE)
    };
    for (key, at_most) in AGAINST_MALLOCS {
        let found = at_240(key).and_then(|one| against_best(one, Kind::Malloc, at_most));
        goals.extend(found);
        let hot = at_240(key).and_then(|one| against_best_of(one, HOT_POOL, Kind::Malloc, at_most));
        goals.extend(hot.map(|goal| Goal {
            work: format!("{}; 2 MiB slabs, sheaves of 256", goal.work),
            ..goal
        }));
        let floor = at_240(key).and_then(|one| against_best_of(one, FLOOR, Kind::Malloc, at_most));
        goals.extend(floor.map(|goal| Goal {
            work: format!("{}; {FLOOR}", goal.work),
            at_most: None,
            met: None,
            ..goal
        }));
    }
    for (key, _) in AGAINST_MALLOCS {
        let found = at_240(key).and_then(|one| against_best(one, Kind::Pool, AGAINST_POOLS));
        goals.extend(found);
    }
    for (key, own, at_most) in COLLECTIONS {
        let Some(one) = at_240(key) else { continue };
        if key == "vector" {
            goals.extend(GROWN_AGAINST.into_iter().filter_map(|name| {
                let (own, other) = (one.row(own)?, one.row(name)?);
                Some(Goal::new(
                    &one.title,
                    other.name,
                    one.ratio(own, other),
                    at_most,
                ))
            }));
        } else {
            goals.extend(against_best_of(one, own, Kind::Malloc, at_most));
        }
    }
    goals.extend(at_240("retire").into_iter().flat_map(retired));
    goals.extend(
        RETIRED
            .iter()
            .flat_map(|(name, _)| footprint(footprints, name)),
    );
    goals.extend(at_240("reserve").and_then(|one| {
        let (own, other) = (one.row(special::PREFILLED)?, one.row(special::BULK)?);
        Some(Goal::new(
            own.name,
            other.name,
            one.ratio(own, other),
            RESERVE,
        ))
    }));
    goals.extend(at_240("ranges").into_iter().flat_map(ranges_fed));
    goals.extend(latency(latencies));
    goals.push(Goal::elsewhere("NOPs per second", "the example nop_ring"));
    goals.push(Goal::elsewhere("instructions", "benches/icount"));
    goals
}

fn retired(measured: &Measured) -> Vec<Goal> {
    let against = |&(name, at_most): &(&str, f64)| {
        let (own, other) = (measured.row(OURS)?, measured.row(name)?);
        let ratio = measured.ratio(own, other);
        Some(Goal::new(&measured.title, name, ratio, at_most))
    };
    RETIRED.iter().filter_map(against).collect()
}

fn ranges_fed(measured: &Measured) -> Vec<Goal> {
    let mut goals = Vec::new();
    for own in [ranges::KEPT, ranges::PREFILLED] {
        let against = |&(name, at_most): &(&str, f64)| {
            let (own, other) = (measured.row(own)?, measured.row(name)?);
            let ratio = measured.ratio(own, other);
            Some(Goal::new(
                &format!("{}: {}", measured.title, own.name),
                name,
                ratio,
                at_most,
            ))
        };
        goals.extend(RANGES.iter().filter_map(against));
    }
    goals
}

fn footprint(footprints: &[Footprint], against: &str) -> Vec<Goal> {
    let goal = |reader: bool| {
        let find = |name: &str| {
            let mut rows = footprints.iter();
            rows.find(|row| row.name == name && row.reader == reader)
        };
        let (own, other) = (find(OURS)?, find(against)?);
        let work = if reader {
            "footprint of a million retired a second, beside a reader"
        } else {
            "footprint of a million retired a second"
        };
        let ratio = Spread::of(&[own.mean_kib / other.mean_kib]);
        Some(Goal::new(work, against, ratio, FOOTPRINT))
    };
    [false, true].into_iter().filter_map(goal).collect()
}

/// Against the fastest of a kind: then the goal holds against each.
fn against_best(measured: &Measured, kind: Kind, at_most: f64) -> Option<Goal> {
    against_best_of(measured, POOL, kind, at_most)
}

fn against_best_of(measured: &Measured, own: &str, kind: Kind, at_most: f64) -> Option<Goal> {
    let own: &Row = measured.row(own)?;
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
