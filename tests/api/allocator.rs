//! Pools as allocators: the contract of the trait, by random operations against a plain model.

use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use sheaves::{Pool, PoolOf, Pooled, ReportKind};

use crate::support::{Metered, Random, collect_reports, isolated, reports_at};
#[cfg(core_allocator)]
use crate::traits::Core;
#[cfg(feature = "allocator-api2-04")]
use crate::traits::V04;

type Object = [u64; 30];

/// A block and what must be in it.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    seed: u8,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the block is live, this long, and was filled.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    fn new(slice: NonNull<[u8]>, layout: Layout) -> Self {
        assert_eq!(slice.len(), layout.size(), "exactly as long as asked");
        let start = slice.cast::<u8>();
        assert_eq!(start.addr().get() % layout.align(), 0, "{layout:?}");
        Self {
            start,
            layout,
            seed: 0,
        }
    }

    fn fill(mut self, seed: u8) -> Self {
        self.seed = seed;
        // SAFETY: the block is live and this long.
        unsafe { self.start.write_bytes(seed, self.layout.size()) };
        self
    }

    fn check(&self) {
        assert!(is_all(self.bytes(), self.seed), "{:?}", self.layout);
    }
}

fn is_all(bytes: &[u8], value: u8) -> bool {
    bytes.is_empty() || (bytes[0] == value && bytes[1..] == bytes[..bytes.len() - 1])
}

fn random_layout(random: &mut Random) -> Layout {
    let size = match random.below(8) {
        0 => 0,
        1 | 2 => 240,
        3 => random.below(64),
        4 => 240 * random.below(20),
        5 => random.below(5000),
        6 => random.below(200_000),
        _ => random.below(3 << 20),
    };
    let shift = if random.below(4) == 0 {
        random.below(22)
    } else {
        random.below(4)
    };
    Layout::from_size_align(size, 1 << shift).expect("a small layout")
}

/// A layout that is larger, or smaller, than another.
fn resized(random: &mut Random, old: Layout, grow: bool) -> Layout {
    let size = match random.below(4) {
        0 => old.size(),
        _ if grow => old.size() + random.below(old.size() + 500),
        1 if random.below(3) == 0 => 0,
        _ => random.below(old.size() + 1),
    };
    Layout::from_size_align(size, random_layout(random).align()).expect("a small layout")
}

fn grow(pool: &impl Allocator, block: Block, new: Layout, zeroed: bool) -> Block {
    block.check();
    let Block {
        start,
        layout: old,
        seed,
    } = block;
    let slice = if zeroed {
        // SAFETY: a live block of this allocator with its layout, and a larger one.
        unsafe { pool.grow_zeroed(start, old, new) }
    } else {
        // SAFETY: as above.
        unsafe { pool.grow(start, old, new) }
    };
    let grown = Block::new(slice.expect("memory is there"), new);
    let (kept, more) = grown.bytes().split_at(old.size());
    assert!(
        is_all(kept, seed),
        "contents are kept from {old:?} to {new:?}"
    );
    assert!(
        !zeroed || is_all(more, 0),
        "zeros follow from {old:?} to {new:?}"
    );
    grown.fill(seed.wrapping_add(1))
}

fn shrink(pool: &impl Allocator, block: Block, new: Layout) -> Block {
    block.check();
    let Block {
        start,
        layout: old,
        seed,
    } = block;
    // SAFETY: a live block of this allocator with its layout, and a smaller one.
    let slice = unsafe { pool.shrink(start, old, new) }.expect("memory is there");
    let shrunk = Block {
        seed,
        ..Block::new(slice, new)
    };
    shrunk.check();
    shrunk
}

fn free(pool: &impl Allocator, block: &Block) {
    block.check();
    // SAFETY: a live block of this allocator with its layout; it is not used again.
    unsafe { pool.deallocate(block.start, block.layout) };
}

