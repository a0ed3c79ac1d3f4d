//! What it costs to be watched: two threads that do nothing but use a pool, with and without snapshots.

use core::hint::black_box;
use core::time::Duration;
use std::io;
use std::thread;
use std::time::Instant;

use sheaves::Pool;
use sheaves::export::Exporter;

use crate::args::Args;

/// Rounds of each kind; they take turns, so that a change of the machine's mood reaches both.
const ROUNDS: usize = 11;

/// Objects that a thread has at once: more than its two sheaves have slots, so that the barn takes part.
const OBJECTS: usize = 300;

/// Bursts of a round, which takes about a second: ten snapshots.
const BURSTS: usize = 400_000;

/// Seconds that two threads take for their bursts.
fn round(pool: &Pool<[u64; 30]>) -> f64 {
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut kept = Vec::with_capacity(OBJECTS);
                for _ in 0..BURSTS {
                    kept.extend((0..OBJECTS as u64).map(|i| pool.alloc([i; 30])));
                    black_box(&kept);
                    kept.clear();
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let file = std::env::temp_dir().join(format!("slabtop-{}", std::process::id()));
    let path = args.export.clone().unwrap_or(file);
    let pool = Pool::new("measured");
    let mut alone = [0.0; ROUNDS];
    let mut watched = [0.0; ROUNDS];
    for turn in 0..ROUNDS {
        alone[turn] = round(&pool);
        let exporter = Exporter::start(&path, Duration::from_millis(100))?;
        watched[turn] = round(&pool);
        drop(exporter);
    }
    let _ = std::fs::remove_file(&path);
    // Of each pair of neighbours: what slows the machine for a while slows both.
    let ratio = median(&mut core::array::from_fn::<_, ROUNDS, _>(|turn| {
        watched[turn] / alone[turn]
    }));
    let (alone, watched) = (median(&mut alone), median(&mut watched));
    println!(
        "two threads, {BURSTS} bursts of {OBJECTS} allocations and frees; medians of {ROUNDS} rounds"
    );
    println!("alone    {alone:.4} s");
    println!(
        "watched  {watched:.4} s, ten snapshots a second: {:+.2}%",
        (ratio - 1.0) * 100.0
    );
    Ok(())
}
