//! What fails, how, and what does not.

use std::sync::Barrier;

use sheaves::{AllocErrorKind, DebugFlags, Fault, Pool, PoolBox, testing};

const INJECTED: AllocErrorKind = AllocErrorKind::Injected;

#[test]
fn every_form_fails_and_gives_its_value_back() {
    let pool = Pool::builder("forms")
        .fault(Fault::every(1))
        .build()
        .unwrap();
    let error = pool.try_alloc(7).unwrap_err();
    assert_eq!((error.kind(), error.pool()), (INJECTED, "forms"));
    assert_eq!(error.into_value(), 7);
    assert_eq!(pool.try_alloc_with(|| 8).unwrap_err().into_value()(), 8);
    assert_eq!(pool.try_alloc_uninit().unwrap_err().kind(), INJECTED);
    assert_eq!(pool.try_alloc_pin(9).unwrap_err().kind(), INJECTED);
    assert_eq!(pool.try_alloc_now(1).unwrap_err().kind(), INJECTED);
    let mut boxes = Vec::new();
    assert_eq!(
        pool.try_alloc_uninit_bulk(3, &mut boxes)
            .unwrap_err()
            .kind(),
        INJECTED
    );
    assert!(pool.try_alloc_uninit_bulk(0, &mut boxes).is_ok() && boxes.is_empty());
    assert_eq!(pool.prefill(1).unwrap_err().kind(), INJECTED);
    let stats = pool.stats();
    assert_eq!((stats.faults, stats.live, stats.bytes), (7, 0, 0));
    pool.set_fault(None);
    assert_eq!(*pool.alloc(7), 7);
    pool.close().unwrap();
}

#[test]
fn a_fault_reaches_threads_whose_sheaves_are_full() {
    let builder = Pool::builder("warm").sheaf_capacity(60);
    let pool = builder.build().unwrap();
    let (warm, armed) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        let thread = || {
            scope.spawn(|| {
                drop((0..30).map(|i| pool.alloc(i)).collect::<Vec<_>>());
                warm.wait();
                armed.wait();
                assert_eq!(pool.try_alloc(1).unwrap_err().kind(), INJECTED);
                assert_eq!(pool.try_alloc(2).unwrap_err().kind(), INJECTED);
                warm.wait();
                armed.wait();
                assert!(pool.try_alloc(3).is_ok());
            })
        };
        let threads = [thread(), thread()];
        warm.wait();
        let cached = pool.stats().cached;
        assert!(cached >= 60);
        pool.set_fault(Some(Fault::every(1)));
        armed.wait();
        warm.wait();
        pool.set_fault(None);
        armed.wait();
        // A scope by itself does not wait for destructors of thread-locals.
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.faults, stats.live), (4, 0));
}

#[test]
fn objects_can_be_freed_while_allocations_fail() {
    for sheaf_capacity in [0, 4] {
        let builder = Pool::builder("freed").sheaf_capacity(sheaf_capacity);
        let pool = builder.build().unwrap();
        let mut boxes: Vec<_> = (0..100).map(|i| pool.alloc(i)).collect();
        pool.set_fault(Some(Fault::every(1)));
        PoolBox::free_bulk(boxes.split_off(50));
        drop(boxes);
        assert_eq!(pool.stats().live, 0);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        pool.close().unwrap();
    }
}

#[test]
fn a_prefilled_sheaf_keeps_its_promise() {
    for flags in [DebugFlags::NONE, DebugFlags::POISON] {
        let pool = Pool::builder("promised").debug(flags).build().unwrap();
        let mut sheaf = pool.prefill(20).unwrap();
        let n = sheaf.len();
        pool.set_fault(Some(Fault::every(1)));
        let boxes: Vec<_> = (0..n).map(|i| sheaf.alloc(i).unwrap()).collect();
        assert!(boxes.iter().enumerate().all(|(i, boxed)| **boxed == i));
        assert_eq!(sheaf.refill(5).unwrap_err().kind(), INJECTED);
        assert!(sheaf.is_empty());
        for boxed in boxes.into_iter().take(5) {
            assert!(sheaf.free(boxed).is_ok());
        }
        assert!(sheaf.refill(5).is_ok(), "nothing is missing");
        assert_eq!(sheaf.len(), 5);
        drop(sheaf);
        assert_eq!(pool.stats().live, 0);
    }
}

#[test]
fn a_fault_that_has_had_its_times_is_spent() {
    let pool = Pool::new("spent");
    pool.set_fault(Some(Fault::every(1).times(2)));
    let failed = (0..10).filter(|i| pool.try_alloc(*i).is_err()).count();
    assert_eq!((failed, pool.stats().faults), (2, 2));
    pool.set_fault(Some(Fault::probability(0.5, 1)));
    let failed = (0..1000).filter(|i| pool.try_alloc(*i).is_err()).count();
    assert!((400..600).contains(&failed), "{failed}");
}

#[test]
fn plain_forms_panic_with_the_pools_name() {
    let pool = Pool::builder("plainly")
        .fault(Fault::nth(1))
        .build()
        .unwrap();
    let payload = std::panic::catch_unwind(|| drop(pool.alloc(1))).unwrap_err();
    let text = payload
        .downcast_ref::<String>()
        .expect("a formatted message");
    assert!(
        text.contains("plainly") && text.contains("injected"),
        "{text}"
    );
}

#[test]
fn an_exact_sheaf_holds_what_was_asked_for() {
    let pool = Pool::<u64>::new("exact");
    drop((0..200).map(|i| pool.alloc(i)).collect::<Vec<_>>());
    assert!(pool.prefill(2).unwrap().len() > 2);
    testing::exact_prefill(&pool, true);
    for n in [1, 2, 30, 60, 61, 500] {
        let mut sheaf = pool.prefill(n).unwrap();
        assert_eq!(sheaf.len(), n);
        drop(
            (0..n as u64)
                .map(|i| sheaf.alloc(i).unwrap())
                .collect::<Vec<_>>(),
        );
        assert!(sheaf.alloc(0).is_err());
        sheaf.refill(n / 2).unwrap();
        assert_eq!(sheaf.len(), n / 2);
    }
    testing::exact_prefill(&pool, false);
    assert!(pool.prefill(2).unwrap().len() > 2);
}

#[cfg(feature = "allocator-api2-02")]
#[test]
fn blocks_of_the_allocator_traits_fail_too() {
    use allocator_api2::alloc::{Allocator, Layout};

    let pool = Pool::<u64>::new("blocks");
    pool.set_fault(Some(Fault::every(1)));
    assert!(pool.allocate(Layout::new::<u64>()).is_err());
    assert!(pool.allocate(Layout::new::<[u64; 100_000]>()).is_err());
    assert!(pool.allocate(Layout::new::<()>()).is_ok());
    let mut vec = allocator_api2::vec::Vec::new_in(&pool);
    assert!(vec.try_reserve(1000).is_err());
    pool.set_fault(None);
    vec.push(1);
    assert_eq!(vec[..], [1]);
}
