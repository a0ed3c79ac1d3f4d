//! What comes of putting slots back, for whoever lets the node's lock go.
#![forbid(unsafe_code)]

use crate::slab::{Misfit, Surplus};

/// What came of putting slots back.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Slabs to give back, outside all locks.
    pub(crate) surplus: Option<Surplus>,
    /// Slots that fitted nowhere, with their addresses; they are leaked. Without memory for the list some are left
    /// out: then nobody is told of them.
    pub(crate) misfits: Vec<(Misfit, usize)>,
    /// This was the last slot of an orphaned cache: the caller ends it.
    pub(crate) last: bool,
    /// A tight pool may park slots again.
    pub(crate) calm: bool,
}

impl Drained {
    /// Notes a slot that fitted nowhere. Grows under the node's lock, but only where something was misused before.
    pub(super) fn note(&mut self, misfit: Misfit, addr: usize) {
        if self.misfits.try_reserve(1).is_ok() {
            self.misfits.push((misfit, addr));
        }
    }
}
