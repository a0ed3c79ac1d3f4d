//! Blocks that are not one object: which cache they come from, where they are counted, when they go back.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec as VecIn;
use sheaves::{Pool, PoolBox};

use crate::support::{Metered, SEQ, isolated, on_threads};

type Object = [u64; 30];

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).expect("a small layout")
}

fn allocate(pool: &impl Allocator, layout: Layout) -> NonNull<u8> {
    let block = pool.allocate(layout).expect("memory is there");
    assert_eq!(block.len(), layout.size());
    block.cast()
}

fn free(pool: &impl Allocator, block: NonNull<u8>, layout: Layout) {
    // SAFETY: the tests free what they allocated, once, with a layout that fits.
    unsafe { pool.deallocate(block, layout) };
}

/// The lines of slabinfo for a pool and the caches beside it: what the name adds, and the live slots.
///
/// Who lists caches keeps all of them alive meanwhile, so tests that do have a process of their own.
fn lines(pool: &str) -> Vec<(String, u64)> {
    let info = sheaves::slabinfo();
    let mut lines: Vec<_> = info
        .iter()
        .filter_map(|line| {
            Some((
                line.name().strip_prefix(pool)?.to_owned(),
                line.stats().live,
            ))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn each_layout_comes_from_the_cache_for_it() {
    isolated("classes::each_layout_comes_from_the_cache_for_it", || {
        let pool = Pool::<Object>::new("classes_by_layout");
        let wanted = [
            (480, 8, "-run-2"),
            (720, 8, "-run-4"),
            (960, 8, "-run-4"),
            (15_360, 8, "-run-64"),
            (1, 1, "-byte-16"),
            (52, 16, "-byte-64"),
            (240, 16, "-byte-256"),
            (16_384, 64, "-byte-16384"),
        ];
        for (size, align, suffix) in wanted {
            let layout = layout(size, align);
            let block = allocate(&pool, layout);
            let lines = lines("classes_by_layout");
            assert!(
                lines.contains(&(suffix.to_owned(), 1)),
                "{layout:?}: {lines:?}"
            );
            let stats = pool.stats();
            assert_eq!((stats.live, stats.blocks), (0, 1), "{layout:?}");
            assert!(stats.block_bytes >= size as u64 && stats.bytes == stats.block_bytes);
            free(&pool, block, layout);
            assert_eq!(pool.stats().blocks, 0);
        }
        let object = allocate(&pool, Layout::new::<Object>());
        assert_eq!((pool.stats().live, pool.stats().blocks), (1, 0));
        free(&pool, object, Layout::new::<Object>());
        // One line for the pool, one for each cache beside it; a pool is one pool for all that.
        assert_eq!(lines("classes_by_layout").len(), 1 + 7);
        let pools = sheaves::pools();
        let named = pools
            .iter()
            .filter(|info| info.name().starts_with("classes_by_layout"));
        assert_eq!(named.count(), 1);
        pool.shrink();
        let stats = pool.stats();
        assert_eq!((stats.bytes, stats.block_bytes), (0, 0));
        pool.close().unwrap();
        assert_eq!(lines("classes_by_layout"), []);
    });
}

#[test]
fn blocks_are_freed_by_their_address() {
    let source = Metered::new();
    let pool = Pool::<Object>::builder("by_address")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let sizes = [240, 480, 960, 52, 10_000, 100_000];
    for from in sizes {
        for to in sizes.into_iter().filter(|to| *to < from) {
            let (from, to) = (layout(from, 8), layout(to, 8));
            let block = allocate(&pool, from);
            // SAFETY: a live block of this pool with its layout, and a smaller one.
            let shrunk = unsafe { Allocator::shrink(&pool, block, from, to) }.unwrap();
            // What was shrunk in place is freed with a layout that another cache serves.
            free(&pool, shrunk.cast(), to);
            assert_eq!(
                (pool.stats().live, pool.stats().blocks),
                (0, 0),
                "{from:?} to {to:?}"
            );
            assert_eq!(pool.stats().reports, 0);
        }
    }
    pool.close().unwrap();
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn a_pool_is_busy_while_a_block_is_live() {
    let pool = Pool::<Object>::new("busy_blocks");
    for size in [480, 52, 100_000] {
        let layout = layout(size, 8);
        let block = allocate(&pool, layout);
        let busy = pool.clone().close().unwrap_err();
        assert_eq!((busy.live(), busy.handles()), (1, 1));
        free(&pool, block, layout);
    }
    pool.close().unwrap();
}

#[test]
fn a_limit_counts_objects_in_slots() {
    let pool = Pool::<Object>::builder("limited_objects")
        .limit(2)
        .build()
        .unwrap();
    let mut vector = VecIn::new_in(&pool);
    vector.extend([[1; 30]; 100]);
    let kept = [pool.alloc([1; 30]), pool.alloc([2; 30])];
    pool.try_alloc([3; 30]).unwrap_err();
    vector.extend([[1; 30]; 100]);
    drop(kept);
    assert_eq!((pool.stats().live, pool.stats().blocks), (0, 1));
}

/// Promise 4: what other threads have parked goes back, those of the caches beside the pool's own too.
#[test]
fn one_shrink_returns_the_slabs_of_blocks() {
    isolated("classes::one_shrink_returns_the_slabs_of_blocks", || {
        let source = Metered::new();
        let pool = Pool::<Object>::builder("shrunk_blocks")
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || {
                for size in [480, 960, 52, 1000] {
                    let layout = layout(size, 8);
                    let blocks: Vec<_> = (0..500).map(|_| allocate(pool, layout)).collect();
                    blocks
                        .into_iter()
                        .for_each(|block| free(pool, block, layout));
                }
                ready.send(()).unwrap();
                let _ = wait.recv();
            });
            is_ready.recv().unwrap();
            assert!(pool.stats().bytes > 0);
            let bytes = pool.stats().bytes;
            assert_eq!(pool.shrink() as u64, bytes);
            assert_eq!((pool.stats().bytes, source.bytes()), (0, 0));
            drop(done);
        });
        assert_eq!(lines("shrunk_blocks").len(), 5);
    });
}

/// Promise 2: a block that nobody can free any more stays where it is.
#[test]
fn leaked_blocks_outlive_their_pool() {
    isolated("classes::leaked_blocks_outlive_their_pool", || {
        let pool = Pool::<Object>::new("leaks");
        let vector: &'static mut [Object] = {
            let mut vector = VecIn::new_in(pool.clone());
            vector.extend([[7; 30]; 4]);
            VecIn::leak(vector)
        };
        let kept = pool.alloc([1; 30]);
        drop(pool);
        sheaves::shrink();
        assert_eq!(
            lines("leaks"),
            [(String::new(), 1), ("-run-4".to_owned(), 1)]
        );
        drop(kept);
        sheaves::shrink();
        assert_eq!(vector, [[7; 30]; 4]);
    });
}

