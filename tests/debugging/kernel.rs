//! Cases of the kernel's slub_kunit that stand nowhere else: sizes that were asked for, and deferred free.

use sheaves::{Align, DebugFlags, Pool, ReportKind};

use crate::support::{clobber, collect, the_report_of};

fn debugged(name: &str) -> sheaves::Builder<[u8; 18]> {
    collect();
    let flags: DebugFlags = "FZPU".parse().expect("letters that are known");
    Pool::builder(name).debug(flags)
}

/// 18 bytes in a slot that is aligned to 32: the guard begins where the object ends.
#[test]
fn a_byte_past_the_size_that_was_asked_for() {
    let pool = debugged("eighteen").align(Align::new(32)).build().unwrap();
    let object = pool.alloc([1; 18]);
    clobber(object.as_ptr(), 18, 0xab);
    drop(object);
    let report = the_report_of("eighteen");
    let damage = report.damage().expect("bytes were overwritten");
    assert_eq!(report.kind(), ReportKind::RedZone);
    assert_eq!((damage.offset(), damage.len()), (18, 1));
    assert_eq!((damage.expected(), damage.found()), (0xcc, &[0xab][..]));
    assert_eq!(pool.validate(), 0);
}

#[cfg(feature = "rcu")]
#[test]
fn what_is_retired_is_no_leak_at_a_close() {
    let pool = debugged("retired").build().unwrap();
    sheaves::PoolBox::retire(pool.alloc([1; 18]));
    pool.close().expect("it waits for what is retired");
    assert!(crate::support::reports_of("retired").is_empty());
}

#[cfg(feature = "rcu")]
#[test]
fn pools_of_retired_objects_end_on_another_thread() {
    for turn in 0..10 {
        let pool = debugged("retired_elsewhere").build().unwrap();
        sheaves::PoolBox::retire(pool.alloc([1; 18]));
        let closer = std::thread::spawn(move || {
            // Now sooner, now later.
            (0..turn * 20).for_each(|_| std::thread::yield_now());
            pool.close().is_ok()
        });
        assert!(closer.join().unwrap(), "it waits for what is retired");
    }
    assert!(crate::support::reports_of("retired_elsewhere").is_empty());
}
