//! The pool and what would be used instead of it, measured in one program.
//!
//! ```text
//! cd benches/rivals && cargo run --release
//! ```
//!
//! - [`object`], [`heap`]: the object, and what a contender is.
//! - [`contenders`]: the harness, the pool, mallocs and other pools.
//! - [`workloads`]: what they do.
//! - [`plan`], [`filter`]: which contender does what, and which part is asked for.
//! - [`rounds`], [`stats`]: turns in rotating order; medians, spreads and ratios of them.
//! - [`latency`], [`clock`]: single operations.
//! - [`memory`], [`footprint`]: resident memory, in child processes.
//! - [`goals`], [`report`], [`fill`], [`plot`], [`machine`]: what is told, and where.

mod args;
mod clock;
mod contenders;
mod fill;
mod filter;
mod footprint;
mod goals;
mod heap;
mod latency;
mod machine;
mod memory;
mod object;
mod plan;
mod plot;
mod report;
mod rounds;
mod stats;
mod workloads;

use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use args::Args;
use filter::Filter;
use machine::Machine;
use plan::Scale;
use report::Report;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sheaves-rivals: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(arguments) = &args.memory_of {
        let memory = memory::in_child(arguments).ok_or("no such contender")?;
        println!("{}", serde_json::to_string(&memory)?);
        return Ok(());
    }
    if let Some(arguments) = &args.footprint_of {
        let footprint = footprint::in_child(arguments).ok_or("no such contender")?;
        println!("{}", serde_json::to_string(&footprint)?);
        return Ok(());
    }
    if let Some(name) = &args.vectors_of {
        println!(
            "{}",
            workloads::vectors::in_child(name).ok_or("no such contender")?
        );
        return Ok(());
    }
    let filter = Filter::new(args.only.as_deref());
    let report = measure(args, &filter)?;
    let sections = report.sections();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for section in &sections {
            println!("{}", section.text);
        }
    }
    if let Some(file) = &args.fill {
        let text = fs::read_to_string(file)?;
        fs::write(file, fill::fill(&text, &sections))?;
    }
    // Figures of a part, or of a quick run, must not take the place of good ones unasked.
    let usual = (!args.quick && filter.is_open()).then(args::plots);
    if let Some(folder) = args.plots.clone().or(usual) {
        plot::all(&report, &folder)?;
    }
    Ok(())
}

fn measure(args: &Args, filter: &Filter) -> Result<Report, Box<dyn Error>> {
    let scale = if args.quick {
        Scale::QUICK
    } else {
        Scale::FULL
    };
    let start = Instant::now();
    let told = |what: &str| eprintln!("{:6.1} s  {what}", start.elapsed().as_secs_f64());
    let machine = Machine::this();
    // First, while the processes are small and nothing else runs.
    told("memory");
    let memory = memory::run(if args.quick { 0.05 } else { 1.0 }, filter)?;
    told("footprint");
    let length = Duration::from_millis(if args.quick { 200 } else { 2000 });
    let footprints = footprint::run(length, filter)?;
    let mut workloads = Vec::new();
    for workload in plan::workloads(scale) {
        let title = workload.title.clone();
        if let Some(measured) = rounds::run(workload, filter) {
            told(&title);
            workloads.push(measured);
        }
    }
    told("latency");
    let (rounds, millis) = if args.quick { (2, 20) } else { (20, 100) };
    let latencies = latency::run(rounds, Duration::from_millis(millis), filter);
    told("done");
    let goals = goals::goals(&workloads, &latencies, &footprints);
    Ok(Report {
        machine,
        quick: args.quick,
        workloads,
        latencies,
        memory,
        footprints,
        goals,
    })
}
