//! The pool is built as the attributes say.

use std::sync::Barrier;
use std::thread;

use sheaves::{DebugFlags, Pool, PoolBox, Pooled};

#[derive(Pooled, Debug, PartialEq)]
#[pool(name = "io_kiocb", order = large, sheaf_capacity = 256)]
struct Kiocb {
    fd: i32,
    user_data: u64,
}

#[test]
fn an_object_goes_into_its_types_pool() {
    let request: PoolBox<Kiocb> = Kiocb {
        fd: 3,
        user_data: 7,
    }
    .pooled();
    assert_eq!(
        *request,
        Kiocb {
            fd: 3,
            user_data: 7
        }
    );
    assert_eq!(PoolBox::pool_name(&request), "io_kiocb");
    assert!(Kiocb::pool().owns(&raw const *request));
}

#[test]
fn prefill_is_of_the_same_pool() {
    #[derive(Pooled)]
    struct Prefilled(u8);

    let mut sheaf = Prefilled::prefill(3).expect("memory");
    assert!(sheaf.len() >= 3);
    let boxed = sheaf.alloc(Prefilled(9)).expect("not empty");
    assert_eq!(boxed.0, 9);
    assert!(Prefilled::pool().owns(&raw const *boxed));
}

#[test]
fn every_key_reaches_the_builder() {
    #[derive(Pooled)]
    #[pool(name = "every-key", order = 3, align = 128, sheaf_capacity = 17, barn = (3, 4))]
    #[pool(
        min_partial = 7,
        limit = 1000,
        reserve = 10,
        zero_on_free,
        strict_layout
    )]
    #[pool(crate = ::sheaves)]
    struct EveryKey([u8; 100]);

    let pool = EveryKey::pool();
    let config = pool.config();
    assert_eq!((pool.name(), config.name()), ("every-key", "every-key"));
    assert_eq!(
        (config.order(), config.align(), config.stride()),
        (3, 128, 128)
    );
    assert_eq!(
        (config.sheaf_capacity(), config.barn(), config.min_partial()),
        (17, (3, 4), 7)
    );
    assert_eq!((config.limit(), config.reserve()), (Some(1000), 10));
    assert!(config.zero_on_free() && config.strict_layout());
    assert!(config.debug().is_empty());
    assert_eq!(EveryKey([1; 100]).pooled().0, [1; 100]);
}

#[test]
fn a_limit_holds() {
    #[derive(Pooled, Debug)]
    #[pool(limit = 2)]
    struct Limited(u8);

    let two = (Limited(0).pooled(), Limited(1).pooled());
    let refused = Limited::pool()
        .try_alloc(Limited(2))
        .expect_err("the limit is 2");
    assert_eq!(refused.into_value().0, 2);
    drop(two);
    assert_eq!(Limited(3).pooled().0, 3);
}

#[test]
fn debug_letters_become_flags() {
    #[derive(Pooled)]
    #[pool(debug = "PF")]
    struct Debugged;

    #[derive(Pooled)]
    #[pool(debug = "")]
    struct NoLetters;

    assert_eq!(
        Debugged::pool().config().debug(),
        DebugFlags::SANITY | DebugFlags::POISON
    );
    assert_eq!(NoLetters::pool().config().debug(), DebugFlags::NONE);
}

#[test]
fn what_is_left_out_is_as_in_the_builder() {
    #[derive(Pooled)]
    struct HTTPRequest([u64; 30]);

    let built: Pool<[u64; 30]> = Pool::new("built");
    let (derived, built) = (HTTPRequest::pool().config(), built.config());
    assert_eq!(HTTPRequest([0; 30]).pooled().0, [0; 30]);
    assert_eq!(derived.name(), "http_request");
    assert_eq!(
        (derived.order(), derived.align()),
        (built.order(), built.align())
    );
    assert_eq!(derived.sheaf_capacity(), built.sheaf_capacity());
    assert_eq!(
        (derived.barn(), derived.min_partial()),
        (built.barn(), built.min_partial())
    );
    assert_eq!(
        (derived.limit(), derived.reserve()),
        (built.limit(), built.reserve())
    );
    assert_eq!(derived.debug(), built.debug());
    assert_eq!(derived.zero_on_free(), built.zero_on_free());
    assert_eq!(derived.strict_layout(), built.strict_layout());
}

