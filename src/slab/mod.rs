//! Slabs: pages cut into slots, and the bitmaps that say which are free.
//!
//! # A slab in memory
//!
//! ```text
//! slab, 64 KiB << order
//! +----------------------+----------------------+-- ... --+
//! | run 0                | run 1                |         |      a run is one page, or as many as one
//! +----------------------+----------------------+-- ... --+      large object needs
//!
//! run
//! +------------+-------------+-----------+---------------------------+-------+
//! | run header | slab header | free bits | colour | slot | slot | ... | slack |
//! +------------+-------------+-----------+---------------------------+-------+
//! 0            in run 0 only 128
//! ```
//!
//! A free slot is a bit, never a link inside the slot: freed memory is not written to, a stray write of its
//! former owner cannot lead the allocator astray, and filling a sheaf touches no cold object. Bits are taken
//! lowest first, so slots are handed out in address order; a run is set up when the first slot of it is
//! wanted, so what was never used is never resident.
//!
//! # Who may touch what
//!
//! A [`Slot`] is the only currency above this layer: a token that can be moved and not copied. A slot that
//! is out keeps its slab in place. Headers fall in three parts: what never changes once the slab stands,
//! read by anybody who owns a slot; the populated mark, an atomic; and the rest, touched under the lock of
//! the node that owns the [`SlabSet`].

#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod address;
#[cfg(all(any_allocator, not(all(loom, any(test, feature = "loom")))))]
mod block;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod comers;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod fullness;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod header;
mod nature;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod owned;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod set;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
mod watch;

#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use address::{Located, home_of, locate, owner_of, populate_run_of};
#[cfg(all(any_allocator, not(all(loom, any(test, feature = "loom")))))]
pub(crate) use block::Block;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use comers::{Blueprint, Fresh, Surplus};
pub(crate) use nature::{Destructor, Nature};
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use set::{Misfit, OwnerPtr, PutEffect, SlabSet, Taken};
pub(crate) use slot::Slot;
#[cfg(not(all(loom, any(test, feature = "loom"))))]
pub(crate) use watch::site_of;