/// Random operations, each by one of `handles`, which are one allocator; a handle moves between two uses.
fn model(handles: &mut [&dyn Allocator], seed: u64, steps: u8) {
    let mut random = Random::new(seed);
    let mut blocks: Vec<Block> = Vec::new();
    for step in 0..steps {
        handles.rotate_left(1);
        let pool = &handles[random.below(handles.len())];
        let at = random.below(blocks.len().max(1));
        match random.below(8) {
            _ if blocks.len() < 3 => {
                let layout = random_layout(&mut random);
                blocks.push(
                    Block::new(pool.allocate(layout).expect("memory is there"), layout).fill(step),
                );
            }
            0 => {
                let layout = random_layout(&mut random);
                let block = Block::new(
                    pool.allocate_zeroed(layout).expect("memory is there"),
                    layout,
                );
                assert!(is_all(block.bytes(), 0));
                blocks.push(block.fill(step));
            }
            kind @ 1..4 => {
                let block = blocks.swap_remove(at);
                let new = resized(&mut random, block.layout, true);
                blocks.push(grow(pool, block, new, kind == 1));
            }
            4 | 5 => {
                let block = blocks.swap_remove(at);
                let new = resized(&mut random, block.layout, false);
                blocks.push(shrink(pool, block, new));
            }
            _ => free(pool, &blocks.swap_remove(at)),
        }
        blocks.iter().for_each(Block::check);
    }
    blocks.iter().for_each(|block| free(&handles[0], block));
}

#[test]
fn the_contract_holds_for_random_layouts() {
    for seed in 0..12 {
        let source = Metered::new();
        let pool = Pool::<Object>::builder("layouts")
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        source.set_remaps(seed % 2 == 1);
        let clone = pool.clone();
        model(&mut [&pool, &clone, &&pool], seed, 120);
        #[cfg(feature = "allocator-api2-04")]
        model(&mut [&pool, &V04(&pool), &V04(clone.clone())], seed, 60);
        #[cfg(core_allocator)]
        model(&mut [&pool, &Core(&pool), &Core(clone.clone())], seed, 60);
        drop(clone);
        let stats = pool.stats();
        assert_eq!((stats.live, stats.blocks), (0, 0), "{stats:?}");
        pool.shrink();
        assert_eq!((pool.stats().bytes, source.bytes()), (0, 0));
        pool.close().unwrap();
        assert_eq!(Arc::strong_count(&source), 1);
    }
}

#[derive(Pooled)]
#[pool(name = "contract_static")]
struct Static {
    _words: [u64; 30],
}

#[test]
fn the_contract_holds_for_the_pool_of_a_type() {
    assert_eq!(size_of::<PoolOf<Static>>(), 0);
    let (of, clone) = (PoolOf::<Static>::new(), Static::pool().clone());
    for seed in 20..24 {
        model(
            &mut [&of, &PoolOf::<Static>::default(), &clone, &&of],
            seed,
            60,
        );
        #[cfg(feature = "allocator-api2-04")]
        model(&mut [&of, &V04(of), &V04(&clone)], seed, 60);
        #[cfg(core_allocator)]
        model(&mut [&of, &Core(of), &Core(&clone)], seed, 60);
    }
    assert_eq!((clone.stats().live, clone.stats().blocks), (0, 0));
}

#[test]
fn shrinking_never_fails_and_to_zero_frees() {
    let source = Metered::new();
    let pool = Pool::<Object>::builder("shrinks")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    for size in [240, 241, 100_000, 500] {
        let layout = Layout::from_size_align(size, 8).unwrap();
        let mut block = Block::new(pool.allocate(layout).unwrap(), layout).fill(7);
        source.set_budget(Some(0));
        for size in [size - 1, 100, 8, 1] {
            let start = block.start;
            block = shrink(&pool, block, Layout::from_size_align(size, 8).unwrap());
            assert_eq!(block.start, start, "in place");
        }
        block = shrink(&pool, block, Layout::from_size_align(0, 4096).unwrap());
        assert_eq!(block.start.addr().get() % 4096, 0);
        assert_eq!(
            (pool.stats().live, pool.stats().blocks),
            (0, 0),
            "shrinking to zero frees"
        );
        free(&pool, &block);
        source.set_budget(None);
    }
    pool.shrink();
    assert_eq!(source.bytes(), 0);
}

