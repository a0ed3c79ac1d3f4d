//! Random takes and puts against a plain model of what is out.

use alloc::collections::BTreeMap;

use super::{Blueprint, Fresh, Misfit, OwnerPtr, PutEffect, SlabSet, Slot, Surplus};
use crate::base::flags::DebugFlags;
use crate::base::layout::{Geometry, PAGE_SIZE};
use crate::hook::shadow;
use crate::page::{Entry, Hint, Source, default_source, page_map};
use crate::sync::{AtomicU32, Ordering};

struct Fixture {
    set: SlabSet,
    blueprint: Blueprint,
    source: Source,
    geometry: Geometry,
    id: u32,
    order: u8,
}

impl Fixture {
    fn new(size: usize, align: usize, order: u8) -> Self {
        let geometry = Geometry::new(size, align);
        let order = order.max(geometry.min_order().expect("small enough"));
        // Far from the ids that pools of other tests in this process get.
        static NEXT_ID: AtomicU32 = AtomicU32::new(1 << 30);
        // Relaxed: a count.
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let owner = OwnerPtr(core::ptr::null());
        let blueprint = Blueprint {
            geometry,
            id,
            owner,
            home: 0,
            stable: false,
            debug: DebugFlags::NONE,
        };
        let set = SlabSet::new(&blueprint);
        Self {
            set,
            blueprint,
            source: Source(default_source()),
            geometry,
            id,
            order,
        }
    }

    fn grow(&mut self) {
        let mut fresh = Fresh::new(&self.source);
        assert!(
            fresh.make(&self.blueprint, self.order, Hint::NONE),
            "memory"
        );
        assert_eq!(self.set.insert(&mut fresh), 1);
    }

    fn shrink(&mut self) -> usize {
        let mut surplus = Surplus::new(&self.source);
        let mut slabs = 0;
        while let Some(slab) = self.set.pop_empty() {
            surplus.push(slab);
            slabs += 1;
        }
        slabs
    }
}

/// A stamp in the first and last byte of a slot.
fn stamp(slot: &Slot, size: usize, byte: u8) {
    shadow::open(slot.as_ptr(), size);
    // SAFETY: the token owns the slot, which is `size` bytes long.
    unsafe { slot.as_ptr().write(byte) };
    // SAFETY: as above.
    let last = unsafe { slot.as_ptr().add(size - 1) };
    // SAFETY: as above.
    unsafe { last.write(byte) };
}

fn check_stamp(slot: &Slot, size: usize, byte: u8) {
    // SAFETY: the token owns the slot, whose first and last bytes `stamp` wrote.
    assert_eq!(unsafe { slot.as_ptr().read() }, byte);
    // SAFETY: as above.
    let last = unsafe { slot.as_ptr().add(size - 1) };
    // SAFETY: as above.
    assert_eq!(unsafe { last.read() }, byte);
    shadow::close(slot.as_ptr(), size);
}

fn random_operations(size: usize, align: usize, order: u8) {
    let mut f = Fixture::new(size, align, order);
    let mut out: BTreeMap<usize, (Slot, u8)> = BTreeMap::new();
    let mut seed = size as u64 * 31 + align as u64;
    let mut next = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for round in 0..600_usize {
        let byte = u8::try_from(round % 251).expect("below 251");
        if next() % 3 > 0 {
            let want = next() % 90;
            let mut got = Vec::new();
            let taken = f.set.take(want, |slot| got.push(slot));
            assert_eq!(taken.count, got.len());
            if taken.count < want {
                assert_eq!(f.set.out(), f.set.slots(), "it gives all there is");
                if f.set.slabs() < 4 {
                    f.grow();
                }
            }
            for slot in got {
                assert_eq!(slot.addr() % align, 0);
                assert_eq!(page_map::get(slot.addr()), Entry::head(f.id));
                let below = out.range(..slot.addr()).next_back();
                assert!(
                    below.is_none_or(|(addr, _)| addr + size <= slot.addr()),
                    "disjoint"
                );
                stamp(&slot, size, byte);
                assert!(out.insert(slot.addr(), (slot, byte)).is_none());
            }
        } else {
            for _ in 0..next() % 90 {
                let Some(&addr) = out.keys().nth(next() % out.len().max(1)) else {
                    break;
                };
                let (slot, byte) = out.remove(&addr).expect("just seen");
                check_stamp(&slot, size, byte);
                assert!(f.set.put(slot).is_ok());
            }
        }
        assert_eq!(f.set.out(), out.len());
    }
    while let Some((_, (slot, _))) = out.pop_first() {
        assert!(f.set.put(slot).is_ok());
    }
    let slabs = f.set.slabs();
    assert_eq!(f.shrink(), slabs);
    assert_eq!((f.set.slots(), f.set.out(), f.set.pages()), (0, 0, 0));
}

