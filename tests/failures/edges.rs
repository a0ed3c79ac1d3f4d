//! Counts that cannot be, and the first that can.

use sheaves::{AllocErrorKind, Pool, PoolBox};

use crate::support::assert_home;

/// Numbers of which nothing can hold as many, whatever a slot's size.
const TOO_MANY: [usize; 6] = [
    usize::MAX,
    usize::MAX - 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    usize::MAX / 8,
    1 << 60,
];

fn pools<T>() -> Vec<Pool<T>> {
    let mut pools = Vec::new();
    for limit in [None, Some(5), Some(usize::MAX)] {
        for capacity in [0, 1, 60] {
            let builder = Pool::builder("edges").sheaf_capacity(capacity);
            let builder = match limit {
                Some(limit) => builder.limit(limit),
                None => builder,
            };
            pools.push(builder.build().expect("a pool"));
        }
    }
    pools
}

fn refuses_impossible_counts<T: Copy>(value: T) {
    for pool in pools::<T>() {
        let kept = pool.alloc(value);
        for n in TOO_MANY {
            let kind = pool.prefill(n).map(drop).expect_err("too many").kind();
            let limited = pool.config().limit().is_some_and(|limit| limit < n);
            assert!(
                kind == AllocErrorKind::OutOfMemory
                    || (limited && kind == AllocErrorKind::LimitReached),
                "{n}: {kind:?}"
            );
            let mut boxes = Vec::new();
            pool.try_alloc_uninit_bulk(n, &mut boxes)
                .expect_err("too many");
            assert!(boxes.is_empty());
            let mut sheaf = pool.prefill(2).expect("memory");
            sheaf.refill(n).expect_err("too many");
            let held: Vec<_> = (0..2).map(|_| sheaf.alloc(value).ok()).collect();
            assert!(
                held.iter().all(Option::is_some),
                "a refused refill lost what it had"
            );
            drop((held, sheaf));
            assert_eq!((pool.stats().live, pool.stats().prefilled), (1, 0));
        }
        drop(kept);
        assert_home(&pool);
    }
}

#[test]
fn impossible_counts_are_refused() {
    refuses_impossible_counts(());
    refuses_impossible_counts(1_u8);
    refuses_impossible_counts([1_u64; 30]);
    refuses_impossible_counts([1_u8; 98_304]);
}

/// The order of slots and of slabs never makes one object two: every byte of an object is its own.
fn every_byte_is_its_own<const SIZE: usize>() {
    for pool in pools::<[u8; SIZE]>() {
        let n = pool.config().limit().map_or(9, |limit| limit.min(9));
        let mut boxes: Vec<_> = (0..n).map(|_| pool.alloc_with(|| [0; SIZE])).collect();
        for (mark, boxed) in (1_u8..).zip(&mut boxes) {
            boxed.fill(mark);
        }
        for (mark, boxed) in (1_u8..).zip(&boxes) {
            assert!(boxed.iter().all(|&byte| byte == mark), "{SIZE} bytes");
        }
        PoolBox::free_bulk(boxes);
        assert_home(&pool);
    }
}

/// Sizes on both sides of where a page holds one more, of a page, and of one and a half slabs.
#[test]
fn sizes_at_the_edges() {
    every_byte_is_its_own::<1>();
    every_byte_is_its_own::<255>();
    every_byte_is_its_own::<256>();
    every_byte_is_its_own::<257>();
    every_byte_is_its_own::<32_696>();
    every_byte_is_its_own::<32_704>();
    every_byte_is_its_own::<65_399>();
    every_byte_is_its_own::<65_400>();
    every_byte_is_its_own::<65_401>();
    every_byte_is_its_own::<65_535>();
    every_byte_is_its_own::<65_536>();
    every_byte_is_its_own::<65_537>();
    every_byte_is_its_own::<98_304>();
    every_byte_is_its_own::<196_608>();
}
