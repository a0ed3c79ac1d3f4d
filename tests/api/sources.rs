//! Page sources: each keeps the contract, and each does the one thing that it is for.

use alloc::sync::Arc;
use core::mem::MaybeUninit;
use std::sync::Mutex;

use allocator_api2::alloc::{Allocator, Global};
use allocator_api2::vec::Vec as VecIn;
use sheaves::{
    AllocErrorKind, AllocatorV02, Arena, Heap, Logged, Metered, Order, PageSource, Pool, Region,
    SourceCall, page,
};

use crate::machine::on_one_node;
use crate::support::{Random, collect_reports};

type Object = [u64; 30];

const PAGE: usize = 64 << 10;

fn region(bytes: usize) -> Region {
    let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(bytes));
    Region::new(memory)
}

/// Runs objects, vectors and tables in a pool on a source, and ends it.
fn use_it(source: impl PageSource, seed: u64) {
    let pool = Pool::<Object>::builder("on_a_source")
        .source(source)
        .build()
        .expect("memory is there");
    let mut random = Random::new(seed);
    let mut boxes = Vec::new();
    let mut vectors: Vec<VecIn<u64, &Pool<Object>>> =
        (0..8).map(|_| VecIn::new_in(&pool)).collect();
    let mut map = hashbrown::HashMap::new_in(&pool);
    for step in 0..20_000_u64 {
        let at = random.below(8);
        match random.below(5) {
            0 => boxes.push(pool.alloc([step; 30])),
            1 if !boxes.is_empty() => {
                let boxed = boxes.swap_remove(random.below(boxes.len()));
                assert_eq!(*boxed, [boxed[0]; 30]);
            }
            2 => vectors[at].extend([step; 9]),
            3 if random.below(100) == 0 => {
                vectors[at].clear();
                vectors[at].shrink_to_fit();
            }
            _ => {
                map.insert(step % 500, step);
            }
        }
    }
    assert!(map.iter().all(|(key, value)| value % 500 == *key));
    assert!(vectors.iter().flatten().all(|step| *step < 20_000));
    drop((map, vectors));
    // The last box ends the pool.
    drop(pool);
    assert!(boxes.iter().all(|boxed| **boxed == [boxed[0]; 30]));
}

#[test]
fn every_source_keeps_the_contract() {
    page::check(&Heap).unwrap();
    #[cfg(unix)]
    page::check(&sheaves::Mmap).unwrap();
    page::check(&Arena::new()).unwrap();
    page::check(&region(64 << 20)).unwrap();
    page::check(&AllocatorV02::new(Global)).unwrap();
    let metered = Metered::new(Heap).with_limit(20 << 20);
    page::check(&metered).unwrap();
    assert_eq!(metered.bytes(), 0);
    page::check(&Logged::new(Metered::new(Arena::new()), |_| {})).unwrap();
    #[cfg(feature = "allocator-api2-04")]
    page::check(&sheaves::AllocatorV04::new(
        allocator_api2_04::alloc::Global,
    ))
    .unwrap();
}

#[test]
fn pools_run_on_every_source() {
    collect_reports();
    use_it(Arena::new(), 1);
    use_it(region(16 << 20), 2);
    use_it(AllocatorV02::new(Global), 3);
    use_it(Metered::new(Arc::new(Arena::new())), 4);
    use_it(Logged::new(Heap, |_| {}), 5);
    // A pool in a pool.
    let outer = Pool::<[u64; 9]>::builder("outer")
        .source(Arena::new())
        .build()
        .unwrap();
    use_it(AllocatorV02::new(outer.clone()), 6);
    assert_eq!((outer.stats().live, outer.stats().blocks), (0, 0));
    outer.close().unwrap();
}

#[test]
fn a_region_gives_what_it_has_and_takes_all_of_it_back() {
    let source = Arc::new(region(10 * PAGE));
    assert!((9..=10).contains(&(source.bytes() / PAGE)));
    let pool = Pool::<Object>::builder("region")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    for _ in 0..3 {
        let boxes: Vec<_> = core::iter::from_fn(|| pool.try_alloc([1; 30]).ok()).collect();
        assert!(
            boxes.len() >= source.bytes() / PAGE * 270,
            "{}",
            boxes.len()
        );
        assert_eq!(
            pool.try_alloc([1; 30]).unwrap_err().kind(),
            AllocErrorKind::OutOfMemory
        );
        drop(boxes);
        pool.shrink();
        // Neighbours are joined: all of it is one block again.
        let layout = core::alloc::Layout::from_size_align(source.bytes(), PAGE).unwrap();
        let whole = source.alloc_pages(layout).expect("it is whole");
        assert_eq!(source.alloc_pages(layout), None);
        // SAFETY: a block of this source with its layout, which nobody uses.
        unsafe { source.free_pages(whole, layout) };
    }
    assert_eq!(region(PAGE - 1).bytes(), 0);
    assert_eq!(Region::new(&mut []).bytes(), 0);
}

#[test]
fn an_arena_recycles_and_goes_with_its_pool() {
    let source = Arc::new(Arena::new());
    let pool = Pool::<Object>::builder("phase")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let run = || {
        let boxes: Vec<_> = (0..10_000).map(|i| pool.alloc([i; 30])).collect();
        drop(boxes);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    };
    run();
    let bytes = source.bytes();
    assert!((10_000 * 240..4 * 10_000 * 240).contains(&bytes), "{bytes}");
    (0..20).for_each(|_| run());
    assert_eq!(source.bytes(), bytes, "freed slabs are used again");
    drop(pool);
    assert_eq!(Arc::strong_count(&source), 1, "the pool has let go of it");
}

