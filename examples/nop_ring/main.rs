//! A request loop on io_uring, like a kernel's NOP benchmark, that shows what the allocation of
//! requests costs.
//!
//! ```text
//! cargo run --release --example nop_ring
//! ```
//!
//! It fills a ring of 256 with NOPs, enters the kernel once, reaps the completions, and starts
//! again. Each NOP owns one 240-byte [`request::Kiocb`] from submission to completion. Three
//! contenders run the same loop in turn: `Box` on the system allocator, a pool with slabs of the
//! order it picks itself, and a pool with 2 MiB slabs. Before each burst the pools lend a prefilled
//! sheaf, so that nothing between the burst's first allocation and its last can block or fail;
//! after it the sheaf goes back. The table of requests in flight is a `Vec` in the pool's own
//! memory.
//!
//! - [`args`]: the command line.
//! - [`request`]: the request.
//! - [`ring`], `uring`: what the loop needs of a ring; one in the process; io_uring.
//! - [`contender`]: where requests come from.
//! - [`drive`]: the loop.
//! - [`contest`]: rounds in turn.
//! - [`report`]: medians, the table, JSON.
//! - [`failure`]: what can go wrong.

extern crate alloc;

mod args;
mod contender;
mod contest;
mod drive;
mod failure;
mod report;
mod request;
mod ring;
#[cfg(target_os = "linux")]
mod uring;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use args::{Args, RingChoice};
use contest::{CONTENDERS, Contest};
use failure::Failure;
use report::Setup;
use ring::{InProcess, Ring};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nop_ring: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Picks the ring and runs the contest on it.
fn run(args: &Args) -> Result<(), Failure> {
    if args.ring != RingChoice::InProcess {
        match open_io_uring(args) {
            #[cfg(target_os = "linux")]
            Ok(mut ring) => {
                let detail = ring.setting();
                return compete(args, &mut ring, "io_uring", detail);
            }
            #[cfg(not(target_os = "linux"))]
            Ok(never) => match never {},
            Err(Failure::Forbidden(reason)) if args.ring == RingChoice::Auto => {
                eprintln!("{reason}; the same loop runs on a ring inside the process instead.");
            }
            Err(failure) => return Err(failure),
        }
    }
    let mut ring = InProcess::new(usize::from(args.depth));
    compete(args, &mut ring, "in-process", "a queue, no system calls")
}

/// Sets io_uring up, or says why it cannot be had.
#[cfg(target_os = "linux")]
fn open_io_uring(args: &Args) -> Result<uring::Uring, Failure> {
    let opened = if args.forbid_io_uring {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    } else {
        uring::Uring::open(usize::from(args.depth))
    };
    opened.map_err(|error| {
        if uring::forbidden(&error) {
            Failure::Forbidden(format!(
                "This system does not let the program use io_uring ({error})"
            ))
        } else {
            Failure::Ring(error)
        }
    })
}

/// Says that there is no io_uring here.
#[cfg(not(target_os = "linux"))]
fn open_io_uring(_args: &Args) -> Result<core::convert::Infallible, Failure> {
    Err(Failure::Forbidden(
        "This system has no io_uring, which is Linux's".to_owned(),
    ))
}

/// Runs the contest on `ring` and prints the results.
fn compete<R: Ring>(
    args: &Args,
    ring: &mut R,
    name: &'static str,
    detail: &'static str,
) -> Result<(), Failure> {
    let contest = Contest::new(args.depth)?;
    let bar = progress_bar(args);
    let times = contest.run(ring, args.nops, args.depth, args.rounds, || bar.inc(1));
    bar.finish_and_clear();
    let figures = report::figures(&times?);
    let setup = Setup {
        ring: name,
        detail,
        depth: args.depth,
        nops: args.nops,
        rounds: args.rounds,
    };
    let mut text = String::new();
    let written = if args.json {
        report::write_json(&mut text, &setup, &figures)
    } else {
        report::write_text(&mut text, &setup, &figures, &contest)
    };
    written.map_err(|error| Failure::Output(io::Error::other(error)))?;
    print(&text)
}

/// A bar over all runs, on a terminal's standard error only.
fn progress_bar(args: &Args) -> ProgressBar {
    let runs = (u64::from(args.rounds) + 1) * CONTENDERS as u64;
    let target = if args.json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(runs), target);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Writes `text` to standard output. A reader that has seen enough is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
