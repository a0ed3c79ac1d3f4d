//! Every public operation with each of its allocations failing in turn: nothing leaks, and a failure tells.

use core::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sheaves::{AllocError, AllocErrorKind, DebugFlags, Pool, PoolBox, testing};

/// Pools of all kinds: with sheaves and without, bounded, debugged.
pub(crate) fn pools() -> Vec<Pool<[u64; 8]>> {
    let builder = || Pool::builder("swept").min_partial(0);
    let built = [
        builder(),
        builder().sheaf_capacity(2).barn(1, 1),
        builder().sheaf_capacity(0),
        builder().limit(200),
        builder().sheaf_capacity(3).barn(0, 0).zero_on_free(),
        builder().debug(DebugFlags::POISON | DebugFlags::RED_ZONE),
    ];
    built
        .into_iter()
        .map(|builder| builder.build().expect("possible options"))
        .collect()
}

/// Sweeps an operation over all pools, each from the beginning and with memory at hand.
pub(crate) fn sweep<R>(
    least: u64,
    operation: impl Fn(&Pool<[u64; 8]>) -> Result<R, AllocErrorKind>,
) {
    for pool in pools() {
        for _ in 0..2 {
            let swept = testing::sweep(&pool, || {
                let result = operation(&pool);
                if let Err(kind) = &result {
                    assert_eq!(*kind, AllocErrorKind::Injected);
                }
                result
            });
            let swept = swept.expect("it succeeds without a fault");
            assert!(
                swept.faults >= least,
                "only {} allocations were asked about",
                swept.faults
            );
        }
        assert_eq!(pool.stats().live, 0);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        pool.close().expect("nothing is left");
    }
}

pub(crate) fn kind<T>(error: AllocError<T>) -> AllocErrorKind {
    error.kind()
}

#[test]
fn one_object() {
    sweep(1, |pool| pool.try_alloc([1; 8]).map_err(kind));
    sweep(1, |pool| pool.try_alloc_with(|| [1; 8]).map_err(kind));
    sweep(1, |pool| pool.try_alloc_uninit().map_err(kind));
    sweep(1, |pool| pool.try_alloc_pin([1; 8]).map_err(kind));
}

#[test]
fn what_is_at_hand() {
    sweep(3, |pool| {
        // Keeps its slab, so that something is at hand in a pool without sheaves too.
        let kept = pool.try_alloc([1; 8]).map_err(kind)?;
        drop(pool.try_alloc([2; 8]).map_err(kind)?);
        let now = pool.try_alloc_now([3; 8]).map_err(kind)?;
        Ok([kept, now])
    });
}

#[test]
fn many_objects() {
    sweep(70, |pool| {
        let boxes = (0..70).map(|i| pool.try_alloc([i; 8]).map_err(kind));
        let boxes: Vec<_> = boxes.collect::<Result<_, _>>()?;
        assert!((0..).zip(&boxes).all(|(i, boxed)| **boxed == [i; 8]));
        PoolBox::free_bulk(boxes);
        Ok(())
    });
}

#[test]
fn many_at_once() {
    sweep(1, |pool| {
        let mut boxes: Vec<PoolBox<MaybeUninit<[u64; 8]>>> = Vec::new();
        let result = pool.try_alloc_uninit_bulk(90, &mut boxes);
        assert_eq!(boxes.len(), if result.is_ok() { 90 } else { 0 });
        result.map_err(kind)?;
        Ok(boxes)
    });
}

#[test]
fn prefilled_sheaves() {
    for n in [1, 2, 5, 61] {
        sweep(2, |pool| {
            let mut sheaf = pool.prefill(n).map_err(kind)?;
            let mut boxes: Vec<_> = (0..n)
                .map(|_| sheaf.alloc([1; 8]).expect("promised"))
                .collect();
            let before = sheaf.len();
            match sheaf.refill(n + 1) {
                Ok(()) => assert!(sheaf.len() > n),
                Err(error) => {
                    assert!(
                        sheaf.len() >= before,
                        "a failed refill keeps what there was"
                    );
                    return Err(error.kind());
                }
            }
            boxes.push(sheaf.alloc([2; 8]).expect("promised"));
            boxes.into_iter().for_each(|boxed| drop(sheaf.free(boxed)));
            let rest = pool.try_alloc([3; 8]).map_err(kind)?;
            sheaf.give_back();
            Ok(rest)
        });
    }
}