#[test]
fn a_meter_bounds_what_pools_hold_together() {
    let source = Arc::new(Metered::new(Heap).with_limit(20 * PAGE));
    let pools = ["first", "second"].map(|name| {
        Pool::<Object>::builder(name)
            .source(Arc::clone(&source))
            .build()
            .unwrap()
    });
    let mut kept: Vec<_> = Vec::new();
    kept.push(pools[0].alloc([1; 30]));
    for pool in pools.iter().rev() {
        kept.extend(core::iter::from_fn(|| pool.try_alloc([1; 30]).ok()));
    }
    let held: u64 = pools.iter().map(|pool| pool.stats().bytes).sum();
    assert_eq!(
        (source.bytes(), source.limit()),
        (20 * PAGE, Some(20 * PAGE))
    );
    assert_eq!(held, source.bytes() as u64);
    pools[0]
        .allocate(core::alloc::Layout::new::<[u8; 100]>())
        .unwrap_err();
    drop(kept);
    assert!(pools.iter().all(|pool| pool.shrink() > 0));
    assert_eq!(source.bytes(), 0);
    // What is remapped is counted too, if the source beneath can do that.
    let source = Arc::new(Metered::new(AllocatorV02::new(Global)).with_limit(10 << 20));
    let pool = Pool::<u64>::builder("meter")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let mut vector: VecIn<u64, _> = VecIn::new_in(&pool);
    while vector.try_reserve_exact(vector.capacity() + PAGE).is_ok() {
        assert_eq!(source.bytes() as u64, pool.stats().bytes);
    }
    assert!(source.bytes() <= 10 << 20 && source.bytes() > 2 << 20);
    vector.push(1);
    vector.shrink_to(100_000);
    assert_eq!(source.bytes() as u64, pool.stats().bytes);
    assert!(source.bytes() < 2 << 20);
    drop(vector);
    assert_eq!(source.bytes(), 0);
}

#[test]
fn a_log_tells_of_each_call() {
    let calls: Arc<Mutex<Vec<SourceCall>>> = Arc::default();
    let log = {
        let calls = Arc::clone(&calls);
        move |call: &SourceCall| calls.lock().expect("no test panics here").push(*call)
    };
    let pool = Pool::<Object>::builder("logged")
        .source(Logged::new(AllocatorV02::new(Global), log))
        .build()
        .unwrap();
    let mut vector = VecIn::new_in(&pool);
    vector.extend([[1; 30]; 1000]);
    vector.extend([[1; 30]; 2000]);
    drop(vector);
    pool.shrink();
    drop(pool);
    let calls = calls.lock().unwrap();
    let of = |wanted: fn(&SourceCall) -> bool| calls.iter().filter(|call| wanted(call)).count();
    let allocs = of(|call| {
        matches!(
            call,
            SourceCall::Alloc {
                address: Some(_),
                ..
            }
        )
    });
    let frees = of(|call| matches!(call, SourceCall::Free { .. }));
    let remaps = of(|call| matches!(call, SourceCall::Remap { moved: Some(_), .. }));
    let trims = of(|call| matches!(call, SourceCall::Trim { .. }));
    assert_eq!((allocs, frees, trims), (1, 1, 1), "{calls:?}");
    assert!(remaps >= 1, "{calls:?}");
    assert!(calls.iter().all(|call| call.to_string().contains("bytes")));
}

/// A log that panics loses no block.
#[test]
fn a_panicking_log_loses_nothing() {
    let metered = Arc::new(Metered::new(Heap));
    let panics = Arc::new(Mutex::new(true));
    let due = Arc::clone(&panics);
    let source = Logged::new(Arc::clone(&metered), move |call: &SourceCall| {
        let due = *due.lock().expect("not poisoned");
        assert!(
            !due || !matches!(call, SourceCall::Alloc { .. }),
            "the log panics"
        );
    });
    let pool = Pool::<Object>::builder("log_panics")
        .source(source)
        .build()
        .unwrap();
    let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        drop(pool.try_alloc([1; 30]));
    }));
    assert!(result.is_err());
    assert_eq!(metered.bytes(), 0);
    *panics.lock().unwrap() = false;
    drop(pool.alloc([1; 30]));
    pool.close().unwrap();
    assert_eq!(metered.bytes(), 0);
}

/// Small pools cost what they touch; those that have grown ask for huge pages.
#[test]
fn pools_ask_for_huge_pages_when_they_have_grown() {
    let hints = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&hints);
    let log = move |call: &SourceCall| {
        if let SourceCall::Alloc { layout, hint, .. } = call {
            told.lock().unwrap().push((layout.size(), hint.is_huge()));
        }
    };
    let builder = Pool::<Object>::builder("grows").order(Order::new(0));
    let pool = on_one_node(builder.source(Logged::new(Heap, log)));
    let slabs = 8;
    let boxes: Vec<_> = (0..slabs * 272).map(|i| pool.alloc([i; 30])).collect();
    drop(boxes);
    let hints = hints.lock().unwrap();
    assert!(hints.iter().all(|&(size, _)| size == PAGE), "{hints:?}");
    let small = if cfg!(sheaves_small) { 1 } else { 4 };
    let huge = hints.iter().position(|&(_, huge)| huge);
    assert_eq!(huge, Some(small), "{hints:?}");
    assert!(hints[small..].iter().all(|&(_, huge)| huge), "{hints:?}");
}
