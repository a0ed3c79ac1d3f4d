//! A read-mostly map: readers take no lock and wait for nobody, writers replace entries and retire the old ones.
//!
//! Prints how many look-ups a second readers make without writers and with them, and how many retired entries were
//! reaped at a time.
//!
//! `cargo run --release --example rcu_map -- --help`

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use clap::Parser;
use sheaves::rcu::{self, Guard};
use sheaves::{Pool, RcuCellOption};

/// Look-ups in a map, with and without writers.
#[derive(Debug, Parser)]
struct Args {
    /// Threads that look entries up.
    #[arg(long, default_value_t = 1)]
    readers: usize,
    /// Threads that replace, remove and insert entries.
    #[arg(long, default_value_t = 1)]
    writers: usize,
    /// Keys.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Milliseconds of each part.
    #[arg(long, default_value_t = 1000)]
    millis: u64,
}

struct Entry {
    key: u64,
    value: u64,
    next: RcuCellOption<Entry>,
}

/// A hash table of a fixed number of chains.
struct Map {
    chains: Vec<RcuCellOption<Entry>>,
    /// One writer at a time on each part of the table.
    writing: Vec<Mutex<()>>,
    pool: Pool<Entry>,
    hasher: RandomState,
}

/// Locks of a map: more than there are processors.
const LOCKS: usize = 64;

impl Map {
    fn new(name: &str, chains: usize) -> Self {
        Self {
            chains: (0..chains.max(1)).map(|_| RcuCellOption::empty()).collect(),
            writing: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            pool: Pool::new(name),
            hasher: RandomState::new(),
        }
    }

    fn chain(&self, key: u64) -> usize {
        let hash = self.hasher.hash_one(key);
        usize::try_from(hash % self.chains.len() as u64).unwrap_or(0)
    }

    fn get<'a>(&'a self, key: u64, guard: &'a Guard) -> Option<&'a u64> {
        let mut entry = self.chains[self.chain(key)].load(guard);
        while let Some(found) = entry {
            if found.key == key {
                return Some(&found.value);
            }
            entry = found.next.load(guard);
        }
        None
    }

    /// Inserts or replaces. An entry that is replaced leaves the chain whole for those who are in it: the entries behind
    /// it are copied, since an entry is in one chain only.
    fn insert(&self, key: u64, value: u64) {
        self.change(key, Some(value));
    }

    fn remove(&self, key: u64) {
        self.change(key, None);
    }

    fn change(&self, key: u64, value: Option<u64>) {
        let at = self.chain(key);
        let _writing = self.writing[at % LOCKS]
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let guard = rcu::pin();
        let mut rest = None;
        // Built anew from behind. Chains are short: there are as many as keys.
        let mut entries = Vec::new();
        let mut entry = self.chains[at].load(&guard);
        while let Some(found) = entry {
            if found.key != key {
                entries.push((found.key, found.value));
            }
            entry = found.next.load(&guard);
        }
        entries.extend(value.map(|value| (key, value)));
        for (key, value) in entries {
            let next = RcuCellOption::new(rest.take());
            rest = Some(self.pool.alloc(Entry { key, value, next }));
        }
        // A writer that is pinned while it retires leaves all that is due to others.
        drop(guard);
        // Retires the first entry; those behind it go with it.
        self.chains[at].replace(rest);
    }
}

fn main() {
    let args = Args::parse();
    let map = Map::new("rcu_map", usize::try_from(args.keys).unwrap_or(1));
    for key in 0..args.keys {
        map.insert(key, key * 2);
    }
    map.pool.rcu_barrier().expect("nobody is pinned");
    println!("{:<24}{:>14}{:>14}", "", "reads/s", "writes/s");
    for writers in [0, args.writers] {
        let (reads, writes) = part(&map, &args, writers);
        println!(
            "{:<24}{reads:>14.0}{writes:>14.0}",
            format!("{} readers, {writers} writers", args.readers)
        );
    }
    map.pool.rcu_barrier().expect("nobody is pinned");
    let stats = map.pool.stats();
    println!(
        "\n{} entries live, {} retired, {} reaped in {} batches",
        stats.live, stats.retired, stats.rcu_reaped, stats.rcu_batch
    );
    for (class, count) in stats
        .batch_sizes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        println!("{:>6} entries or more: {count} batches", 1_u64 << class);
    }
}

/// One part of the run: look-ups and changes a second.
fn part(map: &Map, args: &Args, writers: usize) -> (f64, f64) {
    let stop = AtomicBool::new(false);
    let (reads, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    thread::scope(|scope| {
        for reader in 0..args.readers {
            let (stop, reads) = (&stop, &reads);
            scope.spawn(move || {
                let (mut key, mut done) = (reader as u64, 0_u64);
                while !stop.load(Relaxed) {
                    let guard = rcu::pin();
                    for _ in 0..32 {
                        key = next(key);
                        let found = map.get(key % args.keys, &guard);
                        assert!(
                            found.is_none_or(|value| *value / 2 == key % args.keys),
                            "another key's value"
                        );
                    }
                    done += 32;
                }
                reads.fetch_add(done, Relaxed);
            });
        }
        for writer in 0..writers {
            let (stop, writes) = (&stop, &writes);
            scope.spawn(move || {
                let (mut key, mut done) = (writer as u64 + 1000, 0);
                while !stop.load(Relaxed) {
                    key = next(key);
                    let chosen = key % args.keys;
                    if key >> 40 & 7 == 0 {
                        map.remove(chosen);
                    } else {
                        map.insert(chosen, chosen * 2);
                    }
                    done += 1;
                }
                writes.fetch_add(done, Relaxed);
            });
        }
        thread::sleep(Duration::from_millis(args.millis));
        stop.store(true, Relaxed);
    });
    let seconds = begin.elapsed().as_secs_f64();
    (
        reads.load(Relaxed) as f64 / seconds,
        writes.load(Relaxed) as f64 / seconds,
    )
}

/// The next of a row of pseudo-random numbers.
fn next(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}
