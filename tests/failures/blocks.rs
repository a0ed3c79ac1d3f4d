//! Promise 9: pointers that are not what the allocator traits gave out, and objects taken back as something else.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;

use allocator_api2::alloc::Allocator;
use sheaves::{Align, DebugFlags, Heap, Pool, PoolBox, ReportKind};

use crate::hostile::{listen, refused, told};
use crate::support::{SEQ, isolated};

type Object = [u64; 30];

/// Bytes of a block, filled with a pattern.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    fn new(pool: &Pool<Object>, layout: Layout) -> Self {
        let start = pool.allocate(layout).expect("memory").cast::<u8>();
        // SAFETY: just allocated, and this long.
        unsafe { start.write_bytes(0x5c, layout.size()) };
        Self { start, layout }
    }

    #[track_caller]
    fn check(&self) {
        // SAFETY: live, this long, and filled.
        let bytes = unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) };
        assert!(bytes.iter().all(|&byte| byte == 0x5c), "written to");
    }
}

/// Promise 9: `deallocate` believes the page map, on the fast path; the slab tells that no block starts there. What is
/// live stays live.
#[test]
fn pointers_into_blocks_are_told_at_their_slab() {
    isolated(
        "blocks::pointers_into_blocks_are_told_at_their_slab",
        || {
            listen();
            let kinds = [
                (0, DebugFlags::NONE),
                (60, DebugFlags::NONE),
                (60, DebugFlags::SANITY),
            ];
            let layouts = [Layout::new::<Object>(), Layout::new::<[u64; 125]>()];
            for ((capacity, flags), layout) in kinds
                .into_iter()
                .flat_map(|kind| layouts.map(|layout| (kind, layout)))
            {
                let builder = Pool::builder("blocks").sheaf_capacity(capacity);
                let pool: Pool<Object> = builder.debug(flags).source(Heap).build().unwrap();
                let block = Block::new(&pool, layout);
                for offset in [1, 8, 100, 232] {
                    let inside = block.start.map_addr(|start| start.saturating_add(offset));
                    // SAFETY: none: this is what must be told.
                    unsafe { pool.deallocate(inside, layout) };
                    if capacity > 0 && flags == DebugFlags::NONE {
                        assert_eq!(told(), [], "the fast path believes it");
                        // What is parked comes to its slab.
                        pool.flush_thread();
                    }
                    let told = told();
                    assert_eq!(told.len(), 1, "{capacity} {layout:?} {offset}: {told:?}");
                    let (kind, ref name, address) = told[0];
                    assert_eq!((kind, address), (ReportKind::Interior, inside.addr().get()));
                    assert!(name.as_deref().unwrap().starts_with("blocks"), "{name:?}");
                    block.check();
                }
                // SAFETY: it came from `allocate`, with this layout.
                unsafe { pool.deallocate(block.start, layout) };
                pool.shrink();
                let stats = pool.stats();
                assert_eq!((stats.live, stats.blocks, stats.block_bytes), (0, 0, 0));
                assert_eq!(
                    stats.bytes, 0,
                    "nothing was leaked: what was refused was no slot"
                );
                assert_eq!(told(), []);
            }
        },
    );
}

/// Promise 9: of whole pages only the start is a block.
#[test]
fn pointers_into_whole_pages_are_told() {
    isolated("blocks::pointers_into_whole_pages_are_told", || {
        listen();
        let pool: Pool<Object> = Pool::builder("pages").source(Heap).build().unwrap();
        let layout = Layout::new::<[u64; 40_000]>();
        let block = Block::new(&pool, layout);
        for offset in [1, 8, 4096, 65_536, 65_536 + 64, 200_000, 319_999] {
            let inside = block.start.map_addr(|start| start.saturating_add(offset));
            // SAFETY: none: this is what must be told.
            unsafe { pool.deallocate(inside, layout) };
            let told = told();
            let own = Some("pages".to_owned());
            assert_eq!(told, [(ReportKind::Interior, own, inside.addr().get())]);
            block.check();
            assert_eq!(pool.stats().blocks, 1);
        }
        // SAFETY: it came from `allocate`, with this layout.
        unsafe { pool.deallocate(block.start, layout) };
        pool.shrink();
        assert_eq!((pool.stats().blocks, pool.stats().bytes), (0, 0));
        assert_eq!(told(), []);
    });
}

/// Promise 9: where a block was that is gone, there is none, even if its memory is as it left it.
#[test]
fn blocks_that_are_gone_are_not_found_in_a_later_one() {
    isolated(
        "blocks::blocks_that_are_gone_are_not_found_in_a_later_one",
        || {
            listen();
            // The usual source gives the lowest pages that are free, and leaves in them what was there.
            let pool: Pool<Object> = Pool::new("later");
            let layouts = [100_000, 250_000].map(|size| Layout::from_size_align(size, 64).unwrap());
            let [first, second] = [0; 2].map(|_| Block::new(&pool, layouts[0]));
            for block in [&first, &second] {
                // SAFETY: it came from `allocate`, with this layout.
                unsafe { pool.deallocate(block.start, block.layout) };
            }
            let later = pool.allocate(layouts[1]).unwrap().cast::<u8>();
            let inside = later.addr().get()..later.addr().get() + layouts[1].size();
            assert!(inside.contains(&second.start.addr().get()), "not a test");
            // SAFETY: none: this is what must be told.
            unsafe { pool.deallocate(second.start, layouts[0]) };
            let own = Some("later".to_owned());
            let address = second.start.addr().get();
            assert_eq!(told(), [(ReportKind::Interior, own, address)]);
            // SAFETY: it came from `allocate`, with this layout.
            unsafe { pool.deallocate(later, layouts[1]) };
            assert_eq!((pool.stats().blocks, told()), (0, Vec::new()));
        },
    );
}

