//! The model's slabs: which slots are free, which slot is handed out next, which slabs are kept.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

/// One slot: which slab, counted from the first the pool ever made, and which slot in it, in address order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) slab: usize,
    pub(crate) index: usize,
}

/// How pages are cut into slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The order asked for.
    pub(crate) order: u8,
    /// The smallest order that holds one object.
    pub(crate) min_order: u8,
    /// Pages of a run, which is what has a header of its own.
    pub(crate) run_pages: usize,
    /// Slots of a run.
    pub(crate) run_slots: usize,
}

#[derive(Debug)]
struct Slab {
    serial: usize,
    pages: usize,
    slots: usize,
    /// Slots from this one on were never handed out.
    untouched: usize,
    /// Free slots below that.
    returned: BTreeSet<usize>,
    /// When the slab came to its present degree of fullness.
    since: u64,
}

impl Slab {
    fn free(&self) -> usize {
        self.slots - self.untouched + self.returned.len()
    }

    /// Empty slabs have 0, others an eighth of fullness from 1 on; full ones 9.
    fn degree(&self) -> usize {
        match self.slots - self.free() {
            0 => 0,
            out => 1 + out * 8 / self.slots,
        }
    }
}

/// All slabs of the pool.
#[derive(Debug)]
pub(crate) struct Slabs {
    list: Vec<Slab>,
    shape: Shape,
    min_partial: usize,
    reserve: usize,
    /// No handle is left: no empty slab is kept.
    pub(crate) retired: bool,
    /// Slabs ever made.
    made: usize,
    clock: u64,
    /// Pages that the source gives at most.
    pub(crate) bound: Option<usize>,
}

impl Slabs {
    pub(crate) fn new(shape: Shape, min_partial: usize, reserve: usize) -> Self {
        let mut slabs = Self {
            list: Vec::new(),
            shape,
            min_partial,
            reserve,
            retired: false,
            made: 0,
            clock: 0,
            bound: None,
        };
        if reserve > 0 {
            assert!(slabs.grow(reserve), "nothing bounds the source yet");
        }
        slabs
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn slots(&self) -> usize {
        self.list.iter().map(|slab| slab.slots).sum()
    }

    pub(crate) fn free(&self) -> usize {
        self.list.iter().map(Slab::free).sum()
    }

    pub(crate) fn out(&self) -> usize {
        self.slots() - self.free()
    }

    pub(crate) fn pages(&self) -> usize {
        self.list.iter().map(|slab| slab.pages).sum()
    }

    /// New slabs for this many slots, one at least; `false` if the source does not give as many. Each has the
    /// smallest order if it cannot have the one asked for. The first is handed out from first.
    pub(crate) fn grow(&mut self, slots: usize) -> bool {
        let mut new = Vec::new();
        let mut made = 0;
        while made < slots.max(1) {
            let Some(slab) = self.make(new.iter().map(|slab: &Slab| slab.pages).sum()) else {
                break;
            };
            made += slab.slots;
            new.push(slab);
        }
        for mut slab in new.into_iter().rev() {
            self.clock += 1;
            slab.since = self.clock;
            self.list.push(slab);
        }
        made >= slots.max(1)
    }

    /// One new slab, when there are `others` pages of new slabs already.
    fn make(&mut self, others: usize) -> Option<Slab> {
        let held = self.pages() + others;
        let room = self
            .bound
            .map_or(usize::MAX, |bound| bound.saturating_sub(held));
        let orders = [self.shape.order, self.shape.min_order];
        let order = orders.into_iter().find(|order| 1 << order <= room)?;
        let pages = 1 << order;
        let serial = self.made;
        self.made += 1;
        Some(Slab {
            serial,
            pages,
            slots: pages / self.shape.run_pages * self.shape.run_slots,
            untouched: 0,
            returned: BTreeSet::new(),
            since: 0,
        })
    }

    /// The lowest free slot of the fullest slab; among slabs of one degree of the one that came to it last.
    pub(crate) fn take(&mut self) -> Place {
        let partial = self.list.iter_mut().filter(|slab| slab.free() > 0);
        let slab = partial
            .max_by_key(|slab| (slab.degree(), slab.since))
            .expect("the caller has seen a free slot");
        let degree = slab.degree();
        let index = slab.returned.pop_first().unwrap_or_else(|| {
            slab.untouched += 1;
            slab.untouched - 1
        });
        if slab.degree() != degree {
            self.clock += 1;
            slab.since = self.clock;
        }
        Place {
            slab: slab.serial,
            index,
        }
    }

    /// Takes a slot back. A slab that is empty then leaves if there are more partial ones than are kept.
    pub(crate) fn put(&mut self, place: Place) {
        let slab = self.list.iter_mut().find(|slab| slab.serial == place.slab);
        let slab = slab.expect("a slab stands while a slot of it is out");
        let degree = slab.degree();
        assert!(slab.returned.insert(place.index), "{place:?} is free");
        if slab.degree() != degree {
            self.clock += 1;
            slab.since = self.clock;
        }
        let emptied = slab.free() == slab.slots;
        let partial = self.list.iter().filter(|slab| slab.free() > 0).count();
        if emptied && (self.retired || partial > self.min_partial) {
            self.remove_empty();
        }
    }

    /// Gives up all empty slabs but the reserve.
    pub(crate) fn shrink(&mut self) {
        while self.remove_empty() {}
    }

    /// Gives up the slab that became empty last, if the reserve allows it.
    fn remove_empty(&mut self) -> bool {
        let empty = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, slab)| slab.degree() == 0);
        let Some((at, slab)) = empty.max_by_key(|(_, slab)| slab.since) else {
            return false;
        };
        if !self.retired && self.slots() - slab.slots < self.reserve {
            return false;
        }
        self.list.remove(at);
        true
    }
}
