mod model;

use super::reservation::MAX_PAGES;
use super::*;
#[cfg(target_os = "linux")]
use crate::page::sys::resident;

const HUGE: usize = ALIGN_PAGES * PAGE_SIZE;

fn layout(pages: usize) -> Layout {
    aligned(pages, 1)
}

fn aligned(pages: usize, align: usize) -> Layout {
    Layout::from_size_align(pages * PAGE_SIZE, align * PAGE_SIZE).unwrap()
}

/// A pointer to a word `offset` bytes into page `page` of a block.
fn word(block: NonNull<u8>, page: usize, offset: usize) -> NonNull<u64> {
    block
        .map_addr(|addr| addr.checked_add(page * PAGE_SIZE + offset).unwrap())
        .cast()
}

/// Writes a tag to the first and last word of every page.
///
/// # Safety
///
/// The block is this long and the caller's.
unsafe fn mark(block: NonNull<u8>, pages: usize, tag: u64) {
    for page in 0..pages {
        for offset in [0, PAGE_SIZE - 8] {
            // SAFETY: within the block, and aligned, as it is at a multiple of 8.
            unsafe { word(block, page, offset).write(tag + page as u64) };
        }
    }
}

/// Whether the tags are still there.
///
/// # Safety
///
/// The block was marked.
unsafe fn is_marked(block: NonNull<u8>, pages: usize, tag: u64) -> bool {
    (0..pages).all(|page| {
        [0, PAGE_SIZE - 8].into_iter().all(|offset| {
            // SAFETY: marked, hence within the block and initialised.
            unsafe { word(block, page, offset).read() == tag + page as u64 }
        })
    })
}

fn trim_all(state: &Lock<State>) -> usize {
    trim(state, |state| &mut state.ordinary) + trim(state, |state| &mut state.huge)
}

#[test]
fn the_lowest_page_that_was_freed_is_next() {
    let mut state = State::new();
    let blocks: Vec<_> = (0..100)
        .map(|_| state.alloc(layout(1), false).unwrap())
        .collect();
    assert!(blocks.is_sorted());
    for at in [70, 3, 41] {
        // SAFETY: the block came from `alloc` with this layout, and is used no more.
        unsafe { state.free(blocks[at], layout(1)) };
    }
    for at in [3, 41, 70] {
        assert_eq!(state.alloc(layout(1), false), Some(blocks[at]));
    }
}

#[test]
fn reservations_grow_are_filled_and_let_go() {
    let state = Lock::new(State::new());
    // 32 MiB, then 64, 128, 256: 15 runs of 32 MiB fill them to the last page.
    let mut blocks: Vec<_> = (0..15)
        .map(|_| state.lock().alloc(layout(MAX_RUN), false).unwrap())
        .collect();
    assert_eq!(state.lock().ordinary.count(), 4);
    blocks.push(state.lock().alloc(layout(1), false).unwrap());
    assert_eq!(state.lock().ordinary.count(), 5);
    let last = blocks.len() - 1;
    for (at, &block) in blocks.iter().enumerate() {
        let pages = if at == last { 1 } else { MAX_RUN };
        // SAFETY: the block came from `alloc` with this layout, and is used no more.
        unsafe { state.lock().free(block, layout(pages)) };
    }
    assert_eq!(trim_all(&state), (15 * MAX_RUN + 1) * PAGE_SIZE);
    assert_eq!(state.lock().ordinary.count(), 1);
    assert_eq!(trim_all(&state), 0);
}

#[test]
fn reservations_are_no_larger_than_the_largest() {
    let mut family = Family::new(false);
    // One run a step, so that full reservations are passed over without touching any memory.
    let runs: usize = (0..7)
        .map(|step: u32| (MAX_RUN << step.min(5)) / MAX_RUN)
        .sum();
    for _ in 0..runs {
        family.alloc(MAX_RUN, ALIGN_PAGES).unwrap();
    }
    assert_eq!(family.count(), 7);
    family.alloc(1, 1).unwrap();
    assert_eq!(family.count(), 8);
    assert_eq!(MAX_PAGES, MAX_RUN << 5);
}

#[cfg(target_os = "linux")]
#[test]
fn freed_pages_stay_warm_until_trimmed() {
    let state = Lock::new(State::new());
    let small = layout(32);
    for huge in [false, true] {
        let kept = state.lock().alloc(small, huge).unwrap();
        let block = state.lock().alloc(small, huge).unwrap();
        let untouched = state.lock().alloc(small, huge).unwrap();
        assert_eq!(resident(block, small.size()), 0);
        for block in [kept, block] {
            // SAFETY: the block is this long and ours.
            unsafe { mark(block, 32, 9) };
            // SAFETY: likewise.
            unsafe { populate(block, small.size()) };
        }
        // SAFETY: the block came from `alloc` with this layout, and is used no more.
        unsafe { state.lock().free(block, small) };
        let whole = small.size() / sys::hardware_page();
        assert_eq!(resident(block, small.size()), whole);
        assert_eq!(trim_all(&state), small.size());
        assert_eq!(resident(block, small.size()), 0);
        assert_eq!(resident(kept, small.size()), whole);
        // SAFETY: marked above, and still ours.
        assert!(unsafe { is_marked(kept, 32, 9) });
        for block in [kept, untouched] {
            // SAFETY: the block came from `alloc` with this layout, and is used no more.
            unsafe { state.lock().free(block, small) };
        }
        assert_eq!(trim_all(&state), 2 * small.size());
    }
}

