//! From the turns of all rounds to medians, spreads and ratios.
//!
//! The harness of a round is subtracted from the turns of the same round, and ratios are taken within a round, so
//! that what slows the whole machine for a while cancels out. The median and the quartiles are over the rounds.
#![forbid(unsafe_code)]

use serde::Serialize;

use crate::heap::Kind;

/// Median and quartiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub lower: f64,
    pub median: f64,
    pub upper: f64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len().saturating_sub(1)) as f64;
            let (low, high) = (place.floor() as usize, place.ceil() as usize);
            let fraction = place - place.floor();
            sorted[low] + (sorted[high] - sorted[low]) * fraction
        };
        Self {
            lower: at(0.25),
            median: at(0.5),
            upper: at(0.75),
        }
    }
}

/// The turns of one contender, in order of rounds, in nanoseconds an operation.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub rounds: Vec<f64>,
    /// With the harness subtracted; of the harness itself, without.
    pub nanos: Option<Spread>,
}

/// One workload at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The workload's name on the command line.
    pub key: &'static str,
    pub title: String,
    /// Bytes of an object.
    pub size: usize,
    /// Place on the curve, where the workload is one point of it.
    pub x: Option<usize>,
    pub rows: Vec<Row>,
}

impl Measured {
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    pub fn harness(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.kind == Kind::Harness)
    }

    /// The rounds of a row less those of the harness.
    pub fn net(&self, row: &Row) -> Vec<f64> {
        match self.harness().filter(|_| row.kind != Kind::Harness) {
            Some(harness) => {
                let pairs = row.rounds.iter().zip(&harness.rounds);
                pairs.map(|(own, empty)| own - empty).collect()
            }
            None => row.rounds.clone(),
        }
    }

    /// Fills in what is computed from the rounds.
    pub fn finish(&mut self) {
        let spreads: Vec<_> = self
            .rows
            .iter()
            .map(|row| Spread::of(&self.net(row)))
            .collect();
        for (row, spread) in self.rows.iter_mut().zip(spreads) {
            row.nanos = Some(spread);
        }
    }

    /// The row of this kind with the lowest median.
    pub fn best(&self, kind: Kind) -> Option<&Row> {
        let median = |row: &&Row| row.nanos.map_or(f64::INFINITY, |spread| spread.median);
        let rows = self.rows.iter().filter(|row| row.kind == kind);
        rows.min_by(|a, b| median(a).total_cmp(&median(b)))
    }

    /// Time of one row over that of another, round by round.
    pub fn ratio(&self, row: &Row, to: &Row) -> Spread {
        let pairs = self.net(row).into_iter().zip(self.net(to));
        let ratios: Vec<f64> = pairs.map(|(own, other)| own / other).collect();
        Spread::of(&ratios)
    }
}
