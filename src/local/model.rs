//! Models of a local: every interleaving of its owner with those who drain it, within a bound.
//!
//! The scenes run the local itself, in fence mode, which is the one loom can follow. loom watches each place
//! of the arrays (`watch`) and the content of each slot, so an access that nothing orders is a race even if it
//! did no harm. At the end of a scene every token is counted.
//!
//! `scenes` sets an owner on a thread of its own against one who drains. `twins` has a gate of its own in which
//! one rule at a time is broken, to show that the scenes would tell. `handler` interrupts the owner in the middle
//! of an operation.

mod handler;
mod scenes;
mod twins;
mod watch;

use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use super::{Drain, Held, Local};
use crate::sheaf::Sheaf;
use crate::slab::Slot;
use crate::sync::BarrierMode;

/// Searches `scene`; more than three forced switches take too long for every change.
fn search(scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        watch::restart();
        scene();
    });
}

/// The thread that owns a local.
struct Owner(Arc<Local>);

impl Owner {
    /// An owner whose `main` and `spare` hold slots with these contents.
    fn new(main: Sheaf, spare: Option<Sheaf>) -> Self {
        let owner = Self(Arc::new(Local::new(1, BarrierMode::Fence, true)));
        let mut held = owner.hold();
        assert!(held.replace_main(main).is_none());
        *held.spare() = spare;
        drop(held);
        owner
    }

    fn local(&self) -> Arc<Local> {
        Arc::clone(&self.0)
    }

    fn fast_pop(&self) -> Option<Slot> {
        // SAFETY: a local has one `Owner`, which is on one thread at a time.
        unsafe { self.0.pop_fenced() }
    }

    fn fast_push(&self, slot: Slot) -> Result<(), Slot> {
        // SAFETY: as above.
        unsafe { self.0.push_fenced(slot) }
    }

    fn hold(&self) -> Held<'_> {
        // SAFETY: as above.
        unsafe { self.0.hold() }.expect("the owner is outside the gate")
    }

    fn try_hold(&self) -> Option<Held<'_>> {
        // SAFETY: as above.
        unsafe { self.0.try_hold() }
    }

    /// Takes a slot as the cache does, but for the barn.
    fn pop(&self) -> Option<Slot> {
        let slot = self.fast_pop().or_else(|| {
            let mut held = self.hold();
            held.pop().or_else(|| {
                // Who takes what the spare of a dead local holds would be too late anyway.
                held.swap();
                held.pop()
            })
        })?;
        slot.content();
        Some(slot)
    }

    /// Puts a slot as the cache does, but for the barn.
    fn push(&self, slot: Slot) -> Result<(), Slot> {
        slot.content();
        self.fast_push(slot).or_else(|slot| {
            let mut held = self.hold();
            held.push(slot).or_else(|slot| {
                held.swap();
                held.push(slot)
            })
        })
    }

    /// The gate lets the owner in, given that there is room for one slot.
    fn assert_open(&self) {
        assert!(
            self.fast_push(Slot::of_model(0)).is_ok(),
            "the gate stayed shut for a free"
        );
        let slot = self
            .fast_pop()
            .expect("the gate stayed shut for an allocation");
        assert_eq!(slot.end(), 0);
    }

    fn assert_dead(&self) {
        assert!(self.fast_pop().is_none(), "a dead local gave a slot");
        let slot = self
            .fast_push(Slot::of_model(0))
            .expect_err("a dead local took a slot");
        assert!(self.0.is_dead());
        let mut held = self.hold();
        assert!(held.is_closed());
        assert_eq!(held.len(), 0);
        assert!(held.pop().is_none(), "a dead local gave a slot");
        let slot = held.push(slot).expect_err("a dead local took a slot");
        assert!(!held.swap() && held.take_main().is_none());
        drop(held);
        assert_eq!(slot.end(), 0);
        assert_eq!(self.0.cached(), 0);
    }

    /// Empties the local; what came out, and what others hold, must be the slots `1..=count`.
    fn account(self, mut found: Vec<Slot>, count: usize) {
        assert!(self.0.cached() <= count);
        for sheaf in self.hold().kill().into_iter().flatten() {
            unload(sheaf, &mut found);
        }
        let mut contents: Vec<usize> = found.into_iter().map(Slot::end).collect();
        contents.sort_unstable();
        assert!(
            contents.into_iter().eq(1..=count),
            "a slot was lost or doubled"
        );
        self.assert_dead();
    }
}

/// A sheaf with room for `capacity` slots that holds those with these contents.
fn sheaf(capacity: usize, contents: core::ops::RangeInclusive<usize>) -> Sheaf {
    let mut sheaf = Sheaf::try_new(capacity).expect("memory");
    for content in contents {
        assert!(sheaf.push(Slot::of_model(content)).is_ok());
    }
    sheaf
}

#[expect(
    clippy::reversed_empty_ranges,
    reason = "the contents of an empty sheaf"
)]
fn empty(capacity: usize) -> Sheaf {
    sheaf(capacity, 1..=0)
}

/// Moves the slots of a sheaf to `found`. The array stays: loom would take its next owner's use for a race.
fn unload(mut sheaf: Sheaf, found: &mut Vec<Slot>) {
    found.extend(sheaf.drain());
    watch::keep(sheaf);
}

/// What a drainer does; the slots it took.
fn drain(locals: &[Arc<Local>]) -> Vec<Slot> {
    let mut found = Vec::new();
    let drain = Drain::begin(locals, None).expect("none of them is the drainer's");
    drain.drain(|slots| found.extend(slots.inspect(|slot| _ = slot.content())));
    found
}

/// What a search at the limit does when it finds nothing; the slots it took.
fn tighten(locals: &[Arc<Local>]) -> Vec<Slot> {
    let mut found = Vec::new();
    let drain = Drain::begin(locals, None).expect("none of them is the drainer's");
    drain.tighten(|slots| found.extend(slots.inspect(|slot| _ = slot.content())));
    found
}

/// What the close of a cache does; the slots it took.
fn kill(locals: &[Arc<Local>]) -> Vec<Slot> {
    let mut found = Vec::new();
    let drain = Drain::begin(locals, None).expect("none of them is the drainer's");
    drain.kill(|sheaf| unload(sheaf, &mut found));
    found
}

/// Runs the owner's part on a thread of its own.
fn spawn(owner: Owner, part: fn(&Owner, &mut Vec<Slot>)) -> JoinHandle<(Owner, Vec<Slot>)> {
    thread::spawn(move || {
        let mut found = Vec::new();
        part(&owner, &mut found);
        (owner, found)
    })
}