#[test]
fn words_stand_for_the_constants() {
    #[derive(Pooled)]
    #[pool(order = large, align = cache_line)]
    struct Large([u8; 100]);

    #[derive(Pooled)]
    #[pool(order = max, align = natural)]
    struct Max([u8; 100]);

    #[derive(Pooled)]
    #[pool(order = auto)]
    struct Auto([u8; 100]);

    let automatic: Pool<[u8; 100]> = Pool::new("automatic");
    let seen = |config: &sheaves::Config| (config.order(), config.align());
    assert_eq!(seen(Large::pool().config()), (5, 64));
    assert_eq!(seen(Max::pool().config()), (9, 1));
    assert_eq!(seen(Auto::pool().config()), seen(automatic.config()));
    assert_eq!(Large([1; 100]).0, Max([1; 100]).0);
    assert_eq!(Auto([1; 100]).pooled().0, [1; 100]);
}

#[test]
fn equal_names_are_different_pools() {
    #[derive(Pooled)]
    #[pool(name = "same")]
    struct First(u64);

    #[derive(Pooled)]
    #[pool(name = "same")]
    struct Second(u64);

    let (first, second) = (First(1).pooled(), Second(2).pooled());
    assert_eq!((first.0, second.0), (1, 2));
    assert!(First::pool().owns(&raw const *first));
    assert!(!First::pool().owns((&raw const *second).cast()));
}

#[test]
fn threads_that_come_first_together_find_one_pool() {
    #[derive(Pooled)]
    struct Raced(usize);

    let barrier = Barrier::new(4);
    let raced = |i: usize| {
        barrier.wait();
        (core::ptr::from_ref(Raced::pool()).addr(), Raced(i).pooled())
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || raced(i))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    for (i, (address, boxed)) in results.iter().enumerate() {
        assert_eq!((*address, boxed.0), (results[0].0, i));
    }
}

#[test]
fn enums_and_odd_shapes_are_pooled() {
    #[derive(Pooled, Debug, PartialEq)]
    enum Event {
        Quit,
        Key(char),
        Resize { width: u16, height: u16 },
    }

    #[derive(Pooled)]
    struct Unit;

    #[derive(Pooled)]
    enum Never {}

    #[derive(Pooled)]
    #[repr(align(4096))]
    struct Page([u8; 4096]);

    // Neither `Send` nor `Sync`.
    #[derive(Pooled)]
    struct Local(core::ptr::NonNull<u8>);

    let events = [
        Event::Quit,
        Event::Key('x'),
        Event::Resize {
            width: 80,
            height: 25,
        },
    ]
    .map(Pooled::pooled);
    assert_eq!(*events[0], Event::Quit);
    assert_eq!(*events[1], Event::Key('x'));
    assert_eq!(
        *events[2],
        Event::Resize {
            width: 80,
            height: 25
        }
    );
    let Unit = *Unit.pooled();
    assert_eq!(Never::pool().name(), "never");
    let page = Page([7; 4096]).pooled();
    assert_eq!((&raw const *page).addr() % 4096, 0);
    assert_eq!(page.0, [7; 4096]);
    let pointer = core::ptr::NonNull::dangling();
    assert_eq!(Local(pointer).pooled().0, pointer);
}

#[test]
fn the_macro_and_the_builder_agree_on_the_bounds() {
    // The macro's own tests have these numbers.
    assert_eq!(sheaves::private::BOUNDS, (9, 32_768, 64));
    let refused = |builder: sheaves::Builder<u64>| builder.build().is_err();
    let builder = || Pool::<u64>::builder("bounds");
    assert!(!refused(
        builder()
            .sheaf_capacity(32_768)
            .barn(64, 64)
            .min_partial(65_536)
            .limit(1)
    ));
    assert!(refused(builder().sheaf_capacity(32_769)));
    assert!(refused(builder().barn(65, 0)) && refused(builder().barn(0, 65)));
    assert!(refused(builder().min_partial(65_537)));
    assert!(refused(builder().limit(0)));
    assert!(refused(builder().limit(1).reserve(2)));
}
