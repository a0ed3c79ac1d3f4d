//! The kernel's kunit cases, and what else may be done wrong.

use std::panic::catch_unwind;

use sheaves::{Align, DebugFlags, Order, Pool, PoolBox, Report, ReportKind};

use crate::support::{clobber, collect, peek, reports_of, the_report_of};

type Object = [u8; 64];

const ALL: [DebugFlags; 4] = [
    DebugFlags::SANITY,
    DebugFlags::RED_ZONE,
    DebugFlags::POISON,
    DebugFlags::USER,
];

fn pool<T>(name: &str) -> Pool<T> {
    collect();
    let flags = ALL
        .into_iter()
        .fold(DebugFlags::NONE, |all, flag| all | flag);
    // Slabs stay when they are empty, so that there is something to write to.
    let builder = Pool::builder(name).min_partial(1000);
    builder
        .debug(flags)
        .build()
        .expect("the options are possible")
}

/// Kind, offset, length, expected, found.
fn damage(report: &Report) -> (ReportKind, isize, usize, u8, Vec<u8>) {
    let damage = report.damage().expect("bytes were overwritten");
    (
        report.kind(),
        damage.offset(),
        damage.len(),
        damage.expected(),
        damage.found().to_vec(),
    )
}

/// Frees an object and keeps its address.
fn freed<T>(boxed: PoolBox<T>) -> *const u8 {
    let address = PoolBox::as_ptr(&boxed).cast();
    drop(boxed);
    address
}

#[test]
fn a_byte_past_an_object_is_told_at_its_free() {
    let pool = pool::<Object>("clobber_zone");
    let object = pool.alloc([1; 64]);
    let address = PoolBox::as_ptr(&object).cast();
    clobber(address, 64, 0xab);
    drop(object);
    let report = the_report_of("clobber_zone");
    assert_eq!(
        damage(&report),
        (ReportKind::RedZone, 64, 1, 0xcc, vec![0xab])
    );
    assert_eq!(report.address(), address.addr());
    assert_eq!(peek(address, 64), 0xcc, "damage is mended");
    assert_eq!(pool.validate(), 0, "one fault is one report");
    let stats = pool.stats();
    assert_eq!((stats.reports, stats.live), (1, 1), "the slot is leaked");
    let others: Vec<_> = (0..2000).map(|_| pool.alloc([2; 64])).collect();
    assert!(
        others.iter().all(|other| other.as_ptr() != address),
        "and not used again"
    );
}

#[test]
fn a_byte_past_an_object_is_told_by_validate_and_mended() {
    let pool = pool::<Object>("validate_zone");
    let object = pool.alloc([1; 64]);
    clobber(object.as_ptr(), 64, 0xab);
    assert_eq!(pool.validate(), 1);
    let report = the_report_of("validate_zone");
    assert_eq!(
        damage(&report),
        (ReportKind::RedZone, 64, 1, 0xcc, vec![0xab])
    );
    assert!(report.to_string().contains("restored") && !report.to_string().contains("leaked"));
    assert_eq!(pool.validate(), 0);
    drop(object);
    assert!(reports_of("validate_zone").is_empty());
    assert_eq!(pool.stats().live, 0);
    pool.close().unwrap();
}

#[test]
fn a_byte_before_an_object_is_told() {
    let pool = pool::<Object>("left_zone");
    let object = pool.alloc([1; 64]);
    clobber(object.as_ptr(), -1, 0);
    drop(object);
    let report = the_report_of("left_zone");
    assert_eq!(
        damage(&report),
        (ReportKind::LeftRedZone, -1, 1, 0xbb, vec![0])
    );
    assert_eq!(pool.validate(), 0);
}

#[test]
fn an_overrun_into_the_next_object_is_one_report() {
    let pool = pool::<Object>("overrun");
    let objects: Vec<_> = (0..3).map(|_| pool.alloc([1; 64])).collect();
    let stride = pool.config().stride();
    let end = isize::try_from(stride).unwrap();
    (64..end).for_each(|at| clobber(objects[0].as_ptr(), at, 0x11));
    drop(objects);
    let report = the_report_of("overrun");
    let (kind, offset, len, expected, found) = damage(&report);
    assert_eq!(
        (kind, offset, len, expected),
        (ReportKind::RedZone, 64, stride - 64, 0xcc)
    );
    assert!(found.iter().all(|byte| *byte == 0x11));
    assert_eq!(pool.validate(), 0);
}

