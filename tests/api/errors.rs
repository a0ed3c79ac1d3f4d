//! Every error, with the value handed back.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sheaves::{Align, AllocErrorKind, BuildError, Builder, Order, Pool};

use crate::support::{Drops, Metered};

/// The error of an impossible configuration, whose text names all of `words`.
#[track_caller]
fn refused<T>(builder: Builder<T>, words: &[&str]) -> BuildError {
    let error = builder
        .build()
        .map(drop)
        .expect_err("the configuration is impossible");
    let text = error.to_string();
    assert!(
        words.iter().all(|word| text.contains(word)),
        "{text}: {words:?}"
    );
    error
}

fn builder() -> Builder<[u64; 30]> {
    Pool::builder("errors")
}

#[test]
fn impossible_options_are_named_with_their_bounds() {
    let order = refused(builder().order(Order::new(10)), &["10", "9"]);
    assert_eq!(order, BuildError::OrderTooLarge { order: 10, max: 9 });
    refused(builder().order(Order::new(255)), &["255", "9"]);
    let small = refused(
        Pool::<[u8; 70_000]>::builder("small").order(Order::new(0)),
        &["0", "70000", "1"],
    );
    assert_eq!(
        small,
        BuildError::OrderTooSmall {
            order: 0,
            min: 1,
            size: 70_000
        }
    );
    let large = refused(Pool::<[u8; 40 << 20]>::builder("large"), &["41943040"]);
    assert!(
        matches!(large, BuildError::ObjectTooLarge { size: 41_943_040, max } if max < 32 << 20)
    );
    let odd = refused(builder().align(Align::new(48)), &["48"]);
    assert_eq!(odd, BuildError::AlignNotPowerOfTwo { align: 48 });
    assert_eq!(
        refused(builder().align(Align::new(0)), &["0"]),
        BuildError::AlignNotPowerOfTwo { align: 0 }
    );
    let align = refused(builder().align(Align::new(65_536)), &["65536", "32768"]);
    assert_eq!(
        align,
        BuildError::AlignTooLarge {
            align: 65_536,
            max: 32_768
        }
    );
}

#[test]
fn impossible_numbers_are_named_with_their_bounds() {
    let sheaf = refused(builder().sheaf_capacity(32_769), &["32769", "32768"]);
    assert_eq!(
        sheaf,
        BuildError::SheafCapacity {
            value: 32_769,
            max: 32_768
        }
    );
    let barn = refused(builder().barn(65, 0), &["65", "64", "full"]);
    assert_eq!(
        barn,
        BuildError::Barn {
            which: "full",
            value: 65,
            max: 64
        }
    );
    let barn = refused(builder().barn(0, 65), &["65", "64", "empty"]);
    assert_eq!(
        barn,
        BuildError::Barn {
            which: "empty",
            value: 65,
            max: 64
        }
    );
    let partial = refused(builder().min_partial(65_537), &["65537", "65536"]);
    assert_eq!(
        partial,
        BuildError::MinPartial {
            value: 65_537,
            max: 65_536
        }
    );
    let limit = refused(builder().limit(0), &["0", "1"]);
    assert_eq!(limit, BuildError::Limit { value: 0, min: 1 });
    let reserve = refused(builder().limit(5).reserve(6), &["6", "5"]);
    assert_eq!(reserve, BuildError::Reserve { value: 6, limit: 5 });
    let source = Metered::new();
    source.set_budget(Some(0));
    let memory = refused(builder().source(source).reserve(1), &["errors", "reserve"]);
    assert!(matches!(memory, BuildError::OutOfMemory { .. }));
}

#[test]
fn a_type_aligned_to_a_page_is_refused() {
    #[repr(align(65536))]
    struct Page;
    let error = refused(Pool::<Page>::builder("page"), &["65536", "32768"]);
    assert_eq!(
        error,
        BuildError::AlignTooLarge {
            align: 65_536,
            max: 32_768
        }
    );
}