#[test]
fn what_cannot_be_had_is_refused_and_leaves_the_old_block() {
    let source = Metered::new();
    let pool = Pool::<Object>::builder("refuses")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    for layout in [
        (isize::MAX as usize - 4095, 1),
        (isize::MAX as usize / 2, 1 << 40),
        (1, 1 << 62),
    ] {
        let layout = Layout::from_size_align(layout.0, layout.1).unwrap();
        source.refuse_above(1 << 30);
        pool.allocate(layout).unwrap_err();
    }
    let layout = Layout::from_size_align(1000, 8).unwrap();
    let block = Block::new(pool.allocate(layout).unwrap(), layout).fill(3);
    source.set_budget(Some(0));
    let new = Layout::from_size_align(1 << 20, 8).unwrap();
    // SAFETY: a live block of this allocator with its layout, and a larger one.
    unsafe { pool.grow(block.start, layout, new) }.unwrap_err();
    block.check();
    free(&pool, &block);
    assert_eq!((pool.stats().blocks, pool.stats().live), (0, 0));
}

#[test]
fn limits_and_objects_are_shared_with_boxes() {
    let pool = Pool::<Object>::builder("shared").limit(2).build().unwrap();
    let kept = pool.alloc([1; 30]);
    let one = Layout::new::<Object>();
    let block = Block::new(pool.allocate(one).unwrap(), one).fill(1);
    assert_eq!(pool.stats().live, 2);
    pool.allocate(one).unwrap_err();
    assert!(pool.owns(block.start.as_ptr().cast::<Object>()));
    free(&pool, &block);
    drop(kept);
}

#[test]
fn blocks_of_other_pools_are_told_and_leaked() {
    collect_reports();
    let [pool, other] = ["pool", "other"].map(Pool::<Object>::new);
    let layouts = [Layout::new::<Object>(), Layout::new::<[u8; 1000]>()];
    for layout in layouts {
        let block = Block::new(other.allocate(layout).unwrap(), layout).fill(9);
        // SAFETY: none: the block is another pool's, which must be told.
        unsafe { pool.deallocate(block.start, layout) };
        let reports = reports_at(block.start.addr().get());
        assert_eq!(reports, [(ReportKind::WrongPool, Some("pool".to_owned()))]);
        block.check();
        free(&other, &block);
    }
    let mut foreign = 5_u64;
    // SAFETY: none: the memory is no pool's, which must be told.
    unsafe { pool.deallocate(NonNull::from(&mut foreign).cast(), Layout::new::<Object>()) };
    let reports = reports_at((&raw const foreign).addr());
    assert_eq!(reports, [(ReportKind::NoPool, Some("pool".to_owned()))]);
    assert_eq!(
        (pool.stats().live, other.stats().live, other.stats().blocks),
        (0, 0, 0)
    );
    assert_eq!(pool.stats().reports, 3, "each is counted");
}

#[test]
fn a_panicking_source_does_not_unwind_out() {
    isolated("allocator::a_panicking_source_does_not_unwind_out", || {
        let source = Metered::new();
        let builder = Pool::<Object>::builder("quiet")
            .source(Arc::clone(&source))
            .min_partial(0);
        let pool = builder.sheaf_capacity(0).build().unwrap();
        for layout in [Layout::new::<Object>(), Layout::new::<[u8; 5000]>()] {
            source.panic_in_alloc(1);
            pool.allocate(layout).unwrap_err();
            source.panic_in_alloc(1);
            pool.allocate_zeroed(layout).unwrap_err();
            let block = Block::new(pool.allocate(layout).unwrap(), layout).fill(1);
            source.panic_in_alloc(1);
            let new = Layout::from_size_align(1 << 20, 8).unwrap();
            // SAFETY: a live block of this allocator with its layout, and a larger one.
            unsafe { pool.grow(block.start, layout, new) }.unwrap_err();
            source.panic_in_free(1);
            free(&pool, &block);
            source.panic_in_free(0);
        }
        assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0));
        pool.shrink();
        assert_eq!((pool.stats().bytes, source.blocks()), (0, 0));
    });
}
