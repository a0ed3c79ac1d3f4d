//! What keeps a cache whose handles are gone.
#![forbid(unsafe_code)]

/// Whether a cache has lost its handles while something of it was out.
///
/// Behind the node's lock. Slots and blocks that are out keep their cache in memory by one count that is left to
/// them all; whoever brings the last of them home is told so, once, and takes the count back.
#[derive(Debug, Default)]
pub(crate) struct Tenancy {
    orphaned: bool,
}

impl Tenancy {
    /// The last handle is gone. Whether something is out, to which the count is left.
    pub(crate) fn orphan(&mut self, in_use: bool) -> bool {
        self.orphaned = in_use;
        in_use
    }

    /// Something came home. Whether it was the last thing that kept an orphaned cache; true once.
    pub(crate) fn ends(&mut self, in_use: bool) -> bool {
        let ends = self.orphaned && !in_use;
        self.orphaned &= !ends;
        ends
    }
}
