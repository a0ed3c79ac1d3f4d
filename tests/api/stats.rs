//! What a pool says of itself, against a plain count.

use std::sync::Barrier;

use sheaves::{Order, Pool, PoolBox, PrefilledSheaf, Stats};

use crate::support::{Random, isolated};

type Object = [u64; 60];

#[track_caller]
fn check(stats: &Stats, live: usize, prefilled: usize) {
    assert_eq!(
        (stats.live, stats.prefilled),
        (live as u64, prefilled as u64),
        "{stats:?}"
    );
    let sum = stats.live + stats.prefilled + stats.cached + stats.barn + stats.free;
    assert_eq!(stats.slots, sum, "{stats:?}");
    assert!(stats.sheaf_free <= stats.sheaf_alloc, "{stats:?}");
    assert_eq!(stats.slabs, stats.alloc_slab - stats.free_slab, "{stats:?}");
}

/// The user's side of a pool.
struct Model<'a> {
    pool: &'a Pool<Object>,
    random: Random,
    boxes: Vec<PoolBox<Object>>,
    sheaves: Vec<PrefilledSheaf<Object>>,
}

impl Model<'_> {
    fn step(&mut self) {
        let Self {
            pool,
            random,
            boxes,
            sheaves,
        } = self;
        match random.below(15) {
            0..4 => boxes.push(pool.alloc([1; 60])),
            4..7 => drop((!boxes.is_empty()).then(|| boxes.swap_remove(random.below(boxes.len())))),
            7 => boxes.extend(pool.try_alloc_now([2; 60])),
            8 => {
                let mut uninit = Vec::new();
                pool.try_alloc_uninit_bulk(random.below(150), &mut uninit)
                    .expect("memory is there");
                boxes.extend(
                    uninit
                        .into_iter()
                        .map(|boxed| PoolBox::write(boxed, [3; 60])),
                );
            }
            9 => PoolBox::free_bulk(boxes.split_off(boxes.len() - random.below(boxes.len() + 1))),
            10 => sheaves.push(pool.prefill(random.below(90)).expect("memory is there")),
            11 => drop(
                (!sheaves.is_empty()).then(|| sheaves.swap_remove(random.below(sheaves.len()))),
            ),
            12 => {
                let Some(sheaf) = sheaves.last_mut() else {
                    return;
                };
                sheaf.refill(random.below(120)).expect("memory is there");
            }
            13 => {
                let Some(sheaf) = sheaves.last_mut() else {
                    return;
                };
                boxes.extend(sheaf.alloc([4; 60]));
                let back = boxes.pop().and_then(|boxed| sheaf.free(boxed).err());
                boxes.extend(back);
            }
            _ if random.below(4) == 0 => drop(pool.shrink()),
            _ if random.below(3) == 0 => pool.flush_thread(),
            _ => boxes.extend(boxes.last().cloned()),
        }
    }
}

#[test]
fn gauges_agree_with_a_plain_count() {
    for (seed, (capacity, barn)) in [
        (0, (10, 10)),
        (1, (0, 0)),
        (7, (1, 0)),
        (20, (2, 2)),
        (60, (10, 10)),
    ]
    .into_iter()
    .enumerate()
    {
        let builder = Pool::<Object>::builder("model")
            .sheaf_capacity(capacity)
            .barn(barn.0, barn.1);
        let pool = builder
            .order(Order::new(0))
            .min_partial(seed)
            .build()
            .unwrap();
        let random = Random::new(seed as u64 + 11);
        let mut model = Model {
            pool: &pool,
            random,
            boxes: Vec::new(),
            sheaves: Vec::new(),
        };
        for _ in 0..1500 {
            model.step();
            let prefilled = model.sheaves.iter().map(PrefilledSheaf::len).sum();
            check(&pool.stats(), model.boxes.len(), prefilled);
        }
        drop((model.boxes, model.sheaves));
        pool.flush_thread();
        pool.shrink();
        let stats = pool.stats();
        check(&stats, 0, 0);
        assert_eq!(
            (stats.bytes, stats.slabs, stats.slots),
            (0, 0, 0),
            "{stats:?}"
        );
        assert_eq!(
            stats.sheaf_alloc, stats.sheaf_free,
            "sheaves of {capacity}: no array is left"
        );
    }
}