/// Promise 9: growing and shrinking free the old place, which must be the pool's.
#[test]
fn blocks_of_other_pools_do_not_grow() {
    isolated("blocks::blocks_of_other_pools_do_not_grow", || {
        listen();
        let pool: Pool<Object> = Pool::builder("pool").source(Heap).build().unwrap();
        let other: Pool<Object> = Pool::builder("other").source(Heap).build().unwrap();
        for size in [240, 1000, 100_000] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            let block = Block::new(&other, layout);
            for to in [size / 2, size * 2] {
                let new = Layout::from_size_align(to, 8).unwrap();
                let moved = if to > size {
                    // SAFETY: none: the block is another pool's, which must be told.
                    unsafe { pool.grow(block.start, layout, new) }
                } else {
                    // SAFETY: as above.
                    unsafe { Allocator::shrink(&pool, block.start, layout, new) }
                };
                let start = moved.unwrap().cast::<u8>();
                assert_ne!(start, block.start, "it was believed");
                let own = Some("pool".to_owned());
                let address = block.start.addr().get();
                assert_eq!(told(), [(ReportKind::WrongPool, own, address)]);
                block.check();
                // SAFETY: it came from the pool, with this layout.
                unsafe { pool.deallocate(start, new) };
            }
            // SAFETY: it came from `allocate`, with this layout.
            unsafe { other.deallocate(block.start, layout) };
        }
        pool.shrink();
        other.shrink();
        assert_eq!((pool.stats().bytes, other.stats().bytes), (0, 0));
        assert_eq!(told(), []);
    });
}

static DROPS: AtomicUsize = AtomicUsize::new(0);

/// An object of the same layout as [`Object`].
struct Twin {
    words: Object,
}

impl Drop for Twin {
    fn drop(&mut self) {
        assert_eq!(self.words, [7; 30]);
        DROPS.fetch_add(1, SEQ);
    }
}

/// A box knows no type and no pool but by its slot: an object of another pool with the same layout is believed, as by
/// `Box`, and goes back to the pool that it came from.
#[test]
fn an_object_taken_back_as_its_twin_goes_home() {
    isolated("blocks::an_object_taken_back_as_its_twin_goes_home", || {
        listen();
        let plain: Pool<Object> = Pool::builder("plain").source(Heap).build().unwrap();
        let twins: Pool<Twin> = Pool::builder("twins").source(Heap).build().unwrap();
        let kept = twins.alloc(Twin { words: [7; 30] });
        let raw = PoolBox::into_raw(plain.alloc([7; 30]));
        // SAFETY: the object's bytes are those of a twin, too.
        let taken = unsafe { PoolBox::from_raw(raw.cast::<Twin>()) };
        assert_eq!(PoolBox::pool_name(&taken), "plain");
        drop(taken);
        assert_eq!(DROPS.load(SEQ), 1);
        assert_eq!((plain.stats().live, twins.stats().live), (0, 1));
        // Where a pool is named, the page map tells that it is not that one's.
        let mut sheaf = twins.prefill(1).unwrap();
        let slot = sheaf.alloc(Twin { words: [7; 30] }).ok().unwrap();
        let raw = PoolBox::into_raw(plain.alloc([7; 30]));
        // SAFETY: as above.
        let taken = unsafe { PoolBox::from_raw(raw.cast::<Twin>()) };
        let taken = sheaf.free(taken).expect_err("another pool's");
        drop((taken, slot, sheaf, kept));
        plain.shrink();
        twins.shrink();
        assert_eq!((plain.stats().bytes, twins.stats().bytes), (0, 0));
        assert_eq!(told(), []);
    });
}

/// `from_raw` believed an object of the same size whose pool aligns it less than the type that it is taken for.
#[test]
fn an_object_that_is_aligned_too_little_is_told() {
    isolated(
        "blocks::an_object_that_is_aligned_too_little_is_told",
        || {
            #[repr(align(64))]
            struct Line {
                _bytes: [u8; 192],
            }
            listen();
            let bytes: Pool<[u8; 192]> = Pool::builder("bytes").source(Heap).build().unwrap();
            let lines: Pool<[u8; 192]> = Pool::builder("lines")
                .align(Align::new(64))
                .source(Heap)
                .build()
                .unwrap();
            let boxes: Vec<_> = (0..100).map(|_| bytes.alloc([1; 192])).collect();
            for boxed in &boxes {
                let raw = PoolBox::as_ptr(boxed).cast_mut().cast::<Line>();
                refused(raw, ReportKind::WrongPool, Some("bytes"));
            }
            drop(boxes);
            assert_eq!(bytes.stats().live, 0);
            // As much as the type asks for is enough, whoever asked for it.
            let raw = PoolBox::into_raw(lines.alloc([1; 192]));
            // SAFETY: the bytes are those of a `Line`, and aligned.
            drop(unsafe { PoolBox::from_raw(raw.cast::<Line>()) });
            assert_eq!(lines.stats().live, 0);
            assert_eq!(told(), []);
        },
    );
}
