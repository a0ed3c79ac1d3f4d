use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;

use super::*;

impl PageMap {
    /// A map that has settled for levels.
    const fn in_levels() -> Self {
        let mut map = Self::new();
        map.base = AtomicPtr::new(LEVELS);
        map
    }
}

/// Maps live as long as the process, as the one outside tests does: their arrays and leaves are never freed.
fn maps() -> [(&'static str, &'static PageMap); 2] {
    static FLAT: PageMap = PageMap::new();
    static IN_LEVELS: PageMap = PageMap::in_levels();
    [("flat", &FLAT), ("levels", &IN_LEVELS)]
}

/// Serialises tests that use the maps above.
static SCENE: crate::sync::Lock<()> = crate::sync::Lock::new(());

const END: usize = 1 << ADDRESS_BITS;

#[test]
fn entries_tell_heads_from_tails() {
    let largest = (1 << 31) - 1;
    for id in [1, 2, 77, largest] {
        assert_eq!(
            (Entry::head(id).id(), Entry::head(id).is_head()),
            (id, true)
        );
        assert_eq!(
            (Entry::tail(id).id(), Entry::tail(id).is_head()),
            (id, false)
        );
    }
    assert_eq!((Entry::NONE.id(), Entry::NONE.is_head()), (0, false));
}

#[test]
fn any_address_may_be_asked_about() {
    let _scene = SCENE.lock();
    static FRESH: PageMap = PageMap::new();
    for map in [&FRESH, maps()[0].1, maps()[1].1] {
        for addr in [0, 1, END - 1, END, END + 1, usize::MAX / 2, usize::MAX] {
            assert_eq!(map.get(addr), Entry::NONE);
        }
    }
    assert_eq!(get(usize::MAX), Entry::NONE);
}

#[test]
fn ranges_out_of_reach_are_refused_whole() {
    let _scene = SCENE.lock();
    for (kind, map) in maps() {
        let refused = [
            (END, 1),
            (END - PAGE_SIZE, 2),
            (0, PAGES + 1),
            (PAGE_SIZE, usize::MAX),
            (usize::MAX & !(PAGE_SIZE - 1), 1),
        ];
        for (addr, pages) in refused {
            let result = map.set_range(addr, pages, |_| Entry::head(1));
            assert_eq!(result, Err(MapError::OutOfRange), "{kind}");
        }
        assert_eq!(map.get(END - 1), Entry::NONE, "{kind}");
        assert_eq!(map.get(PAGE_SIZE), Entry::NONE, "{kind}");

        map.set_range(END - PAGE_SIZE, 1, |_| Entry::head(3))
            .unwrap();
        assert_eq!(map.get(END - 1), Entry::head(3), "{kind}");
        assert_eq!(map.get(END - PAGE_SIZE - 1), Entry::NONE, "{kind}");
        map.clear_range(END - PAGE_SIZE, 1);
        assert_eq!(map.get(END - 1), Entry::NONE, "{kind}");
        map.set_range(END, 0, |_| Entry::head(1)).unwrap();
    }
}

#[test]
fn the_process_has_a_map() {
    // Nothing is mapped at the lowest addresses, so these pages are nobody else's.
    set_range(0, 2, |page| {
        if page == 0 {
            Entry::head(5)
        } else {
            Entry::tail(5)
        }
    })
    .unwrap();
    assert_eq!(get(PAGE_SIZE - 1), Entry::head(5));
    // SAFETY: the entry of this page is set.
    assert_eq!(unsafe { get_known(2 * PAGE_SIZE - 1) }, Entry::tail(5));
    assert_eq!(get(2 * PAGE_SIZE), Entry::NONE);
    clear_range(0, 2);
    assert_eq!(get(0), Entry::NONE);
}

/// Stretches of pages around the places where chunks, leaves and the map begin and end.
fn stretch() -> impl Strategy<Value = (usize, usize)> {
    let edges = [0, 40, 1 << 16, 3 << 16, 1 << 19, PAGES / 2, PAGES - 400];
    (
        prop::sample::select(edges.to_vec()),
        0_usize..200,
        0_usize..200,
    )
        .prop_map(|(edge, before, pages)| ((edge + 100).saturating_sub(before), pages))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn both_kinds_agree_with_a_table(
        steps in prop::collection::vec((stretch(), 1_u32..1 << 31, any::<bool>()), 1..40),
    ) {
        let _scene = SCENE.lock();
        let mut model = HashMap::new();
        for (step, &((first, pages), id, _)) in steps.iter().enumerate() {
            let clear = steps[step].2;
            // Only entries that are set may be cleared.
            let clear = clear && (first..first + pages).all(|page| model.contains_key(&page));
            let entry = |page| if page % 3 == 0 { Entry::head(id) } else { Entry::tail(id) };
            for (_, map) in maps() {
                if clear {
                    map.clear_range(first * PAGE_SIZE, pages);
                } else {
                    map.set_range(first * PAGE_SIZE, pages, entry).unwrap();
                }
            }
            for page in 0..pages {
                if clear {
                    model.remove(&(first + page));
                } else {
                    model.insert(first + page, entry(page));
                }
            }
            for page in first.saturating_sub(2)..(first + pages + 2).min(PAGES) {
                let expected = model.get(&page).copied().unwrap_or(Entry::NONE);
                for (kind, map) in maps() {
                    prop_assert_eq!(map.get(page * PAGE_SIZE + page % PAGE_SIZE), expected, "{}", kind);
                    if expected != Entry::NONE {
                        // SAFETY: the entry of this page is set.
                        let known = unsafe { map.get_known(page * PAGE_SIZE) };
                        prop_assert_eq!(known, expected, "{}", kind);
                    }
                }
            }
        }
        for (&page, &expected) in &model {
            for (_, map) in maps() {
                prop_assert_eq!(map.get(page * PAGE_SIZE), expected);
                map.clear_range(page * PAGE_SIZE, 1);
            }
        }
    }
}

#[test]
fn threads_that_race_for_the_first_entry_end_up_with_one_map() {
    const THREADS: usize = 8;
    static FLAT: PageMap = PageMap::new();
    static IN_LEVELS: PageMap = PageMap::in_levels();
    for map in [&FLAT, &IN_LEVELS] {
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let start = &start;
                scope.spawn(move || {
                    let id = u32::try_from(thread).unwrap() + 1;
                    start.wait();
                    map.set_range((thread + 1) * PAGE_SIZE, 1, |_| Entry::head(id))
                        .unwrap();
                    assert_eq!(map.get((thread + 1) * PAGE_SIZE), Entry::head(id));
                });
            }
        });
        for thread in 0..THREADS {
            let id = u32::try_from(thread).unwrap() + 1;
            assert_eq!(map.get((thread + 1) * PAGE_SIZE), Entry::head(id));
        }
    }
}
