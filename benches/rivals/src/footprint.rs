//! Memory that is held while two threads retire at one rate, the same for all: in a process for each contender.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::contenders::retire::{self, Plain, Retire, VisitRetire};
use crate::filter::Filter;
use crate::heap::Kind;
use crate::object::Tags;

pub const KEY: &str = "footprint";

/// Objects that a thread retires at a time, and how many times a second: a million objects a second together.
const BURST: u32 = 250;
const BURSTS: u32 = 2000;
/// For which a reader stays pinned, where there is one.
const PINNED: Duration = Duration::from_millis(1);
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(5);

/// What one child measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Footprint {
    pub name: String,
    /// Whether a reader was pinned all the time, for a millisecond at a time.
    pub reader: bool,
    pub objects: u64,
    /// KiB more than before there was a contender or a thread.
    pub mean_kib: f64,
    pub most_kib: f64,
}

/// Says who takes part, or runs one of them.
struct Select<'a> {
    names: Vec<&'static str>,
    chosen: Option<(&'a str, Duration, bool)>,
    result: Option<Footprint>,
}

impl VisitRetire<Plain> for Select<'_> {
    fn visit<R: Retire<Plain>>(&mut self) {
        if R::KIND == Kind::Harness {
            return;
        }
        self.names.push(R::NAME);
        let chosen = self.chosen.filter(|(name, ..)| *name == R::NAME);
        if let Some((_, length, reader)) = chosen {
            self.result = Some(measure::<R>(length, reader));
        }
    }
}

fn select(chosen: Option<(&str, Duration, bool)>) -> Select<'_> {
    let mut select = Select {
        names: Vec::new(),
        chosen,
        result: None,
    };
    retire::all(&mut select);
    select
}

/// Runs a child for each contender, for so long, without a reader and with one.
pub fn run(length: Duration, filter: &Filter) -> io::Result<Vec<Footprint>> {
    let mut list = Vec::new();
    if !filter.takes_workload(KEY) {
        return Ok(list);
    }
    for reader in [false, true] {
        for name in select(None).names {
            if filter.takes_contender(name) {
                list.push(child(name, length, reader)?);
            }
        }
    }
    Ok(list)
}

fn child(name: &str, length: Duration, reader: bool) -> io::Result<Footprint> {
    let output = Command::new(env::current_exe()?)
        .arg("--footprint-of")
        .arg(name)
        .args([length.as_millis().to_string(), reader.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|error| {
        let told = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!(
            "the child for {name} said {text:?} {told:?}: {error}"
        ))
    })
}

/// The child's part.
pub fn in_child(arguments: &[String]) -> Option<Footprint> {
    let [name, millis, reader] = arguments else {
        return None;
    };
    let length = Duration::from_millis(millis.parse().ok()?);
    select(Some((name, length, reader.parse().ok()?))).result
}

/// KiB of this process that no file is behind, counted page by page: what `statm` says is some hundred KiB off.
fn anonymous() -> f64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

fn measure<R: Retire<Plain>>(length: Duration, reader: bool) -> Footprint {
    let before = anonymous();
    let way = R::new();
    let ready = Barrier::new(3);
    let stop = AtomicBool::new(false);
    // Relaxed: it carries nothing.
    let goes_on = || !stop.load(Ordering::Relaxed);
    let write = |number| {
        let mut tags = Tags::new(number);
        ready.wait();
        let start = Instant::now();
        for burst in 0.. {
            let due = Duration::from_secs(1) * burst / BURSTS;
            if due >= length {
                break;
            }
            // Who is late hurries: the number of objects is the same for all.
            thread::sleep(due.saturating_sub(start.elapsed()));
            for _ in 0..BURST {
                let tag = tags.give();
                tags.take(way.turn(number, tag));
            }
        }
        tags
    };
    let mut looks = Vec::new();
    thread::scope(|scope| {
        let write = &write;
        let writers = [0, 1].map(|number| scope.spawn(move || write(number)));
        if reader {
            scope.spawn(|| {
                while goes_on() {
                    way.pinned(|| thread::sleep(PINNED));
                }
            });
        }
        ready.wait();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK);
            looks.push(anonymous() - before);
        }
        // Relaxed: it carries nothing.
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("no turn panics").settle();
        }
    });
    way.settle();
    // While it grows it is not what it will be.
    let settled = &looks[looks.len() / 4..];
    Footprint {
        name: R::NAME.to_owned(),
        reader,
        objects: u64::from(BURST * BURSTS) * 2 * length.as_millis() as u64 / 1000,
        mean_kib: settled.iter().sum::<f64>() / settled.len() as f64,
        most_kib: settled.iter().fold(0.0, |most, look| look.max(most)),
    }
}