#[test]
fn names_are_short_and_of_one_word() {
    let long = "x".repeat(65);
    for bad in [
        "",
        " ",
        "two words",
        "tab\t",
        "line\n",
        "nul\0",
        "wide\u{3000}space",
        &long,
    ] {
        let error = refused(Pool::<u8>::builder(bad), &["64"]);
        assert_eq!(
            error,
            BuildError::Name {
                name: bad.into(),
                max: 64
            }
        );
        let payload = catch_unwind(|| Pool::<u8>::new(bad))
            .map(drop)
            .expect_err("the configuration is impossible");
        assert_eq!(payload.downcast_ref::<String>(), Some(&error.to_string()));
    }
    for good in ["x", "io_kiocb", "größe", &long[1..]] {
        assert_eq!(Pool::<u8>::new(good).name(), good);
    }
}

#[test]
fn bounds_themselves_are_possible() {
    let pool = builder()
        .sheaf_capacity(32_768)
        .barn(64, 64)
        .min_partial(65_536)
        .limit(1)
        .build()
        .unwrap();
    let config = pool.config();
    assert_eq!(
        (config.sheaf_capacity(), config.barn(), config.min_partial()),
        (32_768, (64, 64), 65_536)
    );
    assert_eq!((config.limit(), config.reserve()), (Some(1), 0));
    drop(pool.alloc([1; 30]));
    let pool = builder()
        .align(Align::new(32_768))
        .order(Order::MAX)
        .build()
        .unwrap();
    assert_eq!(
        (
            pool.config().align(),
            pool.config().stride(),
            pool.config().order()
        ),
        (32_768, 32_768, 9)
    );
    assert!(builder().limit(6).reserve(6).build().is_ok());
}

#[test]
fn cache_line_alignment_is_halved_for_small_objects() {
    fn align<T>() -> (usize, usize) {
        let pool = Pool::<T>::builder("line")
            .align(Align::CACHE_LINE)
            .build()
            .unwrap();
        (pool.config().align(), pool.config().stride())
    }
    assert_eq!(align::<[u8; 240]>(), (64, 256));
    assert_eq!(align::<[u8; 33]>(), (64, 64));
    assert_eq!(align::<[u8; 32]>(), (32, 32));
    assert_eq!(align::<[u8; 17]>(), (32, 32));
    assert_eq!(align::<[u8; 8]>(), (8, 8));
    assert_eq!(align::<u64>(), (8, 8));
}

#[test]
fn values_come_back_when_memory_is_out() {
    let drops = Drops::default();
    let source = Metered::new();
    let pool = Pool::builder("out")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    source.set_budget(Some(0));
    let error = pool.try_alloc(drops.object(1)).unwrap_err();
    assert_eq!(
        (error.kind(), error.pool()),
        (AllocErrorKind::OutOfMemory, "out")
    );
    assert!(error.to_string().contains("out") && !format!("{error:?}").is_empty());
    let value = error.into_value();
    assert_eq!((value.id, drops.count()), (1, 0));
    drop(value);
    let id = 2;
    let error = pool.try_alloc_with(|| drops.object(id)).unwrap_err();
    assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
    assert_eq!(error.into_value()().id, 2);
    assert_eq!(drops.count(), 2);
    assert_eq!(
        pool.try_alloc_uninit().unwrap_err().kind(),
        AllocErrorKind::OutOfMemory
    );
    let error = pool.try_alloc_pin(drops.object(3)).unwrap_err();
    assert_eq!(
        (error.kind(), error.into_value().id),
        (AllocErrorKind::OutOfMemory, 3)
    );
    let error = pool.try_alloc_now(drops.object(4)).unwrap_err();
    assert_eq!(
        (error.kind(), error.into_value().id),
        (AllocErrorKind::WouldBlock, 4)
    );
    assert_eq!(
        pool.prefill(1).unwrap_err().kind(),
        AllocErrorKind::OutOfMemory
    );
    assert_eq!((drops.count(), pool.stats().bytes), (4, 0));
    source.set_budget(None);
    drop(pool.try_alloc(drops.object(5)).unwrap());
    pool.close().unwrap();
}

