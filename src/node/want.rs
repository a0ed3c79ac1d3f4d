//! How many slots are asked of a node, and why it may not have them.
#![forbid(unsafe_code)]

/// How many slots are wanted at once. None are taken if there are fewer than `min`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Whether fewer than `max` are welcome: no new slab can be had.
    pub(crate) scraps: bool,
}

impl Want {
    pub(crate) fn exactly(n: usize) -> Self {
        Self {
            min: n,
            max: n,
            scraps: false,
        }
    }
}

/// The state of a pool at its limit.
#[derive(Debug)]
pub(super) struct Tight {
    /// Slots out at which slots may be parked again.
    calm: usize,
    /// Slots that came home since.
    came_home: usize,
}

impl Tight {
    pub(super) fn new(calm: usize) -> Self {
        Self { calm, came_home: 0 }
    }

    /// Counts slots that came home; whether, with `out` slots out, the pool may park slots again.
    pub(super) fn is_calm(&mut self, came_home: usize, out: usize) -> bool {
        self.came_home = self.came_home.saturating_add(came_home);
        self.came_home >= CALM_FREES && out <= self.calm
    }
}

/// Slots that must come home before a pool leaves the tight state: leaving it and finding it again costs a
/// visit to every thread each, which this many frees pay for.
const CALM_FREES: usize = 256;

/// Why a node has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Every slot of every slab is out: a new slab would help.
    Slabs,
    /// As many slots are out as the limit allows.
    Limit,
}
