//! What the map is put through: five ranges are mapped among many others, looked up, and unmapped.

use core::hint::black_box;

use sheaves::rcu;

use super::feed::Feed;
use super::map::{RangeMap, Writer};
use super::node::Range;

/// Resident ranges take the first half of each stretch of this length, the others a part of the second.
const STRETCH: u64 = 0x1_0000;
/// Ranges of a cycle.
const FIVE: u64 = 5;

fn range(start: u64, length: u64) -> Range {
    let end = start + length;
    Range {
        start,
        end,
        value: start ^ end,
    }
}

/// A map with so many ranges that stay.
pub(crate) fn filled<F: Feed>(resident: u64) -> RangeMap<F> {
    let map = RangeMap::new();
    let mut writer = map.writer();
    for index in 0..resident {
        let range = range(index * STRETCH, STRETCH / 2);
        writer.map(range).expect("nothing else is there");
    }
    drop(writer);
    map
}

/// Cycles at pseudo-random places, the same in each run.
#[derive(Debug)]
pub(crate) struct Stress {
    resident: u64,
    seed: u64,
}

impl Stress {
    /// For a map that [`filled`] made with so many.
    pub(crate) fn new(resident: u64) -> Self {
        let resident = resident.max(1);
        Self { resident, seed: 1 }
    }

    pub(crate) fn cycle<F: Feed>(&mut self, map: &RangeMap<F>, writer: &mut Writer<'_, F>) {
        self.seed = next(self.seed);
        let first = (self.seed >> 33) % self.resident * STRETCH + STRETCH / 2;
        let start = |index: u64| first + index * 0x1000;
        for index in 0..FIVE {
            let mapped = writer.map(range(start(index), 0x1000));
            mapped.expect("unmapped by the last cycle");
        }
        for index in 0..FIVE {
            let found = map.get(start(index) + 0x800, &rcu::pin());
            assert_eq!(black_box(found), Some(range(start(index), 0x1000)));
        }
        for index in 0..FIVE {
            let gone = writer.unmap(start(index));
            assert!(gone.is_some(), "mapped above");
        }
    }
}

/// The next of a row of pseudo-random numbers.
fn next(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}
