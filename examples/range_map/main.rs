//! An ordered map of ranges, as of the mappings of a process: readers walk it without locks, writers never allocate
//! under theirs.
//!
//! Each cycle maps five ranges among many others, looks each up, and unmaps them. The same tree is fed in five ways, which
//! take turns:
//!
//! - `Box` when a node is needed, under the lock;
//! - `Box` as often as the worst case wants, before the lock, and the rest freed after;
//! - a pool in bulk, likewise;
//! - a sheaf that is borrowed before the lock and given back after;
//! - one that the writer keeps, and trades before the lock for a fuller one when it holds less than the worst case wants.
//!
//! All but the first keep what the lock is for: nothing is allocated while others wait for it, and a change that has begun
//! cannot fail. So a sheaf is to be compared with the second and the third, which pay for the same promise; the first
//! shows what a program pays that does not need it. A node of the worst case is one that is split on every level and a
//! new root: `2 * levels + 1`, of which an insertion mostly uses one.
//!
//! To compare with another malloc, preload it: `LD_PRELOAD=libmimalloc.so`.
//!
//! `cargo run --release --example range_map -- --help`

mod feed;
mod map;
mod node;
mod stress;

use core::time::Duration;
use std::thread;
use std::time::Instant;

use clap::Parser;

use feed::{Boxes, BoxesAhead, Bulk, Feed, Kept, Prefilled};
use map::RangeMap;
use stress::Stress;

/// Maps, looks up and unmaps five ranges at a time.
#[derive(Debug, Parser)]
struct Args {
    /// Cycles of each way to feed the map.
    #[arg(long, default_value_t = 200_000)]
    cycles: usize,
    /// Turns into which they are divided.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Ranges that stay mapped.
    #[arg(long, default_value_t = 100)]
    resident: u64,
    /// Microseconds of a pause, for the part with pauses.
    #[arg(long, default_value_t = 500)]
    pause: u64,
    /// Cycles between pauses.
    #[arg(long, default_value_t = 500)]
    every: usize,
    /// Only the ways whose names contain this, for a profiler.
    #[arg(long, default_value = "")]
    only: String,
}

/// A map that takes its turns.
trait Turns {
    fn name(&self) -> &'static str;
    /// The time that so many cycles take, without pauses.
    fn turn(&self, args: &Args, cycles: usize, pause: bool) -> Duration;
}

struct Fed<F: Feed>(&'static str, RangeMap<F>);

impl<F: Feed> Fed<F> {
    fn boxed(name: &'static str, args: &Args) -> Box<dyn Turns> {
        Box::new(Self(name, stress::filled(args.resident)))
    }
}

impl<F: Feed> Turns for Fed<F> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn turn(&self, args: &Args, cycles: usize, pause: bool) -> Duration {
        let mut writer = self.1.writer();
        let mut spent = Duration::ZERO;
        let mut left = cycles;
        let mut stress = Stress::new(args.resident);
        while left > 0 {
            let some = left.min(args.every.max(1));
            let begin = Instant::now();
            for _ in 0..some {
                stress.cycle(&self.1, &mut writer);
            }
            spent += begin.elapsed();
            left -= some;
            if pause {
                thread::sleep(Duration::from_micros(args.pause));
            }
        }
        spent
    }
}

/// Nanoseconds a cycle, of each map in each round.
fn measure(args: &Args, maps: &[Box<dyn Turns>], pause: bool) -> Vec<Vec<f64>> {
    let rounds = args.rounds.max(1);
    let cycles = (args.cycles / rounds).max(1);
    let mut times = vec![Vec::new(); maps.len()];
    for round in 0..rounds {
        // Who goes first changes.
        for turn in 0..maps.len() {
            let which = (round + turn) % maps.len();
            let spent = maps[which].turn(args, cycles, pause);
            times[which].push(spent.as_nanos() as f64 / cycles as f64);
        }
    }
    times
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of the ratios of the rounds.
fn ratio(of: &[f64], to: &[f64]) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

fn main() {
    let args = Args::parse();
    let mut maps = vec![
        Fed::<Boxes>::boxed("Box, when needed", &args),
        Fed::<BoxesAhead>::boxed("Box, worst case", &args),
        Fed::<Bulk>::boxed("bulk, worst case", &args),
        Fed::<Prefilled>::boxed("prefilled sheaf", &args),
        Fed::<Kept>::boxed("sheaf that is kept", &args),
    ];
    maps.retain(|map| map.name().contains(&args.only));
    // Warms up.
    for map in &maps {
        map.turn(&args, args.cycles / args.rounds.max(1) / 4, false);
    }
    for pause in [false, true] {
        if pause {
            println!("\nwith {} us after every {} cycles", args.pause, args.every);
        } else {
            println!("without pauses");
        }
        let times = measure(&args, &maps, pause);
        print!("{:<20}{:>12}", "", "ns a cycle");
        for map in &maps {
            print!("{:>20}", format!("/ {}", map.name()));
        }
        println!();
        for (map, times_of_map) in maps.iter().zip(&times) {
            let median = median(times_of_map.clone());
            print!("{:<20}{median:>12.0}", map.name());
            for others in &times {
                print!("{:>20.2}", ratio(times_of_map, others));
            }
            println!();
        }
    }
}
