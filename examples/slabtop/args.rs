//! Options.

use core::time::Duration;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Watches pools: those of a workload that it runs itself, or those of another process.
///
/// Keys: n, b, a, f, u sort by name, bytes, activity, fast-path share, unused slots; r turns the order round;
/// space stops and goes on; q ends.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Shows the process that writes this file, by `sheaves::export::Exporter`.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Prints one picture and ends.
    #[arg(long)]
    pub(crate) once: bool,
    /// Milliseconds between two looks.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) interval: u64,
    /// What the list is sorted by.
    #[arg(long, value_enum, default_value_t = Sort::Bytes)]
    pub(crate) sort: Sort,
    /// Columns of the picture that `--once` prints.
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u16).range(40..=500))]
    pub(crate) width: u16,
    /// Lines of the picture that `--once` prints.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(6..=500))]
    pub(crate) height: u16,
    /// Writes snapshots of this process's workload to a file while it runs.
    #[arg(long, value_name = "PATH")]
    pub(crate) export: Option<PathBuf>,
    /// Measures how much being watched, ten times a second, slows two threads that do nothing but use a pool.
    #[arg(long)]
    pub(crate) measure: bool,
}

impl Args {
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(self.interval)
    }
}

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name.
    Name,
    /// By bytes held.
    Bytes,
    /// By allocations and frees a second.
    Activity,
    /// By the share of operations on the fast path.
    Fast,
    /// By the share of slots that nobody uses.
    Unused,
}
