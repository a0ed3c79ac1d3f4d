//! Pools as they live: a terminal view of a workload in this process, or of another process that writes snapshots.

mod args;
mod demo;
mod measure;
mod model;
mod screen;
mod view;

use clap::Parser;
use std::process::ExitCode;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = if args.measure {
        measure::run(&args)
    } else {
        screen::run(&args)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slabtop: {error}");
            ExitCode::FAILURE
        }
    }
}
