//! The results: a table for people, JSON lines for programs.

#![forbid(unsafe_code)]

use core::fmt;

use super::contender::Contender;
use super::contest::{CONTENDERS, Contest, Times};

/// What a run was like, for the head of the table and for each JSON line.
pub(crate) struct Setup {
    /// `io_uring` or `in-process`.
    pub(crate) ring: &'static str,
    /// How the ring was set up, in words.
    pub(crate) detail: &'static str,
    /// Requests in flight at a time.
    pub(crate) depth: u16,
    /// NOPs in each round.
    pub(crate) nops: u64,
    /// Rounds that counted.
    pub(crate) rounds: u32,
}

/// One contender's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Whose.
    pub(crate) contender: &'static str,
    /// Nanoseconds per NOP: the median of the rounds.
    pub(crate) median: f64,
    /// The fastest round.
    pub(crate) least: f64,
    /// The slowest round.
    pub(crate) most: f64,
    /// NOPs per second, over the first contender's.
    pub(crate) ratio_to_box: f64,
}

impl Figures {
    /// NOPs per second in the median round.
    pub(crate) fn nops_per_second(&self) -> f64 {
        1e9 / self.median
    }
}

/// The middle of `values`, or the mean of the two middle ones; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Sums up the rounds. The first contender is the one the others are compared with.
pub(crate) fn figures(times: &[Times; CONTENDERS]) -> [Figures; CONTENDERS] {
    let base = median(&times[0].ns_per_nop);
    times.each_ref().map(
        |Times {
             contender,
             ns_per_nop,
         }| {
            let median = median(ns_per_nop);
            Figures {
                contender,
                median,
                least: ns_per_nop.iter().copied().fold(f64::INFINITY, f64::min),
                most: ns_per_nop.iter().copied().fold(0.0, f64::max),
                ratio_to_box: base / median,
            }
        },
    )
}

/// Writes one JSON object a line.
///
/// # Errors
///
/// When `out` cannot be written to.
pub(crate) fn write_json(
    out: &mut impl fmt::Write,
    setup: &Setup,
    figures: &[Figures],
) -> fmt::Result {
    for one in figures {
        let line = serde_json::json!({
            "contender": one.contender,
            "ns_per_nop": one.median,
            "nops_per_second": one.nops_per_second(),
            "ratio_to_box": one.ratio_to_box,
            "ring": setup.ring,
            "depth": setup.depth,
            "nops": setup.nops,
            "rounds": setup.rounds,
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Writes the table, the pools' slabinfo lines and their counters.
///
/// # Errors
///
/// When `out` cannot be written to.
pub(crate) fn write_text(
    out: &mut impl fmt::Write,
    setup: &Setup,
    figures: &[Figures],
    contest: &Contest,
) -> fmt::Result {
    let Setup {
        ring,
        detail,
        depth,
        nops,
        rounds,
    } = setup;
    writeln!(
        out,
        "ring: {ring} ({detail}), {depth} deep; {rounds} rounds of {nops} NOPs, one 240-byte request each\n"
    )?;
    writeln!(
        out,
        "{:<12}{:>14}{:>14}{:>10}{:>10}{:>14}",
        "contender", "NOPs/s", "ns per NOP", "min", "max", "ratio to box"
    )?;
    for one in figures {
        writeln!(
            out,
            "{:<12}{:>14.0}{:>14.2}{:>10.2}{:>10.2}{:>14.3}",
            one.contender,
            one.nops_per_second(),
            one.median,
            one.least,
            one.most,
            one.ratio_to_box
        )?;
    }
    writeln!(
        out,
        "\nevery completion matched its request; in flight at the end: 0"
    )?;
    for pool in contest.pools() {
        let stats = pool.pool().stats();
        writeln!(
            out,
            "{}: live {}, prefilled {}",
            pool.name(),
            stats.live,
            stats.prefilled
        )?;
    }
    writeln!(out, "\n{}", sheaves::slabinfo())?;
    for pool in contest.pools() {
        writeln!(out, "{} {:#?}", pool.name(), pool.pool().stats())?;
    }
    Ok(())
}
