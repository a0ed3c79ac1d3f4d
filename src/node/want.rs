//! How many slots are asked of a node, and why it may not have them.
#![forbid(unsafe_code)]

use crate::slab::Fresh;

/// How many slots are wanted at once. None are taken if there are fewer than `min`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// What the one who wants slots brings along.
#[derive(Debug)]
pub(crate) struct Supply {
    /// The node whose slots are wanted.
    pub(super) home: usize,
    /// New slabs, which are brought in before slots are taken.
    pub(crate) fresh: Option<Fresh>,
    /// Whether the node has used up enough slabs for new ones to share huge pages.
    pub(super) grown: bool,
    /// Whether fewer slots than the most that are wanted are welcome: what new slabs are worth it were made.
    pub(crate) scraps: bool,
}

impl Supply {
    pub(super) fn of(home: usize) -> Self {
        Self {
            home,
            fresh: None,
            grown: false,
            scraps: false,
        }
    }
}

impl Want {
    pub(crate) fn exactly(n: usize) -> Self {
        Self { min: n, max: n }
    }
}

/// The state of a pool at its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tight {
    /// Slots out at which slots may be parked again.
    pub(super) calm: usize,
}

impl Tight {
    /// Whether, with `out` slots out, and so many come home to all nodes since, the pool may park slots again.
    pub(super) fn is_calm(self, came_home: usize, out: usize) -> bool {
        came_home >= CALM_FREES && out <= self.calm
    }
}

/// Slots that must come home before a pool leaves the tight state: leaving it and finding it again costs a
/// visit to every thread each, which this many frees pay for.
const CALM_FREES: usize = if cfg!(sheaves_small) { 8 } else { 256 };

/// Why a node has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The slabs have too few slots: new ones with this many would help, or any if it is 0.
    Slabs {
        /// Slots.
        missing: usize,
    },
    /// As many slots are out as the limit allows.
    Limit,
}