#[test]
fn threads_of_many_vectors_leave_nothing_behind() {
    let source = Metered::new();
    let pool = Pool::<u64>::builder("many_vectors")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    on_threads(4, |thread| {
        let mut vectors: Vec<_> = (0..50).map(|_| VecIn::new_in(&pool)).collect();
        for i in 0..2000_u64 {
            let at = usize::try_from(i * 7 % 50).unwrap();
            vectors[at].push(i ^ thread as u64);
            if i % 97 == 0 {
                vectors[at].clear();
                vectors[at].shrink_to_fit();
            }
            let last = vectors[at].last();
            assert!(last.is_none_or(|last| *last == i ^ thread as u64));
        }
    });
    assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0));
    pool.close().unwrap();
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}

#[test]
fn what_a_source_cannot_remap_is_copied_and_what_panics_stays() {
    isolated(
        "classes::what_a_source_cannot_remap_is_copied_and_what_panics_stays",
        || {
            let source = Metered::new();
            let pool = Pool::<u64>::builder("remapped")
                .source(Arc::clone(&source))
                .build()
                .unwrap();
            let mut vector = VecIn::new_in(&pool);
            vector.extend(0..100_000_u64);
            for remaps in [true, false] {
                source.set_remaps(remaps);
                let before = source.remapped.load(SEQ);
                vector.reserve_exact(200_000);
                assert_eq!(source.remapped.load(SEQ) - before, usize::from(remaps));
                vector.shrink_to_fit();
                assert_eq!(source.remapped.load(SEQ) - before, 2 * usize::from(remaps));
                assert!(vector.iter().copied().eq(0..100_000));
                source.panic_in_remap(1);
                assert_eq!(
                    vector.try_reserve_exact(500_000),
                    Ok(()),
                    "it is copied instead"
                );
                source.panic_in_remap(1);
                vector.shrink_to_fit();
                assert!(vector.iter().copied().eq(0..100_000));
                let held = source.bytes();
                assert_eq!(pool.stats().bytes, held);
            }
            drop(vector);
            assert_eq!((pool.stats().blocks, source.blocks()), (0, 0));
        },
    );
}

#[cfg(unix)]
#[test]
fn the_pages_of_mmap_grow_in_place() {
    isolated("classes::the_pages_of_mmap_grow_in_place", || {
        let pool = Pool::<u64>::new("in_place");
        let mut vector = VecIn::with_capacity_in(20_000, &pool);
        vector.push(1_u64);
        let start = vector.as_ptr();
        while vector.capacity() < 2_000_000 {
            vector.reserve_exact(vector.capacity() * 2);
            assert_eq!(vector.as_ptr(), start, "nothing lies behind it");
        }
        assert!(pool.stats().bytes >= 16_000_000);
        vector.shrink_to(20_000);
        assert_eq!((vector.as_ptr(), vector[0]), (start, 1));
        assert_eq!(
            pool.stats().bytes,
            3 << 16,
            "pages that are not needed went back"
        );
    });
}

#[test]
fn boxes_and_blocks_share_a_pool_that_clears_what_is_freed() {
    let pool = Pool::<Object>::builder("cleared")
        .zero_on_free()
        .build()
        .unwrap();
    for size in [480, 52, 20_000] {
        let layout = layout(size, 8);
        let block = allocate(&pool, layout);
        // SAFETY: live and this long.
        unsafe { block.write_bytes(0xA5, size) };
        free(&pool, block, layout);
        let again = allocate(&pool, layout);
        // SAFETY: live, this long, and initialised by its last owner or by the pool.
        let bytes = unsafe { core::slice::from_raw_parts(again.as_ptr(), size) };
        assert!(
            again != block || bytes.iter().all(|byte| *byte == 0),
            "{size}"
        );
        free(&pool, again, layout);
    }
    drop::<PoolBox<Object>>(pool.alloc([1; 30]));
}

#[test]
fn a_strict_pool_serves_one_object_and_nothing_else() {
    let pool = Pool::<Object>::builder("strict")
        .strict_layout()
        .build()
        .unwrap();
    let one = Layout::new::<Object>();
    let block = allocate(&pool, one);
    for (size, align) in [(239, 8), (241, 8), (480, 8), (240, 16), (1, 1)] {
        pool.allocate(layout(size, align)).unwrap_err();
    }
    pool.allocate(layout(0, 64))
        .expect("nothing is always there");
    assert_eq!(pool.stats().live, 1);
    free(&pool, block, one);
}
