//! Who allocated, who freed.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sheaves::{DebugFlags, Pool, PoolBox};

use crate::support::{clobber, collect, the_report_of};

// What comes after the call keeps the function on the stack: optimised, a last call is a jump.
#[inline(never)]
fn allocated_here(pool: &Pool<[u8; 24]>) -> PoolBox<[u8; 24]> {
    black_box(pool.alloc([0; 24]))
}

#[inline(never)]
fn freed_here(boxed: PoolBox<[u8; 24]>) {
    drop(boxed);
    black_box(());
}

#[test]
fn a_report_names_threads_and_functions() {
    collect();
    let flags = DebugFlags::POISON | DebugFlags::USER;
    let pool = Pool::builder("tracked").debug(flags).build().unwrap();
    let object = std::thread::Builder::new()
        .name("allocator".to_owned())
        .spawn({
            let pool = pool.clone();
            move || allocated_here(&pool)
        })
        .unwrap()
        .join()
        .unwrap();
    let address = PoolBox::as_ptr(&object).cast();
    std::thread::Builder::new()
        .name("liberator".to_owned())
        .spawn(move || freed_here(object))
        .unwrap()
        .join()
        .unwrap();
    clobber(address, 3, 0);
    pool.validate();
    let report = the_report_of("tracked");
    let (allocated, freed) = (report.allocated().unwrap(), report.freed().unwrap());
    assert_eq!(
        (allocated.thread(), freed.thread()),
        ("allocator", "liberator")
    );
    assert!(allocated.age() >= freed.age());
    assert!(allocated.site().contains("allocated_here"), "{allocated}");
    assert!(freed.site().contains("freed_here"), "{freed}");
    let text = report.to_string();
    assert!(
        text.starts_with("sheaves: pool `tracked`: free object overwritten: 0x"),
        "{text}"
    );
    assert!(
        text.contains("bytes 3..4") && text.contains("found 00, expected 6b"),
        "{text}"
    );
    assert!(
        text.contains("\n  allocated ") && text.contains("\n  freed "),
        "{text}"
    );
}

#[test]
fn the_panic_hook_panics_where_the_fault_is_found() {
    let hook = sheaves::report::panic_hook();
    collect();
    let pool = Pool::builder("panicking")
        .debug(DebugFlags::POISON)
        .build()
        .unwrap();
    let object = pool.alloc([0_u8; 24]);
    let address = PoolBox::as_ptr(&object).cast();
    drop(object);
    clobber(address, 0, 0);
    pool.validate();
    let report = the_report_of("panicking");
    let payload = catch_unwind(AssertUnwindSafe(|| hook(&report))).unwrap_err();
    assert_eq!(payload.downcast_ref::<String>(), Some(&report.to_string()));
}