#[test]
fn shrink_finds_what_idle_threads_hold() {
    const THREADS: usize = 8;
    let pool = Pool::<Object>::builder("idle")
        .sheaf_capacity(60)
        .build()
        .unwrap();
    let barrier = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        let idle = || {
            scope.spawn(|| {
                drop((0..500).map(|i| pool.alloc([i; 60])).collect::<Vec<_>>());
                barrier.wait();
                barrier.wait();
                // The local works on after it was drained.
                drop((0..500).map(|i| pool.alloc([i; 60])).collect::<Vec<_>>());
                barrier.wait();
                barrier.wait();
            })
        };
        let threads: Vec<_> = (0..THREADS).map(|_| idle()).collect();
        let seen = [(); 2].map(|()| {
            barrier.wait();
            let seen = (pool.stats(), pool.shrink(), pool.stats());
            barrier.wait();
            seen
        });
        // A scope by itself does not wait for destructors of thread-locals.
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        // Only now: a panic before would leave the threads at the barrier.
        for (stats, shrunk, after) in seen {
            assert!(stats.cached >= THREADS as u64 * 60, "{stats:?}");
            assert_eq!(stats.locals, THREADS as u64);
            assert_eq!(shrunk as u64, stats.bytes, "all of it in one call");
            assert_eq!((after.bytes, after.cached, after.barn), (0, 0, 0));
        }
    });
    assert_eq!(
        pool.stats().locals,
        0,
        "threads that are gone have no sheaves"
    );
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn a_reserve_is_kept() {
    isolated("stats::a_reserve_is_kept", || {
        let pool = Pool::<Object>::builder("reserve")
            .reserve(1000)
            .order(Order::new(0))
            .build()
            .unwrap();
        let per_slab = pool.config().slots_per_slab() as u64;
        let wanted = 1000_u64.div_ceil(per_slab);
        assert_eq!(pool.stats().slabs, wanted);
        drop((0..5000).map(|i| pool.alloc([i; 60])).collect::<Vec<_>>());
        pool.shrink();
        assert_eq!(pool.stats().slabs, wanted);
        sheaves::shrink();
        assert_eq!(pool.stats().slabs, wanted);
    });
}

#[test]
fn slabinfo_has_the_kernels_columns() {
    isolated("stats::slabinfo_has_the_kernels_columns", || {
        const HEADER: &str = "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : \
        tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>";
        let pool = Pool::<[u8; 240]>::builder("slabinfo_columns")
            .order(Order::new(2))
            .build()
            .unwrap();
        let kept: Vec<_> = (0..10).map(|i| pool.alloc([i; 240])).collect();
        let text = sheaves::slabinfo().to_string();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("slabinfo - version: 2.1"));
        assert_eq!(lines.next(), Some(HEADER));
        let fields = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let line = fields(
            lines
                .find(|line| line.starts_with("slabinfo_columns "))
                .expect("it is listed"),
        );
        // The header's `#` has no counterpart in a line.
        assert_eq!(line.len(), HEADER.split_whitespace().count() - 1);
        let stats = pool.stats();
        let active = stats.slots - stats.free;
        assert!(active >= 10);
        assert_eq!(
            line[1..6],
            [active, stats.slots, 240, 272 * 4, 4].map(|n| n.to_string())
        );
        assert_eq!(
            [&line[6], &line[7], &line[11], &line[12]],
            [":", "tunables", ":", "slabdata"]
        );
        assert_eq!(
            line[13..],
            [stats.slabs, stats.slabs, 0].map(|n| n.to_string())
        );
        let info = sheaves::slabinfo();
        let info = info
            .iter()
            .find(|info| info.name() == "slabinfo_columns")
            .unwrap();
        assert_eq!((info.config().stride(), info.stats().live), (240, 10));
        drop((pool, kept));
        assert!(
            sheaves::pools()
                .iter()
                .all(|info| info.name() != "slabinfo_columns"),
            "gone"
        );
    });
}