#[test]
fn writes_to_a_free_object_are_told_at_its_first_word_and_in_the_middle() {
    for (name, offset, byte, expected) in [
        ("freed_first", 0, 0x78, 0x6b),
        ("freed_fiftieth", 49, 0x9a, 0x6b),
        ("freed_last", 63, 0, 0xa5),
    ] {
        let pool = pool::<Object>(name);
        let address = freed(pool.alloc([1; 64]));
        clobber(address, offset, byte);
        assert_eq!(pool.validate(), 1, "{name}");
        let report = the_report_of(name);
        assert_eq!(
            damage(&report),
            (ReportKind::UseAfterFree, offset, 1, expected, vec![byte])
        );
        assert_eq!((peek(address, offset), pool.validate()), (expected, 0));
    }
}

#[test]
fn a_free_object_that_was_written_to_is_not_handed_out() {
    let pool = pool::<Object>("freed_reused");
    let address = freed(pool.alloc([1; 64]));
    (8..12).for_each(|at| clobber(address, at, 0xee));
    let next = pool.alloc([2; 64]);
    assert_ne!(next.as_ptr(), address);
    let report = the_report_of("freed_reused");
    assert_eq!(
        damage(&report),
        (ReportKind::UseAfterFree, 8, 4, 0x6b, vec![0xee; 4])
    );
    assert!(report.freed().is_some() && report.allocated().is_some());
    drop(next);
    assert_eq!((pool.stats().live, pool.validate()), (1, 0));
}

#[test]
fn the_guard_of_a_free_object_is_checked() {
    let pool = pool::<Object>("freed_zone");
    let address = freed(pool.alloc([1; 64]));
    clobber(address, 64, 0xab);
    assert_eq!(pool.validate(), 1);
    let report = the_report_of("freed_zone");
    assert_eq!(
        damage(&report),
        (ReportKind::RedZone, 64, 1, 0xbb, vec![0xab])
    );
}

#[test]
fn memory_that_was_never_handed_out_is_checked() {
    let pool = pool::<Object>("never_out");
    let object = pool.alloc([1; 64]);
    let next = isize::try_from(pool.config().stride()).unwrap();
    clobber(object.as_ptr(), next + 5, 0);
    assert_eq!(pool.validate(), 1);
    let report = the_report_of("never_out");
    assert_eq!(
        report.address(),
        object.as_ptr().addr() + pool.config().stride()
    );
    assert_eq!(
        damage(&report),
        (ReportKind::UseAfterFree, 5, 1, 0x6b, vec![0])
    );
}

#[test]
fn padding_is_checked() {
    collect();
    let pool = Pool::<[u8; 40]>::builder("padding")
        .align(Align::new(64))
        .debug(DebugFlags::POISON)
        .build()
        .unwrap();
    let object = pool.alloc([1; 40]);
    clobber(object.as_ptr(), 50, 0);
    assert_eq!(pool.validate(), 1);
    let report = the_report_of("padding");
    assert_eq!(damage(&report), (ReportKind::Padding, 50, 1, 0x5a, vec![0]));
}

#[test]
fn a_double_free_is_told_at_once_and_once() {
    for flags in ALL {
        collect();
        let name = format!("double_{flags}");
        let pool = Pool::builder(&name).debug(flags).build().unwrap();
        let raw = PoolBox::into_raw(pool.alloc([1_u8; 64]));
        // SAFETY: `raw` came from `into_raw`.
        drop(unsafe { PoolBox::from_raw(raw) });
        // SAFETY: none, it is freed already; this is the fault to be told.
        drop(unsafe { PoolBox::from_raw(raw) });
        let report = the_report_of(&name);
        assert_eq!(
            (report.kind(), report.address()),
            (ReportKind::DoubleFree, raw.addr())
        );
        assert_eq!((pool.stats().live, pool.validate()), (0, 0));
        pool.close().unwrap();
    }
}

#[test]
fn a_pointer_into_an_object_is_told() {
    let pool = pool::<Object>("interior");
    let object = pool.alloc([1; 64]);
    let inside = object.as_ptr().wrapping_add(8).cast_mut().cast::<Object>();
    // SAFETY: none, it starts no object; this is the fault to be told.
    let taken = catch_unwind(|| drop(unsafe { PoolBox::from_raw(inside) }));
    assert!(taken.is_err(), "it is no box");
    let report = the_report_of("interior");
    assert_eq!(
        (report.kind(), report.address()),
        (ReportKind::Interior, inside.addr())
    );
    drop(object);
    pool.close().unwrap();
}