#[test]
fn random_operations_on_all_shapes() {
    for (size, align, order) in [
        (1, 1, 0),
        (8, 8, 0),
        (240, 8, 0),
        (240, 64, 3),
        (4096, 8, 2),
        (32_768, 32_768, 1),
        (40_960, 8, 0),
        (100_000, 16, 2),
        (1 << 20, 64, 0),
    ] {
        random_operations(size, align, order);
    }
}

#[test]
fn slots_are_handed_out_in_address_order() {
    let mut f = Fixture::new(240, 8, 1);
    f.grow();
    let mut slots = Vec::new();
    f.set.take(usize::MAX, |slot| slots.push(slot));
    assert_eq!(slots.len(), f.geometry.slots_of(1));
    assert!(slots.is_sorted());
    slots
        .into_iter()
        .for_each(|slot| assert!(f.set.put(slot).is_ok()));
    f.shrink();
}

#[test]
fn the_fullest_slab_is_drawn_on_first() {
    let mut f = Fixture::new(1000, 8, 0);
    (0..3).for_each(|_| f.grow());
    let mut slots = Vec::new();
    f.set.take(usize::MAX, |slot| slots.push(slot));
    let page = |slot: &Slot| slot.addr() / PAGE_SIZE;
    slots.sort_by_key(page);
    let per_slab = f.geometry.slots_of(0);
    // One slab keeps a slot, one keeps half, one all but one.
    let mut kept = slots.split_off(2 * per_slab);
    assert!(f.set.put(kept.pop().expect("a slot")).is_ok());
    let fullest = page(&kept[0]);
    let halves = slots.split_off(per_slab);
    let emptied = slots.split_off(1);
    for slot in halves
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % 2 == 0)
        .map(|(_, slot)| slot)
    {
        assert!(f.set.put(slot).is_ok());
    }
    for slot in emptied {
        assert!(f.set.put(slot).is_ok());
    }
    let mut first = Vec::new();
    f.set.take(1, |slot| first.push(slot));
    assert_eq!(page(&first[0]), fullest);
}

#[test]
fn what_fits_nowhere_is_told_and_changes_nothing() {
    let mut f = Fixture::new(240, 8, 0);
    f.grow();
    let mut slots = Vec::new();
    f.set.take(2, |slot| slots.push(slot));
    let addr = slots[0].as_ptr();
    assert_eq!(f.set.put(slots.remove(0)), Ok(PutEffect::None));
    // SAFETY: not so, which is the point: the slot is free already.
    let double = unsafe { Slot::from_ptr(addr) };
    assert_eq!(f.set.put(double), Err(Misfit::DoubleFree));
    // SAFETY: not so: the address is inside a slot.
    let inside = unsafe { slots[0].as_ptr().add(8) };
    // SAFETY: as above.
    let interior = unsafe { Slot::from_ptr(inside) };
    assert_eq!(f.set.put(interior), Err(Misfit::Interior));
    let mut other = Fixture::new(240, 8, 0);
    other.grow();
    // SAFETY: not so: the slot is another set's.
    let foreign = unsafe { Slot::from_ptr(slots[0].as_ptr()) };
    assert_eq!(other.set.put(foreign), Err(Misfit::Foreign));
    assert_eq!((f.set.out(), other.set.out()), (1, 0));
    assert_eq!(f.set.put(slots.remove(0)), Ok(PutEffect::Emptied));
    assert_eq!((f.shrink(), other.shrink()), (1, 1));
}

#[test]
fn what_was_never_used_is_not_resident() {
    let mut f = Fixture::new(240, 8, 5);
    f.grow();
    let mut slot = None;
    f.set.take(1, |taken| slot = Some(taken));
    // Runs beyond the first are not set up, so the map names them as tails.
    let slot = slot.expect("a slot");
    let second = slot.addr() / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE;
    assert_eq!(page_map::get(second), Entry::tail(f.id));
    assert!(f.set.put(slot).is_ok());
    f.shrink();
}
