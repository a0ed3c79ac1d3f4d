//! The map of the example `range_map` against a plain one, however it is fed; and its readers while it changes.

#![cfg(all(feature = "rcu", not(loom)))]

#[path = "../examples/range_map/feed.rs"]
mod feed;
#[path = "../examples/range_map/map.rs"]
mod map;
#[path = "../examples/range_map/node.rs"]
mod node;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::collections::BTreeMap;
use std::thread;

use sheaves::rcu;

use feed::{Boxes, BoxesAhead, Bulk, Feed, Kept, Prefilled};
use map::{Overlap, RangeMap};
use node::Range;

/// Addresses of the random runs: few enough that ranges meet.
const SPACE: u64 = 4000;
const STEPS: usize = 20_000;

/// The next of a row of pseudo-random numbers.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// The last range of the plain map that starts at `at` or before.
fn floor(plain: &BTreeMap<u64, Range>, at: u64) -> Option<Range> {
    plain.range(..=at).next_back().map(|(_, range)| *range)
}

/// Random changes, more insertions than removals by turns, so that the tree grows and falls.
fn as_a_plain_map<F: Feed>(mut seed: u64) {
    let map = RangeMap::<F>::new();
    let mut writer = map.writer();
    let mut plain = BTreeMap::new();
    for step in 0..STEPS {
        let start = next(&mut seed) % SPACE;
        let grows = step / 4000 % 2 == 0;
        if next(&mut seed) % 8 < if grows { 6 } else { 1 } {
            let end = start + 1 + next(&mut seed) % 4;
            let value = next(&mut seed);
            let range = Range { start, end, value };
            let found = floor(&plain, end - 1).filter(|found| start < found.end);
            let expected = found.map_or(Ok(()), |found| Err(Overlap(found)));
            assert_eq!(writer.map(range), expected);
            if found.is_none() {
                plain.insert(start, range);
            }
        } else {
            // Mostly one that is there.
            let there = floor(&plain, start).map_or(start, |range| range.start);
            assert_eq!(writer.unmap(there), plain.remove(&there));
        }
        let at = next(&mut seed) % SPACE;
        let found = floor(&plain, at).filter(|range| at < range.end);
        assert_eq!(map.get(at, &rcu::pin()), found);
        if step % 500 == 0 {
            assert!(map.ranges(&rcu::pin()).iter().eq(plain.values()));
        }
    }
    for start in plain.into_keys() {
        assert!(writer.unmap(start).is_some(), "{start}");
    }
    assert_eq!(map.ranges(&rcu::pin()), []);
}

#[test]
fn on_boxes_it_is_as_a_plain_map() {
    as_a_plain_map::<Boxes>(1);
    as_a_plain_map::<BoxesAhead>(2);
}

#[test]
fn on_a_pool_in_bulk_it_is_as_a_plain_map() {
    as_a_plain_map::<Bulk>(3);
}

#[test]
fn on_prefilled_sheaves_it_is_as_a_plain_map() {
    as_a_plain_map::<Prefilled>(4);
    as_a_plain_map::<Kept>(5);
}

/// Two writers come and go, each with addresses of its own; every second range stays and must always be found.
#[test]
fn readers_find_what_stays_while_writers_change_the_rest() {
    const RANGES: u64 = 300;
    let map = RangeMap::<Prefilled>::new();
    let range = |index: u64| Range {
        start: index * 10,
        end: index * 10 + 10,
        value: index,
    };
    for index in (0..RANGES).step_by(2) {
        map.writer().map(range(index)).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seed = 5;
            while !stop.load(Relaxed) {
                let guard = rcu::pin();
                for _ in 0..16 {
                    let index = next(&mut seed) % RANGES;
                    let found = map.get(index * 10 + 9, &guard);
                    let right = found.is_none() && index % 2 == 1 || found == Some(range(index));
                    assert!(right, "{index}: {found:?}");
                }
            }
        });
        let writers = [1, 3].map(|first| {
            let map = &map;
            scope.spawn(move || {
                let mut writer = map.writer();
                for _ in 0..40 {
                    for index in (first..RANGES).step_by(4) {
                        assert_eq!(writer.map(range(index)), Ok(()));
                    }
                    for index in (first..RANGES).step_by(4) {
                        assert_eq!(writer.unmap(range(index).start), Some(range(index)));
                    }
                }
            })
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        stop.store(true, Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(map.ranges(&rcu::pin()).len(), 150);
}
