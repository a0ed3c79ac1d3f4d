//! After the kernel's rcuscale (`kfree_rcu_test`): threads that allocate a number of objects in a loop and retire each.
//!
//! Prints the time that it took, the batches that were reaped and how many objects they had, and the memory that was held.
//! With `--no-batch` every object waits for its grace period alone, as in a closure of crossbeam-epoch.
//!
//! `--aging` tells how long objects are retired where few are.
//!
//! `cargo bench --bench rcuperf -- --help`

use core::time::Duration;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use clap::Parser;
use crossbeam_epoch as epoch;
use sheaves::{Pool, PoolBox, Stats, rcu};

/// Allocates and retires objects in a loop.
#[derive(Debug, Parser)]
struct Args {
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Turns of the loop, of each thread.
    #[arg(long, default_value_t = 2000)]
    loops: usize,
    /// Objects that are allocated, and then retired, in a turn.
    #[arg(long, default_value_t = 1000)]
    allocs: usize,
    /// Objects of 32, 64, 96 and 128 bytes in turn, instead of 64 only.
    #[arg(long)]
    sizes: bool,
    /// Microseconds for which a thread pauses after each turn.
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Slots of a sheaf; 0 for the automatic choice.
    #[arg(long, default_value_t = 0)]
    capacity: usize,
    /// Each object by itself: a closure that frees it, deferred by crossbeam-epoch.
    #[arg(long)]
    no_batch: bool,
    /// The same with `Box` on the global allocator, each destroyed by crossbeam-epoch's `defer_destroy`, before and after.
    #[arg(long)]
    rival: bool,
    /// Instead of all this, one object a millisecond into a pool with a drain interval of so many milliseconds: how long
    /// objects are retired.
    #[arg(long, value_name = "MILLIS")]
    aging: Option<u64>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a run held at most, in bytes.
static MOST: AtomicUsize = AtomicUsize::new(0);

/// A pool of objects of one size.
trait Slots: Sync {
    fn turn(&self, objects: usize, no_batch: bool);
    fn stats(&self) -> Stats;
    fn barrier(&self);
}

/// `Box` and `defer_destroy`.
struct Boxes;

impl Slots for Boxes {
    fn turn(&self, objects: usize, _no_batch: bool) {
        for _ in 0..objects {
            let object = epoch::Owned::new([1_u8; 64]);
            let guard = epoch::pin();
            let object = object.into_shared(&guard);
            // SAFETY: nobody else has ever had the object.
            unsafe { guard.defer_destroy(object) };
        }
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn barrier(&self) {}
}

struct Of<const BYTES: usize>(Pool<[u8; BYTES]>);

impl<const BYTES: usize> Of<BYTES> {
    fn boxed(capacity: usize) -> Box<dyn Slots> {
        let builder = Pool::builder(&format!("rcuperf-{BYTES}"));
        let builder = if capacity == 0 {
            builder
        } else {
            builder.sheaf_capacity(capacity)
        };
        Box::new(Self(builder.build().expect("a pool can be built")))
    }
}

impl<const BYTES: usize> Slots for Of<BYTES> {
    fn turn(&self, objects: usize, no_batch: bool) {
        for _ in 0..objects {
            let object = self.0.alloc([1; BYTES]);
            if no_batch {
                rcu::pin().as_epoch().defer(move || drop(object));
            } else {
                PoolBox::retire(object);
            }
        }
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }

    fn barrier(&self) {
        self.0.rcu_barrier().expect("nobody is pinned");
    }
}

/// Tells how long it was retired.
struct Aged(Instant);

static AGES: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

impl Drop for Aged {
    fn drop(&mut self) {
        let mut ages = AGES.lock().expect("no drop panics");
        ages.push(self.0.elapsed());
    }
}

fn aging(interval: Duration) {
    let builder = Pool::builder("rcuperf-aging").drain_interval(interval);
    let pool = builder.build().expect("a pool can be built");
    let reaped = || AGES.lock().expect("no drop panics").len();
    let begin = Instant::now();
    let mut retired = 0;
    while begin.elapsed() < interval * 5 {
        PoolBox::retire(pool.alloc(Aged(Instant::now())));
        retired += 1;
        thread::sleep(Duration::from_millis(1));
    }
    while reaped() < retired {
        thread::sleep(Duration::from_millis(1));
    }
    let ages = AGES.lock().expect("no drop panics");
    let most = ages.iter().max().expect("there are some");
    let mean = ages.iter().sum::<Duration>() / u32::try_from(retired).unwrap_or(u32::MAX);
    let intervals = |age: Duration| age.as_secs_f64() / interval.as_secs_f64();
    println!(
        "{retired} objects retired for {:.2} drain intervals on average, {:.2} at most; {} batches",
        intervals(mean),
        intervals(*most),
        pool.stats().rcu_batch,
    );
}

fn main() {
    let args = Args::parse();
    if let Some(millis) = args.aging {
        return aging(Duration::from_millis(millis.max(1)));
    }
    let pools = if args.sizes {
        vec![
            Of::<32>::boxed(args.capacity),
            Of::<64>::boxed(args.capacity),
            Of::<96>::boxed(args.capacity),
            Of::<128>::boxed(args.capacity),
        ]
    } else {
        vec![Of::<64>::boxed(args.capacity)]
    };
    let boxes: Vec<Box<dyn Slots>> = vec![Box::new(Boxes)];
    let rival = |which: &str| {
        if args.rival {
            let took = run(&args, &boxes);
            println!("defer_destroy(Box), {which}: {} ns", took.as_nanos());
        }
    };
    rival("before");
    let took = run(&args, &pools);
    rival("after");
    pools.iter().for_each(|pool| pool.barrier());
    let stats: Vec<Stats> = pools.iter().map(|pool| pool.stats()).collect();
    let objects = args.threads * args.loops * args.allocs;
    let batches: u64 = stats.iter().map(|stats| stats.rcu_batch).sum();
    let records: u64 = stats.iter().map(|stats| stats.rcu_reaped).sum();
    println!(
        "Total time taken by all kfree'ers: {} ns, loops: {}, batches: {batches}, memory footprint: {} KiB",
        took.as_nanos(),
        args.loops,
        MOST.load(Relaxed) / 1024,
    );
    println!(
        "{objects} objects, {:.1} ns each and thread, {:.1} records per batch",
        took.as_nanos() as f64 * args.threads as f64 / objects as f64,
        records as f64 / batches.max(1) as f64,
    );
    for (class, count) in histogram(&stats) {
        println!("{:>8}+ records: {count} batches", 1_u64 << class);
    }
}

fn run(args: &Args, pools: &[Box<dyn Slots>]) -> Duration {
    let start = Barrier::new(args.threads + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    for turn in 0..args.loops {
                        let share = args.allocs / pools.len();
                        pools
                            .iter()
                            .for_each(|pool| pool.turn(share, args.no_batch));
                        if args.pause > 0 {
                            thread::sleep(Duration::from_micros(args.pause));
                        }
                        if turn % 64 == 0 {
                            let held: u64 = pools.iter().map(|pool| pool.stats().bytes).sum();
                            MOST.fetch_max(usize::try_from(held).unwrap_or(usize::MAX), Relaxed);
                        }
                    }
                })
            })
            .collect();
        start.wait();
        let begin = Instant::now();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no thread panics"));
        begin.elapsed()
    })
}

fn histogram(stats: &[Stats]) -> Vec<(usize, u64)> {
    let sum = |class: usize| stats.iter().map(|stats| stats.batch_sizes[class]).sum();
    let classes = 0..Stats::default().batch_sizes.len();
    classes
        .map(|class| (class, sum(class)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