#[test]
fn clones() {
    let pool = Pool::new("cloned");
    let first = pool.alloc(5_u64);
    let swept = testing::sweep(&pool, || {
        let cloned = catch_unwind(AssertUnwindSafe(|| first.clone()));
        cloned.map_err(drop)
    });
    let swept = swept.expect("it succeeds without a fault");
    assert_eq!((*swept.value, swept.faults), (5, 1));
}

#[cfg(feature = "allocator-api2-02")]
#[test]
fn collections() {
    use allocator_api2::vec::Vec;

    sweep(5, |pool| {
        let injected = |_| AllocErrorKind::Injected;
        let one = allocator_api2::boxed::Box::try_new_in([1_u64; 8], pool).map_err(injected)?;
        let mut vec: Vec<u64, _> = Vec::new_in(pool);
        for i in 0..20_000 {
            vec.try_reserve(1).map_err(|_| AllocErrorKind::Injected)?;
            vec.push(i);
        }
        vec.truncate(3);
        vec.shrink_to_fit();
        assert_eq!((vec[..].to_vec(), *one), (std::vec![0, 1, 2], [1; 8]));
        Ok(())
    });
}

/// Arrays of objects, small layouts and whole pages, in collections that grow, shrink and are copied.
#[cfg(feature = "allocator-api2-02")]
#[test]
fn collections_of_other_layouts() {
    use allocator_api2::vec::Vec;

    sweep(12, |pool| {
        let refused = |_| AllocErrorKind::Injected;
        let mut objects: Vec<[u64; 8], _> = Vec::new_in(pool);
        for i in 0..40 {
            objects.try_reserve(1).map_err(refused)?;
            objects.push([i; 8]);
        }
        let mut map = hashbrown::HashMap::new_in(pool);
        for i in 0..200_u8 {
            map.try_reserve(1)
                .map_err(|_: hashbrown::TryReserveError| AllocErrorKind::Injected)?;
            map.insert(i, [i; 3]);
        }
        let mut bytes: Vec<u8, _> = Vec::new_in(pool);
        for len in [5, 90, 1000, 70_000, 200_000] {
            bytes
                .try_reserve_exact(len - bytes.len())
                .map_err(refused)?;
            bytes.resize(len, 7);
        }
        bytes.truncate(3);
        bytes.shrink_to_fit();
        assert!((0..).zip(&objects).all(|(i, object)| *object == [i; 8]));
        assert!((0..200).all(|i| map[&i] == [i; 3]));
        assert_eq!(bytes[..], [7; 3]);
        Ok(())
    });
}

/// Slabs of the reserve are there already: only objects, arrays of sheaves and what goes beyond are asked about.
#[test]
fn what_is_reserved() {
    let builder = Pool::builder("reserved").reserve(50).sheaf_capacity(4);
    let pool: Pool<u64> = builder.build().expect("possible options");
    let slabs = pool.stats().slabs;
    let swept = testing::sweep(&pool, || {
        let boxes = (0..50).map(|i| pool.try_alloc(i).map_err(kind));
        let boxes: Vec<_> = boxes.collect::<Result<_, _>>()?;
        pool.flush_thread();
        pool.shrink();
        Ok::<_, AllocErrorKind>(boxes)
    });
    let swept = swept.expect("it succeeds without a fault");
    assert!(swept.faults >= 50 && pool.stats().slabs == slabs);
}

#[test]
fn a_leak_is_told() {
    let pool = Pool::builder("leaking")
        .debug(DebugFlags::USER)
        .build()
        .unwrap();
    let mut kept = Vec::new();
    let sweep = AssertUnwindSafe(|| {
        testing::sweep(&pool, || {
            kept.push(pool.try_alloc(1_u64).map_err(kind)?);
            kept.push(pool.try_alloc(2).map_err(kind)?);
            Ok::<_, AllocErrorKind>(())
        })
    });
    let payload = catch_unwind(sweep).unwrap_err();
    let text = payload
        .downcast_ref::<String>()
        .expect("a formatted message");
    assert!(
        text.contains("allocation 2 failing the operation leaked")
            && text.contains("a_leak_is_told"),
        "{text}"
    );
    // The fault is gone with the panic.
    assert!(pool.try_alloc(3).is_ok());
}
