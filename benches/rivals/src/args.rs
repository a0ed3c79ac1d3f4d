//! The command line.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use clap::Parser;

/// What `--help` says before the options.
const ABOUT: &str = "\
Measure the pool beside mallocs and other object pools.

All contenders of a workload take turns in rounds, in rotating order, each turn
on a thread of its own. What the harness takes alone is subtracted. Figures are
medians over the rounds, with quartiles. Every object is checked when freed.";

/// What `--help` says after the options.
const AFTER: &str = "\
Turn off other work on the machine before you believe the figures. At the end
stands what the pool must reach and whether it did.";

/// Measure the pool beside mallocs and other object pools
#[derive(Parser, Debug)]
#[command(name = "sheaves-rivals", long_about = ABOUT, after_long_help = AFTER)]
pub struct Args {
    /// Take less than a minute, to see that everything works
    #[arg(long)]
    pub quick: bool,

    /// Only workloads and contenders with these parts in their names
    ///
    /// The first part is for workloads: one-held, batch-32, batch-256, replace, shuffled-free, reserve, create, boxes, vector, vectors-fresh, vectors-used,
    /// handover, two-threads, larson, cache-thrash, cache-scratch, retire, retire-drop, retire-cell, bulk, threads, latency, memory, footprint; empty for all.
    #[arg(long, value_name = "WORKLOAD[,CONTENDER...]")]
    pub only: Option<String>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,

    /// Put the tables into this file, at their marks
    #[arg(long, value_name = "FILE")]
    pub fill: Option<PathBuf>,

    /// Where the plots go; a full run writes them to docs/benchmarks unasked
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,

    /// Let one contender grow vectors on a fresh heap: its name
    #[arg(long, hide = true)]
    pub vectors_of: Option<String>,

    /// Measure the memory of one contender: its name, the size and the number of objects
    #[arg(long, num_args = 3, hide = true)]
    pub memory_of: Option<Vec<String>>,

    /// Measure the footprint of one contender that retires: its name, milliseconds, whether there is a reader
    #[arg(long, num_args = 3, hide = true)]
    pub footprint_of: Option<Vec<String>>,
}

/// Where a full run puts its plots.
pub fn plots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks")
}
