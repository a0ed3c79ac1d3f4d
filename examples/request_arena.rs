//! A pool for each request, on an arena that goes with it: against plain bumpalo, against `Box`, and against one
//! pool for all.
//!
//! A request builds a tree of nodes, replaces some of them, and throws everything away. On a bump arena nothing is
//! freed before the end. A pool on an arena recycles what is freed, runs destructors, and still goes as a whole.
//!
//! `cargo run --release --example request_arena`
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use clap::Parser;
use sheaves::{Arena, Pool, PoolBox};

/// Serve requests that allocate, with five ways to do it
#[derive(Parser)]
struct Args {
    /// Requests of a round
    #[arg(long, default_value_t = 2000)]
    requests: usize,
    /// Nodes that a request holds
    #[arg(long, default_value_t = 500)]
    nodes: usize,
    /// Nodes that it replaces
    #[arg(long, default_value_t = 2000)]
    replaced: usize,
    /// Rounds, of which the median is taken
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

type Node = [u64; 30];

/// Serves a request, and says how many KiB of memory it took; 0 if nobody knows.
type Way<'a> = &'a dyn Fn(&Args) -> u64;

fn main() {
    let args = Args::parse();
    println!(
        "{} nodes of 240 bytes a request, {} replaced; {} requests a round\n",
        args.nodes, args.replaced, args.requests
    );
    println!("| nodes come from | µs a request | KiB at most |");
    println!("|---|---|---|");
    let shared: Pool<Node> = Pool::new("shared");
    let ways: [(&str, Way<'_>); 5] = [
        ("a pool a request, on an arena", &on_an_arena),
        ("the same without sheaves", &without_sheaves),
        ("one pool for all", &|args| on_a_pool(&shared, args)),
        ("bumpalo", &on_bumpalo),
        ("`Box`", &on_the_heap),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    let mut most = vec![0; ways.len()];
    for round in 0..args.rounds.max(1) {
        // Whoever goes first changes from round to round.
        for turn in 0..ways.len() {
            let at = (round + turn) % ways.len();
            let start = Instant::now();
            for _ in 0..args.requests {
                most[at] = most[at].max(ways[at].1(&args));
            }
            times[at].push(start.elapsed().as_secs_f64() * 1e6 / args.requests as f64);
        }
    }
    for ((name, _), (times, most)) in ways.iter().zip(times.iter_mut().zip(most)) {
        times.sort_by(f64::total_cmp);
        let most = if most == 0 {
            "unknown".to_owned()
        } else {
            most.to_string()
        };
        println!("| {name} | {:.1} | {most} |", times[times.len() / 2]);
    }
    assert_eq!(shared.stats().live, 0, "every request has freed its nodes");
}

/// A pool of its own, with slabs from an arena.
fn on_an_arena(args: &Args) -> u64 {
    let pool = Pool::builder("request").source(Arena::new()).build();
    on_a_pool(&pool.expect("the options are possible"), args)
}

/// The same without sheaves: nothing is set up for the thread, and every operation takes a lock that nobody else
/// wants.
fn without_sheaves(args: &Args) -> u64 {
    let builder = Pool::builder("request").source(Arena::new());
    let pool = builder.sheaf_capacity(0).build();
    on_a_pool(&pool.expect("the options are possible"), args)
}

fn on_a_pool(pool: &Pool<Node>, args: &Args) -> u64 {
    let mut nodes: Vec<PoolBox<Node>> = Vec::with_capacity(args.nodes);
    nodes.extend((0..args.nodes as u64).map(|i| pool.alloc([i; 30])));
    for i in 0..args.replaced {
        nodes[i * 7 % args.nodes] = pool.alloc([i as u64; 30]);
    }
    black_box(nodes.iter().map(|node| node[0]).sum::<u64>());
    pool.stats().bytes >> 10
}

fn on_bumpalo(args: &Args) -> u64 {
    let bump = bumpalo::Bump::new();
    let mut nodes: Vec<&mut Node> = Vec::with_capacity(args.nodes);
    nodes.extend((0..args.nodes as u64).map(|i| bump.alloc([i; 30])));
    for i in 0..args.replaced {
        nodes[i * 7 % args.nodes] = bump.alloc([i as u64; 30]);
    }
    black_box(nodes.iter().map(|node| node[0]).sum::<u64>());
    bump.allocated_bytes() as u64 >> 10
}

fn on_the_heap(args: &Args) -> u64 {
    let mut nodes: Vec<Box<Node>> = Vec::with_capacity(args.nodes);
    let make = |i: u64| Box::new([i; 30]);
    nodes.extend((0..args.nodes as u64).map(make));
    for i in 0..args.replaced {
        let old = core::mem::replace(&mut nodes[i * 7 % args.nodes], make(i as u64));
        drop(old);
    }
    black_box(nodes.iter().map(|node| node[0]).sum::<u64>());
    // Nobody asks the global allocator.
    0
}
