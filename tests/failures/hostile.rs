//! Promise 9: pointers that are not what they say they are.

use core::ptr;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use sheaves::{Heap, Order, Pool, PoolBox, ReportKind, set_report_hook};

use crate::machine::on_one_node;
use crate::support::{isolated, panics};

static TOLD: Mutex<Vec<(ReportKind, Option<String>, usize)>> = Mutex::new(Vec::new());

pub(crate) fn listen() {
    set_report_hook(Box::new(|report| {
        let pool = report.pool().map(str::to_owned);
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        told.push((report.kind(), pool, report.address()));
    }));
}

/// What was told since it was last asked.
pub(crate) fn told() -> Vec<(ReportKind, Option<String>, usize)> {
    core::mem::take(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes a pointer back that is none of a box of `T`; it must be told and not believed.
#[track_caller]
pub(crate) fn refused<T>(pointer: *mut T, kind: ReportKind, pool: Option<&str>) {
    // SAFETY: none: this is what must be told.
    let panicked = panics(|| drop(unsafe { PoolBox::from_raw(pointer) }));
    assert!(panicked, "{pointer:p} was believed");
    assert_eq!(told(), [(kind, pool.map(str::to_owned), pointer.addr())]);
}

static IN_A_STATIC: [u64; 30] = [5; 30];

/// Promise 9: pointers of no pool, wherever they point.
#[test]
fn pointers_of_no_pool() {
    isolated("hostile::pointers_of_no_pool", || {
        listen();
        let pool: Pool<[u64; 30]> = Pool::builder("own").source(Heap).build().unwrap();
        let kept = pool.alloc([1; 30]);
        let mut on_the_stack = [2; 30];
        let mut on_the_heap = Box::new([3; 30]);
        let function: fn() = pointers_of_no_pool;
        let page = PoolBox::as_ptr(&kept).map_addr(|address| address & !0xffff);
        for pointer in [
            &raw mut on_the_stack,
            &raw mut *on_the_heap,
            (&raw const IN_A_STATIC).cast_mut(),
            ptr::without_provenance_mut(function as usize),
            ptr::null_mut(),
            ptr::without_provenance_mut(8),
            ptr::without_provenance_mut(usize::MAX & !7),
            ptr::without_provenance_mut(1 << 47),
            ptr::without_provenance_mut((1 << 47) - 8),
            ptr::without_provenance_mut(1 << 63),
            page.wrapping_byte_sub(8).cast_mut(),
        ] {
            refused(pointer, ReportKind::NoPool, None);
        }
        drop(kept);
        assert_eq!(pool.stats().reports, 0, "it was no pool's business");
    });
}

/// Promise 9: pointers into a pool's memory at which no object starts.
#[test]
fn pointers_into_objects_and_headers() {
    isolated("hostile::pointers_into_objects_and_headers", || {
        listen();
        let pool: Pool<[u64; 30]> = Pool::builder("own").source(Heap).build().unwrap();
        let kept = pool.alloc([1; 30]);
        let start = PoolBox::as_ptr(&kept).cast_mut();
        let page = start.map_addr(|address| address & !0xffff);
        for offset in (1..240).chain([241, 300]) {
            refused(
                start.wrapping_byte_add(offset),
                ReportKind::Interior,
                Some("own"),
            );
        }
        for offset in [0, 8, 64, 127, 128, 65_535] {
            refused(
                page.wrapping_byte_add(offset),
                ReportKind::Interior,
                Some("own"),
            );
        }
        assert_eq!(*kept, [1; 30]);
        drop(kept);
        assert_eq!(pool.stats().live, 0);
    });
}

/// Promise 9: pages where an object of several pages goes on are no objects.
#[test]
fn pointers_into_large_objects() {
    isolated("hostile::pointers_into_large_objects", || {
        listen();
        let pool: Pool<[u8; 150_000]> = Pool::builder("large").source(Heap).build().unwrap();
        let mut kept = pool.alloc_uninit();
        let start = kept.as_mut_ptr();
        refused(
            start.wrapping_byte_add(1),
            ReportKind::Interior,
            Some("large"),
        );
        refused(start.wrapping_byte_add(70_000), ReportKind::NoPool, None);
        refused(start.wrapping_byte_add(140_000), ReportKind::NoPool, None);
        drop(kept);
    });
}

/// Promise 9: a pointer to an object of another pool, of another type.
#[test]
fn pointers_of_other_pools() {
    isolated("hostile::pointers_of_other_pools", || {
        listen();
        let small: Pool<u64> = Pool::builder("small").source(Heap).build().unwrap();
        let large: Pool<[u64; 30]> = Pool::builder("large").source(Heap).build().unwrap();
        let (one, other) = (small.alloc(1), large.alloc([2; 30]));
        let as_large = PoolBox::as_ptr(&one).cast_mut().cast::<[u64; 30]>();
        refused(as_large, ReportKind::WrongPool, Some("small"));
        let as_small = PoolBox::as_ptr(&other).cast_mut().cast::<u64>();
        refused(as_small, ReportKind::WrongPool, Some("large"));
        assert_eq!((*one, *other), (1, [2; 30]));
        // A box of another pool does not go into a sheaf: safe code may try.
        let twin: Pool<u64> = Pool::new("twin");
        let mut sheaf = twin.prefill(1).unwrap();
        let slot = sheaf.alloc(0).unwrap();
        let one = sheaf.free(one).unwrap_err();
        drop((slot, one, other));
        assert_eq!((small.stats().live, large.stats().live), (0, 0));
        assert_eq!(told(), []);
    });
}

/// Promise 9: an object that was freed, and its slab with it.
#[test]
fn pointers_of_slabs_that_are_gone() {
    isolated("hostile::pointers_of_slabs_that_are_gone", || {
        listen();
        let pool: Pool<[u64; 30]> = Pool::builder("brief").source(Heap).build().unwrap();
        let raw = PoolBox::into_raw(pool.alloc([1; 30]));
        // SAFETY: it came from `into_raw` just now.
        drop(unsafe { PoolBox::from_raw(raw) });
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        refused(raw, ReportKind::NoPool, None);
    });
}

/// Promise 9: an object freed twice is told when it reaches its slab, and its slot is handed out once.
#[test]
fn an_object_freed_twice_is_told_at_its_slab() {
    isolated("hostile::an_object_freed_twice_is_told_at_its_slab", || {
        listen();
        for capacity in [0, 60] {
            let builder = Pool::builder("twice").sheaf_capacity(capacity);
            let pool: Pool<[u64; 30]> = builder.source(Heap).build().unwrap();
            let kept = pool.alloc([0; 30]);
            let raw = PoolBox::into_raw(pool.alloc([1; 30]));
            for _ in 0..2 {
                // SAFETY: none for the second time: this is the misuse.
                drop(unsafe { PoolBox::from_raw(raw) });
            }
            pool.shrink();
            let own = Some("twice".to_owned());
            assert_eq!(told(), [(ReportKind::DoubleFree, own, raw.addr())]);
            let boxes: Vec<_> = (0..500).map(|i| pool.alloc([i; 30])).collect();
            let addresses: HashSet<_> = boxes.iter().map(PoolBox::as_ptr).collect();
            assert_eq!(addresses.len(), 500, "a slot was handed out twice");
            drop((boxes, kept));
            pool.shrink();
            assert_eq!(pool.stats().live, 0);
        }
    });
}

/// `owns` by the book: every byte of every page around the slabs, and addresses from the whole address space.
#[test]
fn owns_is_exact() {
    let builder = Pool::<[u64; 30]>::builder("exact").source(Heap);
    let pool = on_one_node(builder.order(Order::new(1)).sheaf_capacity(0));
    let other: Pool<[u64; 30]> = Pool::new("other");
    // All slots of two slabs.
    let boxes: Vec<_> = (0..2 * pool.config().slots_per_slab())
        .map(|_| pool.alloc([0; 30]))
        .collect();
    let foreign = other.alloc([0; 30]);
    let starts: HashSet<usize> = boxes
        .iter()
        .map(|boxed| PoolBox::as_ptr(boxed).addr())
        .collect();
    assert_eq!(pool.stats().slabs, 2);
    let pages: HashSet<usize> = starts.iter().map(|start| start >> 16).collect();
    let step = if cfg!(debug_assertions) { 8 } else { 1 };
    let check = |address: usize| {
        let owned = pool.owns(ptr::without_provenance(address));
        assert_eq!(owned, starts.contains(&address), "{address:#x}");
    };
    for page in pages.iter().flat_map(|page| [page - 1, *page, page + 1]) {
        ((page << 16)..((page + 1) << 16))
            .step_by(step)
            .for_each(check);
    }
    // Every power of two, and its neighbours; the whole space in steps that are no multiple of a page.
    for bit in 0..usize::BITS {
        let power = 1_usize << bit;
        [
            power - 1,
            power,
            power.wrapping_add(1),
            power.wrapping_neg(),
        ]
        .into_iter()
        .for_each(check);
    }
    let stride = usize::MAX / 100_003;
    (0..100_003)
        .map(|i: usize| i.wrapping_mul(stride))
        .for_each(check);
    assert!(!pool.owns(PoolBox::as_ptr(&foreign)) && other.owns(PoolBox::as_ptr(&foreign)));
    // A slot that is free is the pool's as well; one whose slab went back is not.
    drop(boxes);
    starts.iter().copied().for_each(check);
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
    assert!(
        !starts
            .iter()
            .any(|&start| pool.owns(ptr::without_provenance(start)))
    );
}
