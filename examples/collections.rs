//! Collections in pools: vectors, boxes, hash tables, pinned futures, and what each request costs in memory.
//!
//! `cargo run --release --example collections`

use core::alloc::Layout;
use core::pin::Pin;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::{DefaultHashBuilder, HashMap, HashSet};
use sheaves::{Pool, PoolOf, Pooled};

/// A tree node, with a pool for its type.
#[derive(Clone, Pooled)]
#[pool(name = "node")]
struct Node {
    key: u64,
    value: [u8; 232],
}

impl Node {
    fn new(key: u64) -> Self {
        Self {
            key,
            value: [0; 232],
        }
    }
}

fn main() {
    collections();
    println!("What collections ask for, and what it costs in a pool of 240-byte nodes:\n");
    println!("| request | layout | served by | bytes |");
    println!("|---|---|---|---|");
    let pool = Pool::<Node>::new("costs");
    for (request, size, align) in REQUESTS {
        let layout = Layout::from_size_align(size, align).expect("a small layout");
        let (cache, bytes) = cost(&pool, layout);
        println!("| {request} | {size}/{align} | {cache} | {bytes} |");
    }
}

/// Every way to have an allocator: a borrowed pool, a handle of one, and the type's own, which has no size.
fn collections() {
    let pool = Pool::<Node>::new("nodes");

    let mut nodes = Vec::new_in(&pool);
    nodes.extend((0..100).map(Node::new));
    let boxed: std::vec::Vec<Box<Node, PoolOf<Node>>> = (0..100)
        .map(|key| Box::new_in(Node::new(key), PoolOf::new()))
        .collect();
    assert_eq!(size_of_val(&boxed[0]), size_of::<usize>());
    assert!(boxed.iter().all(|node| node.value == [0; 232]));

    // Tables may outlive the pool's other handles: they have one of their own.
    let mut by_key: HashMap<u64, usize, DefaultHashBuilder, Pool<Node>> =
        HashMap::new_in(pool.clone());
    by_key.extend(nodes.iter().map(|node| node.key).zip(0..));
    let mut seen: HashSet<u64, DefaultHashBuilder, PoolOf<Node>> = HashSet::default();
    seen.extend(boxed.iter().map(|node| node.key));
    assert_eq!(by_key.len(), seen.len());

    // A pool that lives for ever may hold what must not move.
    let mut pinned: Pin<Box<_, PoolOf<Node>>> =
        Box::pin_in(async { Node::new(7).key }, PoolOf::new());
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(pinned.as_mut().poll(&mut context).is_ready());

    println!("{}", sheaves::slabinfo());
    for pool in [&pool, Node::pool()] {
        let stats = pool.stats();
        println!(
            "{}: {} objects, {} blocks, {} bytes",
            pool.name(),
            stats.live,
            stats.blocks,
            stats.bytes
        );
    }
    println!();
}

/// As `allocator_api2::vec::Vec` and hashbrown ask.
const REQUESTS: [(&str, usize, usize); 16] = [
    ("`Box`, `with_capacity(1)`, clone of one", 240, 8),
    ("`Vec`, first push", 960, 8),
    ("`Vec`, 5th push", 1920, 8),
    ("`Vec`, 17th push", 7680, 8),
    ("`Vec`, 33rd push", 15_360, 8),
    ("`Vec`, 65th push", 30_720, 8),
    ("`Vec`, 129th push", 61_440, 8),
    ("`Vec`, 257th push", 122_880, 8),
    ("`with_capacity(3)`", 720, 8),
    ("boxed slice of 5", 1200, 8),
    ("`Vec<u8>`, first push", 8, 1),
    ("`HashSet<u64>`, 1 to 3 items", 52, 16),
    ("`HashMap<u64, u64>`, 1 to 3 items", 84, 16),
    ("`HashMap<u64, u64>`, 100 items", 2192, 16),
    ("`HashMap<u64, Node>`, 1 to 3 items", 1012, 16),
    ("`HashMap<u64, Node>`, 57 to 112 items", 31_888, 16),
];

/// The cache that serves a layout, and its share of that cache's slabs.
fn cost(pool: &Pool<Node>, layout: Layout) -> (String, u64) {
    let before = pool.stats();
    let block = pool.allocate(layout).expect("memory is there");
    let lines = sheaves::slabinfo();
    let line = lines
        .iter()
        .find(|line| line.name().starts_with("costs") && line.stats().live > 0);
    let cost = match line {
        Some(line) => {
            let stats = line.stats();
            let cache = match line.name().strip_prefix("costs-") {
                Some(class) => format!("`{class}`"),
                None => "the pool's slots".to_owned(),
            };
            let slabs = stats.bytes - stats.block_bytes;
            (cache, slabs.div_ceil(stats.slots))
        }
        None => ("whole pages".to_owned(), pool.stats().bytes - before.bytes),
    };
    // SAFETY: the block was just allocated with this layout, and nobody has seen it.
    unsafe { pool.deallocate(block.cast(), layout) };
    cost
}
