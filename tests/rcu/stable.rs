//! Type-stable pools: memory that is reused under readers, and stays what it is.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
use std::thread;

use sheaves::{Pool, StableBox, StableCell, StablePool, TypeStable, rcu};

#[derive(Debug)]
struct Record {
    version: AtomicU64,
    key: AtomicU64,
    value: AtomicU64,
    padding: [AtomicU64; 60],
}

// SAFETY: atomics of zero are valid.
unsafe impl TypeStable for Record {}

impl Record {
    fn set(&self, key: u64, value: u64) {
        let version = self.version.load(Relaxed);
        assert_eq!(version % 2, 0, "two owners");
        self.version.store(version + 1, Relaxed);
        fence(Release);
        self.key.store(key, Relaxed);
        self.value.store(value, Relaxed);
        self.padding[59].store(value, Relaxed);
        self.version.store(version + 2, Release);
    }

    fn get(&self) -> Option<(u64, u64)> {
        let before = self.version.load(Acquire);
        let found = (self.key.load(Relaxed), self.value.load(Relaxed));
        let last = self.padding[59].load(Relaxed);
        fence(Acquire);
        let whole = before % 2 == 0 && self.version.load(Relaxed) == before;
        assert!(!whole || last == found.1, "a mixture passed for whole");
        whole.then_some(found)
    }
}

/// A value that tells its key.
fn value(key: u64, turn: u64) -> u64 {
    key << 32 | turn
}

#[test]
fn what_passes_the_check_is_what_was_looked_for() {
    let builder = Pool::builder("records")
        .sheaf_capacity(2)
        .barn(0, 0)
        .min_partial(0);
    let pool: StablePool<Record> = StablePool::build(builder).unwrap();
    let table = [const { StableCell::empty() }; 4];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let (pool, table) = (&pool, &table);
                scope.spawn(move || {
                    for turn in 0..20_000_u64 {
                        let key = writer * 2 + turn % 2;
                        let cell = &table[usize::try_from(key).unwrap_or(0)];
                        let new = pool.alloc(|record| record.set(key, value(key, turn)));
                        drop(cell.swap(Some(new)));
                        if turn % 64 == 0 {
                            pool.shrink();
                        }
                    }
                })
            })
            .collect();
        let read = || {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let guard = rcu::pin();
                    for (key, cell) in (0_u64..).zip(&table) {
                        let Some(record) = cell.load(&guard) else {
                            continue;
                        };
                        thread::yield_now();
                        if let Some((found, value)) = record.get() {
                            assert_eq!(value >> 32, found);
                            if cell.holds(record) && found != key {
                                // Another's by now, and back here as well: only the key tells.
                                continue;
                            }
                        }
                    }
                }
            })
        };
        let readers = [read(), read()];
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        stop.store(true, SeqCst);
        // The end of a scope is an order that ThreadSanitizer does not see, a join is one.
        for reader in readers {
            reader.join().unwrap();
        }
    });
    drop(table);
    pool.flush_thread();
    pool.shrink();
    assert_eq!((pool.stats().live, pool.stats().bytes), (0, 0));
}

/// A slot is zeros when it is used first, and as its last owner left it after that.
#[test]
fn a_slot_is_made_once() {
    let pool: StablePool<Record> = StablePool::new("once");
    let boxes: Vec<StableBox<Record>> = (0..300)
        .map(|key| {
            pool.alloc(|record| {
                assert_eq!(record.version.load(Relaxed), 0);
                record.set(key, key);
            })
        })
        .collect();
    drop(boxes);
    let reused = pool.alloc(|record| record.set(1, 1));
    assert!(reused.version.load(Relaxed) >= 2);
}

/// The memory under a pinned reader is not given back.
#[test]
fn a_reader_keeps_the_slab() {
    let pool: StablePool<Record> = StablePool::new("slab");
    let cell = StableCell::empty();
    cell.swap(Some(pool.alloc(|record| record.set(5, 50))));
    let guard = rcu::pin();
    let record = cell.load(&guard).unwrap();
    drop(cell.take());
    pool.shrink();
    assert_eq!(pool.stats().slabs, 0);
    let name = pool.name().to_owned();
    drop(pool);
    rcu::drain();
    assert_eq!(record.get(), Some((5, 50)));
    assert_eq!(name, "slab");
    drop(guard);
    rcu::drain();
}
