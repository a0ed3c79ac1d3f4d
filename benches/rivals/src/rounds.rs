//! Rounds: in each every contender has one turn, in an order that rotates, on a thread of its own.
#![forbid(unsafe_code)]

use std::thread;

use crate::filter::Filter;
use crate::heap::Kind;
use crate::plan::Workload;
use crate::stats::{Measured, Row};

/// Runs the contenders of a workload that the filter lets through; `None` if there are none.
pub fn run(mut workload: Workload, filter: &Filter) -> Option<Measured> {
    if !filter.takes_workload(workload.key) {
        return None;
    }
    let entries = &mut workload.entries;
    entries.retain(|entry| entry.kind == Kind::Harness || filter.takes_contender(entry.name));
    if entries.iter().all(|entry| entry.kind == Kind::Harness) {
        return None;
    }
    let mut rows: Vec<Row> = entries
        .iter()
        .map(|entry| Row {
            name: entry.name,
            kind: entry.kind,
            rounds: vec![f64::NAN; workload.rounds],
            nanos: None,
        })
        .collect();
    for round in 0..workload.rounds {
        for number in order(entries.len(), round) {
            let (turn, budget) = (&entries[number].turn, workload.budget);
            // A thread of its own: what a contender keeps for a thread is new in each turn and ends with it.
            let nanos = thread::scope(|scope| scope.spawn(move || turn(budget)).join());
            rows[number].rounds[round] = match nanos {
                Ok(nanos) => nanos,
                Err(_) => panic!("{} failed at {}", entries[number].name, workload.title),
            };
        }
    }
    let mut measured = Measured {
        key: workload.key,
        title: workload.title,
        size: workload.size,
        x: workload.x,
        rows,
    };
    measured.finish();
    Some(measured)
}

/// Each round starts with another contender, and every second one runs backwards: no contender always follows the
/// same other.
fn order(contenders: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |step| {
        let step = if round.is_multiple_of(2) {
            step
        } else {
            contenders - 1 - step
        };
        (step + round) % contenders
    })
}
