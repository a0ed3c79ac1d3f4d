//! Which address a place of the model has.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use crate::slabs::{Place, Shape};
use crate::source::PAGE;

#[derive(Debug)]
pub(crate) struct Atlas {
    shape: Shape,
    stride: usize,
    align: usize,
    /// How far into its run the first slot of a run lies, for runs of which a slot was seen.
    firsts: HashMap<(usize, usize), usize>,
}

impl Atlas {
    pub(crate) fn new(shape: Shape, stride: usize, align: usize) -> Self {
        Self {
            shape,
            stride,
            align,
            firsts: HashMap::new(),
        }
    }

    /// Panics if `address` is not that of `place`. `blocks` tells where the slabs begin.
    pub(crate) fn check(&mut self, place: Place, address: usize, blocks: &[usize]) {
        let Shape {
            run_slots,
            run_pages,
            ..
        } = self.shape;
        assert_eq!(address % self.align, 0, "{address:#x} is not aligned");
        let run = place.index / run_slots;
        let run_start = blocks[place.slab] + run * run_pages * PAGE;
        let within = place.index % run_slots * self.stride;
        let first = address.wrapping_sub(run_start).wrapping_sub(within);
        // The first object of a run starts on its first page; how far in it does is the engine's choice.
        let known = *self.firsts.entry((place.slab, run)).or_insert(first);
        assert!(
            first == known && first < PAGE,
            "the object was to be at {place:?}, {known} bytes after {run_start:#x} + {within}, and is at {address:#x}"
        );
        let last = first + (run_slots - 1) * self.stride;
        assert!(last < run_pages * PAGE, "a run is too short for its slots");
    }
}
