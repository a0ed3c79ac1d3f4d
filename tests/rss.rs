//! What pools cost in resident memory; in a process of its own, one measurement after the other.
#![allow(missing_docs, reason = "tests")]
#![cfg(target_os = "linux")]

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::alloc::System;

use sheaves::testing::NodeStats;
use sheaves::{Pool, PoolBox};

/// Counts the bytes that are out.
struct Counting;

static HEAP: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to `System`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP.fetch_add(layout.size(), Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP.fetch_sub(layout.size(), Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).expect("the second word");
    let pages: usize = pages.parse().expect("a number of pages");
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * usize::try_from(page).expect("a small number")
}

type Object = [u64; 30];

fn warm_up() {
    let pool = Pool::<Object>::new("warm");
    drop((0..1000).map(|i| pool.alloc([i; 30])).collect::<Vec<_>>());
    drop(pool);
    sheaves::shrink();
    let _ = (resident(), sheaves::slabinfo().to_string());
}

fn a_million_objects_cost_little_more_than_their_payload() {
    const OBJECTS: usize = 1_000_000;
    let payload = OBJECTS * size_of::<Object>();
    let mut boxes: Vec<PoolBox<Object>> = Vec::with_capacity(OBJECTS);
    boxes.spare_capacity_mut().iter_mut().for_each(|place| {
        // Resident before the measurement.
        // SAFETY: bytes of a place that holds nothing yet.
        unsafe { place.as_mut_ptr().cast::<u8>().write_volatile(0) };
    });
    let before = resident();
    let pool = Pool::<Object>::new("million");
    boxes.extend((0..OBJECTS).map(|i| pool.alloc([i as u64; 30])));
    let cost = resident() - before;
    let percent = cost as f64 * 100.0 / payload as f64;
    println!(
        "a million objects of 240 bytes: {cost} bytes resident, {percent:.2} % of their payload"
    );
    assert!(cost * 100 <= payload * 102, "{percent:.2} % of the payload");
    assert!(
        boxes
            .iter()
            .enumerate()
            .all(|(i, boxed)| boxed[29] == i as u64)
    );
    drop(boxes);
    pool.shrink();
    let left = resident().saturating_sub(before);
    println!("after all were freed and the pool shrunk: {left} bytes");
    assert!(left <= 1 << 20, "{left} bytes stay resident");
}

fn idle_pools_cost_little() {
    const POOLS: usize = 1000;
    let mut pools: Vec<Pool<Object>> = Vec::with_capacity(POOLS);
    let (heap, before) = (HEAP.load(Relaxed), resident());
    pools.extend((0..POOLS).map(|_| Pool::new("idle")));
    let (heap, cost) = (HEAP.load(Relaxed) - heap, resident().saturating_sub(before));
    println!(
        "an idle pool: {} bytes of heap, {} bytes resident",
        heap / POOLS,
        cost / POOLS
    );
    // Each node more has slabs and a barn of its own.
    let nodes = NodeStats::of(&pools[0]).len();
    let bound = POOLS * 2048 * nodes;
    assert!(heap <= bound, "{} bytes of heap each", heap / POOLS);
    assert!(cost <= bound, "{} bytes resident each", cost / POOLS);
    let (heap, before) = (HEAP.load(Relaxed), resident());
    pools.iter().for_each(|pool| drop(pool.alloc([1; 30])));
    let (used, used_resident) = (HEAP.load(Relaxed) - heap, resident().saturating_sub(before));
    assert!(
        cost + used_resident <= POOLS * 8192 * nodes,
        "{} bytes resident for a pool with one object",
        (cost + used_resident) / POOLS
    );
    pools.iter().for_each(|pool| assert!(pool.shrink() > 0));
    let (shrunk, rest) = (
        HEAP.load(Relaxed).saturating_sub(heap),
        resident().saturating_sub(before),
    );
    println!(
        "used once: {} bytes of heap and {} resident more",
        used / POOLS,
        used_resident / POOLS
    );
    println!(
        "then shrunk: {} bytes of heap and {} resident more",
        shrunk / POOLS,
        rest / POOLS
    );
    assert!(pools.iter().all(|pool| pool.stats().bytes == 0));
    drop(pools);
}

/// The smallest table of hashbrown: 52 bytes, aligned to 16.
fn small_hash_tables_cost_little() {
    type Set<'a> = hashbrown::HashSet<u64, std::hash::RandomState, &'a Pool<Object>>;
    const TABLES: usize = 100_000;
    let pool = Pool::<Object>::new("tables");
    let mut tables: Vec<Set<'_>> = Vec::with_capacity(TABLES);
    tables.extend((0..TABLES).map(|_| Set::with_hasher_in(std::hash::RandomState::new(), &pool)));
    let before = resident();
    tables.iter_mut().for_each(|table| assert!(table.insert(7)));
    let cost = (resident() - before) / TABLES;
    let held = usize::try_from(pool.stats().bytes).expect("a small number") / TABLES;
    println!("a hash table of 52 bytes: {cost} bytes resident, {held} held by the pool");
    assert!(
        cost <= 128 && held <= 128,
        "{cost} and {held} bytes a table"
    );
    drop(tables);
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn memory() {
    warm_up();
    idle_pools_cost_little();
    small_hash_tables_cost_little();
    a_million_objects_cost_little_more_than_their_payload();
}