#[test]
fn now_never_calls_the_source_and_finds_what_is_at_hand() {
    let source = Metered::new();
    let builder = Pool::<u64>::builder("now")
        .source(Arc::clone(&source))
        .sheaf_capacity(4);
    let pool = builder.build().unwrap();
    assert_eq!(
        pool.try_alloc_now(1).unwrap_err().kind(),
        AllocErrorKind::WouldBlock
    );
    let boxes: Vec<_> = (0..100).map(|i| pool.alloc(i)).collect();
    let calls = source.allocs.load(crate::support::SEQ);
    drop(boxes);
    let slots = pool.stats().slots;
    let taken: Vec<_> = core::iter::from_fn(|| pool.try_alloc_now(1).ok()).collect();
    assert!(
        taken.len() >= 100,
        "only {} of {slots} were found",
        taken.len()
    );
    assert_eq!(source.allocs.load(crate::support::SEQ), calls);
    let stats = pool.stats();
    assert_eq!((stats.free, stats.cached), (0, 0), "{stats:?}");
}

#[test]
fn a_refused_order_falls_back_to_the_smallest_and_is_counted() {
    for (order, slots) in [(Order::LARGE, 272), (Order::MAX, 272), (Order::new(1), 272)] {
        let source = Metered::new();
        source.refuse_above(65_536);
        let pool = builder()
            .source(Arc::clone(&source))
            .order(order)
            .build()
            .unwrap();
        let boxes: Vec<_> = (0..1000).map(|i| pool.alloc([i; 30])).collect();
        let stats = pool.stats();
        assert_eq!(
            (stats.order_fallback, stats.alloc_slab),
            (stats.slabs, stats.slabs)
        );
        assert_eq!(
            (stats.slots, stats.bytes),
            (stats.slabs * slots, stats.slabs * 65_536)
        );
        assert!(boxes.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
        // Slabs of both orders live side by side.
        source.refuse_above(usize::MAX);
        let more: Vec<_> = (0..3000).map(|i| pool.alloc([i; 30])).collect();
        assert!(more.iter().zip(0..).all(|(boxed, i)| **boxed == [i; 30]));
        assert_eq!(pool.stats().order_fallback, stats.order_fallback);
        assert_eq!(pool.stats().bytes, source.bytes());
        drop((boxes, more));
        pool.close().unwrap();
        assert_eq!(source.blocks(), 0);
    }
    // There is nothing smaller to fall back to.
    let source = Metered::new();
    source.refuse_above(65_536);
    let pool = Pool::<[u8; 100_000]>::builder("whole")
        .source(source)
        .build()
        .unwrap();
    assert_eq!(
        pool.try_alloc_uninit().unwrap_err().kind(),
        AllocErrorKind::OutOfMemory
    );
}

#[test]
fn plain_forms_panic_at_a_limit_with_the_pools_name() {
    let pool = Pool::builder("one_only").limit(1).build().unwrap();
    let kept = pool.alloc(5_u64);
    let forms: [&dyn Fn(); 5] = [
        &|| drop(pool.alloc(1)),
        &|| drop(pool.alloc_with(|| 1)),
        &|| drop(pool.alloc_uninit()),
        &|| drop(pool.alloc_pin(1)),
        &|| drop(kept.clone()),
    ];
    for form in forms {
        let payload = catch_unwind(AssertUnwindSafe(form)).unwrap_err();
        let text = payload
            .downcast_ref::<String>()
            .expect("a formatted message");
        assert!(
            text.contains("one_only") && text.contains("limit"),
            "{text}"
        );
    }
    assert_eq!(pool.stats().live, 1);
}
