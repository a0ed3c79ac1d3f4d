//! Random access to many objects, in slabs of every order up to a huge page: what the page order is for.
//!
//! `cargo run --release --example huge_pages -- --mib 1024`
#![forbid(unsafe_code)]

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use clap::Parser;
use sheaves::{Order, Pool, PoolBox};

/// Touch objects in random order, in slabs of orders 0 to 5
#[derive(Parser)]
struct Args {
    /// MiB of objects
    #[arg(long, default_value_t = 1024)]
    mib: usize,
    /// Millions of objects to touch in a round
    #[arg(long, default_value_t = 4)]
    millions: usize,
    /// Rounds, of which the median is taken
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

type Object = [u64; 30];

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let args = Args::parse();
    let objects = (args.mib << 20) / size_of::<Object>();
    println!("{objects} objects of 240 bytes, {} MiB", args.mib);
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    println!(
        "transparent huge pages: {}",
        setting.as_deref().unwrap_or("not here").trim()
    );
    println!("\n| order | slab | huge pages | fill, ns an object | touch, ns | against order 0 |");
    println!("|---|---|---|---|---|---|");
    let mut first = None;
    for order in 0..=5 {
        let order = if order == 5 {
            Order::LARGE
        } else {
            Order::new(order)
        };
        let row = measure(order, objects, &args)?;
        let of_first = *first.get_or_insert(row.touch) / row.touch;
        println!(
            "| {} | {} KiB | {} MiB | {:.1} | {:.1} | {of_first:.2} |",
            row.order,
            64 << row.order,
            row.huge_mib,
            row.fill,
            row.touch
        );
    }
    Ok(())
}

struct Row {
    order: u8,
    huge_mib: usize,
    fill: f64,
    touch: f64,
}

fn measure(order: Order, objects: usize, args: &Args) -> Result<Row, sheaves::BuildError> {
    let pool: Pool<Object> = Pool::builder("objects").order(order).build()?;
    let mut boxes: Vec<PoolBox<Object>> = Vec::with_capacity(objects);
    let start = Instant::now();
    boxes.extend((0..objects as u64).map(|i| pool.alloc([i; 30])));
    let fill = start.elapsed().as_nanos() as f64 / objects as f64;
    let huge_mib = huge_mib();
    let touches = args.millions * 1_000_000;
    let mut times: Vec<f64> = (0..args.rounds.max(1))
        .map(|round| {
            let start = Instant::now();
            touch(&boxes, touches, round as u64);
            start.elapsed().as_nanos() as f64 / touches as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    PoolBox::free_bulk(boxes);
    pool.shrink();
    Ok(Row {
        order: pool.config().order(),
        huge_mib,
        fill,
        touch: times[times.len() / 2],
    })
}

/// Reads objects in random order. Each tells where the next one is, so that no two reads overlap.
fn touch(boxes: &[PoolBox<Object>], touches: usize, seed: u64) {
    // The boxes lie in order, so an object is found by its index without a read of the vector of boxes: what is
    // measured is the object.
    let mut random = seed | 1;
    let mut sum = 0_u64;
    for _ in 0..touches {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = (random ^ (sum & 1)) % boxes.len() as u64;
        let object = &boxes[usize::try_from(at).unwrap_or(0)];
        sum = sum.wrapping_add(object[(random >> 60) as usize]);
    }
    black_box(sum);
}

/// MiB of this process that huge pages back; 0 where that cannot be told.
fn huge_mib() -> usize {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("AnonHugePages:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) >> 10
}