#[test]
fn parts_of_huge_pages_come_from_warm_memory_or_where_two_mebibytes_are_used() {
    let mut state = State::new();
    assert!(state.is_worth_huge(layout(ALIGN_PAGES)));
    let blocks: Vec<_> = (0..ALIGN_PAGES)
        .map(|_| {
            assert!(!state.is_worth_huge(layout(1)), "so little is used");
            state.alloc(layout(1), false).unwrap()
        })
        .collect();
    assert!(state.is_worth_huge(layout(1)));
    // SAFETY: the block came from `alloc` with this layout, and is used no more.
    unsafe { state.free(blocks[7], layout(1)) };
    let part = state.alloc(layout(4), true).unwrap();
    assert!(state.is_worth_huge(layout(1)), "a huge page has memory");
    let rest = aligned(ALIGN_PAGES - 4, 1);
    assert!(state.alloc(rest, true).is_some());
    assert!(!state.is_worth_huge(layout(1)), "only page 7 has memory");
    assert!(state.is_worth_huge(layout(2)), "a page does not hold two");
    // SAFETY: as above.
    unsafe { state.free(part, layout(4)) };
    assert!(state.is_worth_huge(layout(1)), "a huge page has memory");
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_huge_page_holds_beside_its_first_run_is_given_back() {
    let state = Lock::new(State::new());
    let block = state.lock().alloc(layout(1), true).unwrap();
    // SAFETY: the block is this long and ours.
    unsafe { mark(block, 1, 3) };
    assert_eq!(trim_all(&state), HUGE - PAGE_SIZE);
    assert_eq!(resident(block, HUGE), resident(block, PAGE_SIZE));
    // SAFETY: marked above, and still ours.
    assert!(unsafe { is_marked(block, 1, 3) });
    // SAFETY: the block came from `alloc` with this layout, and is used no more.
    unsafe { state.lock().free(block, layout(1)) };
    assert_eq!(trim_all(&state), PAGE_SIZE);
    assert_eq!(resident(block, HUGE), 0);
}

#[test]
fn huge_blocks_start_at_huge_pages() {
    for hint in [Hint::NONE.huge(), Hint::NONE, Hint::NONE.huge().populate()] {
        let block = Mmap.alloc_pages_hinted(layout(32), hint).unwrap();
        assert_eq!(block.addr().get() % HUGE, 0);
        #[cfg(target_os = "linux")]
        if hint.is_populate() {
            assert_eq!(resident(block, HUGE), HUGE / sys::hardware_page());
        }
        // SAFETY: the block came from `Mmap` with this layout, and is used no more.
        unsafe { Mmap.free_pages(block, layout(32)) };
    }
}

#[test]
fn large_and_over_aligned_blocks_have_mappings_of_their_own() {
    for layout in [layout(513), aligned(1, 64), aligned(600, 128)] {
        assert!(has_own_mapping(layout));
        let block = Mmap.alloc_pages_hinted(layout, Hint::NONE.huge()).unwrap();
        assert_eq!(block.addr().get() % layout.align(), 0);
        let pages = layout.size() / PAGE_SIZE;
        // SAFETY: the block is this long and ours.
        unsafe { mark(block, pages, 77) };
        // SAFETY: marked.
        assert!(unsafe { is_marked(block, pages, 77) });
        // SAFETY: the block came from `Mmap` with this layout, and is used no more.
        unsafe { Mmap.free_pages(block, layout) };
        #[cfg(target_os = "linux")]
        assert_eq!(resident(block, layout.size()), 0);
    }
    let absurd = Layout::from_size_align(1 << 62, PAGE_SIZE).unwrap();
    assert!(Mmap.alloc_pages(absurd).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn discarded_pages_stay_allocated() {
    for pages in [32, 600] {
        let block = Mmap.alloc_pages(layout(pages)).unwrap();
        // SAFETY: the block is this long and ours.
        unsafe { mark(block, pages, 5) };
        // SAFETY: the pages are part of the block, and nobody uses them.
        assert!(unsafe { Mmap.discard(block, layout(16)) });
        assert_eq!(resident(block, 16 * PAGE_SIZE), 0);
        // SAFETY: the rest is as it was marked; tags count up by the page.
        assert!(unsafe { is_marked(word(block, 16, 0).cast(), pages - 16, 5 + 16) });
        // SAFETY: the block is this long and ours.
        unsafe { mark(block, pages, 6) };
        // SAFETY: the block came from `Mmap` with this layout, and is used no more.
        unsafe { Mmap.free_pages(block, layout(pages)) };
    }
}

#[cfg(target_os = "linux")]
#[test]
fn blocks_grow_and_shrink_without_copying() {
    let (small, large) = (aligned(600, 32), aligned(1500, 64));
    let mut block = Mmap.alloc_pages(small).unwrap();
    // SAFETY: the block is this long and ours.
    unsafe { mark(block, 600, 11) };
    for (old, new) in [(small, large), (large, small), (small, aligned(600, 1024))] {
        // SAFETY: the block has the layout `old` and nobody uses it.
        block = unsafe { Mmap.remap(block, old, new) }.unwrap();
        assert_eq!(block.addr().get() % new.align(), 0);
        // SAFETY: marked, and 600 pages are kept.
        assert!(unsafe { is_marked(block, 600, 11) });
    }
    let last = aligned(600, 1024);
    // SAFETY: the block has the layout `last` and nobody uses it.
    let smaller = unsafe { Mmap.remap(block, last, layout(512)) };
    assert_eq!(smaller, None, "such a block is no mapping of its own");
    // SAFETY: marked, and left as it was.
    assert!(unsafe { is_marked(block, 600, 11) });
    // SAFETY: the block has the layout it was last remapped with, and is used no more.
    unsafe { Mmap.free_pages(block, last) };
}