#[cfg(feature = "allocator-api2-02")]
#[test]
fn a_block_freed_into_another_pool_is_told_and_stays() {
    use allocator_api2::alloc::{Allocator, Layout};

    let (right, wrong) = (pool::<Object>("right_pool"), pool::<Object>("wrong_pool"));
    let layout = Layout::new::<Object>();
    let slot = right.allocate(layout).unwrap().cast::<u8>();
    // SAFETY: none, the slot is another pool's; this is the fault to be told.
    unsafe { wrong.deallocate(slot, layout) };
    let report = the_report_of("wrong_pool");
    assert_eq!(report.kind(), ReportKind::WrongPool);
    assert_eq!(right.stats().live, 1);
    // SAFETY: allocated from this pool, and not freed.
    unsafe { right.deallocate(slot, layout) };
    assert!(reports_of("right_pool").is_empty());
}

#[test]
fn a_prefilled_sheaf_checks_each_object_and_keeps_its_promise() {
    let pool = Pool::builder("prefilled")
        .debug(DebugFlags::POISON | DebugFlags::RED_ZONE)
        .limit(4)
        .build()
        .unwrap();
    collect();
    let mut sheaf = pool.prefill(4).unwrap();
    assert_eq!(
        (sheaf.len(), sheaf.capacity(), pool.stats().prefilled),
        (4, 4, 4)
    );
    let objects: Vec<_> = (0..4).map(|_| sheaf.alloc([1_u8; 64]).unwrap()).collect();
    assert!(sheaf.alloc([1; 64]).is_err());
    assert_eq!(pool.stats().live, 4);
    let addresses: Vec<_> = objects.iter().map(|object| object.as_ptr()).collect();
    for object in objects {
        assert!(sheaf.free(object).is_ok());
    }
    assert_eq!((sheaf.len(), pool.stats().live), (4, 0));
    // While it is lent a slot is free, and the limit leaves no other.
    clobber(addresses[3], 10, 0);
    let object = sheaf.alloc([2; 64]).unwrap();
    assert_eq!(the_report_of("prefilled").kind(), ReportKind::UseAfterFree);
    drop((object, sheaf));
    assert_eq!((pool.stats().live, pool.validate()), (0, 0));
}

#[test]
fn bulk_operations_are_checked() {
    let pool = pool::<Object>("bulk");
    let mut boxes = Vec::new();
    pool.try_alloc_uninit_bulk(100, &mut boxes).unwrap();
    let objects: Vec<_> = boxes
        .into_iter()
        .map(|uninit| PoolBox::write(uninit, [1; 64]))
        .collect();
    clobber(objects[70].as_ptr(), 65, 0);
    PoolBox::free_bulk(objects);
    assert_eq!(the_report_of("bulk").kind(), ReportKind::RedZone);
    assert_eq!((pool.stats().live, pool.validate()), (1, 0));
}

#[test]
fn guards_that_do_not_fit_are_dropped() {
    let builder = Pool::<[u8; 65_380]>::builder("tight_fit").order(Order::new(0));
    let pool = builder
        .debug(DebugFlags::RED_ZONE | DebugFlags::POISON)
        .build()
        .unwrap();
    assert_eq!(pool.config().debug(), DebugFlags::POISON);
    drop(pool.alloc([0; 65_380]));
    assert_eq!(pool.validate(), 0);
}

#[test]
fn shapes_of_all_sizes_pass_and_tell() {
    fn check<const N: usize>() {
        let name = format!("shape_{N}");
        let pool = pool::<[u8; N]>(&name);
        let objects: Vec<_> = (0..50).map(|_| pool.alloc([0xff; N])).collect();
        assert!(
            objects
                .iter()
                .all(|object| object.iter().all(|byte| *byte == 0xff))
        );
        assert_eq!(pool.validate(), 0, "{N}");
        let last = PoolBox::as_ptr(&objects[49]).cast();
        drop(objects);
        assert_eq!(pool.validate(), 0, "{N}");
        clobber(last, -1, 0);
        clobber(last, isize::try_from(N.max(1)).unwrap(), 0);
        assert_eq!(pool.validate(), 2, "{N}");
        assert_eq!(reports_of(&name).len(), 2);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0, "{N}");
    }
    check::<0>();
    check::<1>();
    check::<7>();
    check::<8>();
    check::<240>();
    check::<4096>();
    check::<65_000>();
    check::<200_000>();
}
