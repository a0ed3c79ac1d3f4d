//! Random operations against a list of the blocks that are out.

use alloc::collections::BTreeMap;
use std::thread;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Alloc {
        pages: usize,
        align: usize,
        huge: bool,
    },
    Free {
        pick: usize,
    },
    Resize {
        pick: usize,
        pages: usize,
    },
    Trim,
}

fn op() -> impl Strategy<Value = Op> {
    let pages = prop_oneof![
        4 => (0_u32..7).prop_map(|order| 1 << order),
        2 => 1_usize..80,
        1 => prop::sample::select(vec![128_usize, 256, 511, 512]),
    ];
    let align = prop_oneof![4 => Just(1_usize), 1 => (0_u32..6).prop_map(|log| 1 << log)];
    prop_oneof![
        6 => (pages, align, any::<bool>())
            .prop_map(|(pages, align, huge)| Op::Alloc { pages, align, huge }),
        5 => any::<usize>().prop_map(|pick| Op::Free { pick }),
        4 => (any::<usize>(), 1_usize..130).prop_map(|(pick, pages)| Op::Resize { pick, pages }),
        1 => Just(Op::Trim),
    ]
}

struct Block {
    start: NonNull<u8>,
    layout: Layout,
    tag: u64,
}

impl Block {
    fn pages(&self) -> usize {
        self.layout.size() / PAGE_SIZE
    }

    fn check(&self) -> bool {
        // SAFETY: blocks of the test are marked when they are made.
        unsafe { is_marked(self.start, self.pages(), self.tag) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn blocks_are_disjoint_aligned_and_keep_their_contents(
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let state = Lock::new(State::new());
        let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Alloc { pages, align, huge } => {
                    let layout = aligned(pages, align);
                    let start = state.lock().alloc(layout, huge).unwrap();
                    let addr = start.addr().get();
                    let natural = if pages.is_power_of_two() { pages.min(ALIGN_PAGES) } else { 1 };
                    prop_assert_eq!(addr % (natural.max(align) * PAGE_SIZE), 0);
                    if let Some((&below, block)) = blocks.range(..=addr).next_back() {
                        prop_assert!(below + block.layout.size() <= addr);
                    }
                    if let Some((&above, _)) = blocks.range(addr..).next() {
                        prop_assert!(addr + layout.size() <= above);
                    }
                    let block = Block { start, layout, tag: (number as u64) << 32 };
                    // SAFETY: the block is this long and ours.
                    unsafe { mark(block.start, pages, block.tag) };
                    blocks.insert(addr, block);
                }
                Op::Free { pick } if !blocks.is_empty() => {
                    let addr = *blocks.keys().nth(pick % blocks.len()).unwrap();
                    let block = blocks.remove(&addr).unwrap();
                    prop_assert!(block.check());
                    // SAFETY: the block came from `alloc` with this layout, and is forgotten.
                    unsafe { state.lock().free(block.start, block.layout) };
                }
                Op::Resize { pick, pages } if !blocks.is_empty() => {
                    let addr = *blocks.keys().nth(pick % blocks.len()).unwrap();
                    let above = blocks.range(addr + 1..).next().map(|(&above, _)| above);
                    let block = blocks.get_mut(&addr).unwrap();
                    let new = layout(pages);
                    prop_assert!(block.check());
                    // SAFETY: the block has this layout, and no page that it loses is used.
                    let resized = unsafe { state.lock().resize(block.start, block.layout, new) };
                    let room = above.is_none_or(|above| addr + new.size() <= above);
                    prop_assert!(resized || pages > block.pages(), "shrinking never fails");
                    prop_assert!(room || !resized);
                    if resized {
                        block.layout = new;
                        // SAFETY: the block is this long and ours.
                        unsafe { mark(block.start, pages, block.tag) };
                    }
                }
                Op::Free { .. } | Op::Resize { .. } => {}
                Op::Trim => {
                    trim_all(&state);
                    prop_assert_eq!(trim_all(&state), 0);
                }
            }
        }
        prop_assert!(blocks.values().all(Block::check));
        for block in blocks.into_values() {
            // SAFETY: the block came from `alloc` with this layout, and is forgotten.
            unsafe { state.lock().free(block.start, block.layout) };
        }
        trim_all(&state);
        let state = state.lock();
        prop_assert!(state.ordinary.count() <= 1 && state.huge.count() <= 1);
    }
}

#[test]
fn threads_share_the_source() {
    const ROUNDS: u64 = if cfg!(debug_assertions) { 400 } else { 2000 };
    thread::scope(|scope| {
        for thread in 1..=4_u64 {
            scope.spawn(move || {
                let mut random = thread;
                let mut blocks: Vec<Block> = Vec::new();
                for round in 0..ROUNDS {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(thread);
                    let pick = usize::try_from(random >> 40).unwrap();
                    if pick % 2 == 0 || blocks.is_empty() {
                        let layout = layout([1, 1, 2, 3, 4, 8, 16, 32, 33][pick % 9]);
                        let hint = if pick % 5 == 0 {
                            Hint::NONE.huge()
                        } else {
                            Hint::NONE
                        };
                        let start = Mmap.alloc_pages_hinted(layout, hint).unwrap();
                        let block = Block {
                            start,
                            layout,
                            tag: thread << 48 | round << 16,
                        };
                        // SAFETY: the block is this long and ours.
                        unsafe { mark(start, block.pages(), block.tag) };
                        blocks.push(block);
                    } else {
                        let block = blocks.swap_remove(pick % blocks.len());
                        assert!(block.check());
                        // SAFETY: the block came from `Mmap` with this layout, and is forgotten.
                        unsafe { Mmap.free_pages(block.start, block.layout) };
                    }
                    if pick % 64 == 0 {
                        Mmap.trim();
                    }
                }
                for block in blocks {
                    assert!(block.check());
                    // SAFETY: the block came from `Mmap` with this layout, and is forgotten.
                    unsafe { Mmap.free_pages(block.start, block.layout) };
                }
            });
        }
    });
    drop(lock_for_fork());
    Mmap.trim();
}
