//! Objects of many sizes and alignments, slabs of many orders, sheaves and barns of many capacities.

use core::mem::MaybeUninit;

use sheaves::{BuildError, Builder, Order, Pool, PoolBox};

use crate::support::Random;

/// Bytes that one check writes at most, so that a test of large slabs ends.
const STAMPED: usize = 24 << 20;

/// Writes the whole object.
fn stamp<T>(boxed: &mut PoolBox<MaybeUninit<T>>, seed: usize) {
    let start = PoolBox::as_mut_ptr(boxed).cast::<u8>();
    let byte = u8::try_from(seed % 251).expect("below 251");
    // SAFETY: the box owns its slot, which is as large as a `T`.
    unsafe { start.write_bytes(byte, size_of::<T>()) };
    if size_of::<T>() >= 8 {
        // SAFETY: as above, and at least eight bytes; the slot may be less aligned than a `u64`.
        unsafe { start.cast::<u64>().write_unaligned(seed as u64) };
    }
}

/// Whether the object is as [`stamp`] left it.
fn is_stamped<T>(boxed: &PoolBox<MaybeUninit<T>>, seed: usize) -> bool {
    let start = PoolBox::as_ptr(boxed).cast::<u8>();
    // SAFETY: every byte of the slot was written by `stamp`.
    let bytes = unsafe { core::slice::from_raw_parts(start, size_of::<T>()) };
    let (head, tail) = bytes.split_at(if bytes.len() >= 8 { 8 } else { 0 });
    let byte = u8::try_from(seed % 251).expect("below 251");
    let tail_is_good = tail.is_empty() || (tail[0] == byte && tail[1..] == tail[..tail.len() - 1]);
    tail_is_good && (head.is_empty() || head == (seed as u64).to_ne_bytes())
}

fn check_owns<T>(pool: &Pool<T>, boxes: &[PoolBox<MaybeUninit<T>>]) {
    let step = (boxes.len() / 500).max(1);
    for boxed in boxes.iter().step_by(step) {
        let start = PoolBox::as_ptr(boxed).cast::<T>();
        assert!(pool.owns(start));
        for interior in [1, size_of::<T>() / 2, size_of::<T>().saturating_sub(1)] {
            if interior > 0 && interior < size_of::<T>() {
                assert!(
                    !pool.owns(start.wrapping_byte_add(interior)),
                    "{interior} bytes in"
                );
            }
        }
        let page = start.map_addr(|addr| addr & !0xFFFF);
        assert!(!pool.owns(page), "a header is no slot");
    }
    assert!(!pool.owns(core::ptr::null()));
    assert!(!pool.owns((&raw const step).cast()));
    assert!(!pool.owns(core::ptr::without_provenance(usize::MAX & !0xFFFF)));
}

/// Fills several slabs, looks at every slot, and frees them in random order.
fn exercise<T>(builder: Builder<T>) {
    let pool = builder.build().expect("a fine configuration");
    let config = pool.config().clone();
    let count = (config.slots_per_slab() * 3 + 3)
        .min(STAMPED / size_of::<T>().max(1))
        .clamp(3, 60_000);
    let mut boxes: Vec<_> = (0..count).map(|_| pool.alloc_uninit()).collect();
    for (seed, boxed) in boxes.iter_mut().enumerate() {
        let addr = PoolBox::as_ptr(boxed).addr();
        assert_eq!(addr % align_of::<T>(), 0);
        assert_eq!(addr % config.align(), 0);
        stamp(boxed, seed);
    }
    assert!(
        boxes
            .iter()
            .enumerate()
            .all(|(seed, boxed)| is_stamped(boxed, seed))
    );
    let mut starts: Vec<_> = boxes
        .iter()
        .map(|boxed| PoolBox::as_ptr(boxed).addr())
        .collect();
    starts.sort_unstable();
    assert!(
        starts
            .windows(2)
            .all(|pair| pair[0] + size_of::<T>().max(1) <= pair[1]),
        "slots overlap"
    );
    check_owns(&pool, &boxes);
    let stats = pool.stats();
    assert_eq!(stats.live, count as u64);
    assert_eq!(
        stats.slots,
        stats.live + stats.cached + stats.barn + stats.free
    );
    let mut random = Random::new(count as u64);
    while boxes.len() > 1 {
        drop(boxes.swap_remove(random.below(boxes.len())));
    }
    pool.shrink();
    assert_eq!(pool.stats().slabs, 1, "the slab of the last object");
    drop(boxes);
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

/// Every order that holds one object, and a few of those that do not.
fn in_every_order<T>() {
    let named = [Order::AUTO, Order::LARGE, Order::MAX];
    for order in (0..=9).map(Order::new).chain(named) {
        let builder = Pool::<T>::builder("shape").order(order);
        match builder.build() {
            Ok(pool) => drop(pool),
            Err(BuildError::OrderTooSmall { order, min, size }) => {
                assert!(order < min && size == size_of::<T>());
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        exercise(Pool::<T>::builder("shape").order(order));
    }
}

macro_rules! shapes {
    ($($name:ident: $align:literal, $size:expr;)*) => { $(
        #[test]
        fn $name() {
            #[repr(align($align))]
            #[allow(dead_code, reason = "only its shape counts; a field of no size is not told")]
            struct Shape([u8; $size]);
            in_every_order::<Shape>();
        }
    )* };
}

shapes! {
    nothing: 1, 0;
    nothing_on_a_cache_line: 64, 0;
    one_byte: 1, 1;
    three_bytes: 1, 3;
    twenty_four_bytes: 8, 24;
    two_hundred_and_forty_bytes: 8, 240;
    four_kilobytes: 8, 4096;
    four_kilobytes_on_a_page: 4096, 4096;
    forty_kilobytes: 16, 40 << 10;
    almost_a_page: 8, 65_000;
    more_than_a_page: 8, 65_544;
    a_megabyte: 64, 1 << 20;
    five_megabytes: 4096, 5 << 20;
    aligned_to_a_kilobyte: 1024, 1025;
    aligned_to_sixteen_kilobytes: 16_384, 1;
    aligned_to_half_a_page: 32_768, 1;
    large_and_aligned_to_half_a_page: 32_768, 100 << 10;
}

/// Random allocations and frees, checked against the owner's own list.
fn churn<T>(pool: &Pool<T>, steps: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut held: Vec<(usize, PoolBox<MaybeUninit<T>>)> = Vec::new();
    for step in 0..steps {
        let grows = (step / 400) % 2 == 0;
        if held.is_empty() || random.below(8) < if grows { 6 } else { 2 } {
            let mut boxed = pool.alloc_uninit();
            stamp(&mut boxed, step);
            held.push((step, boxed));
        } else {
            let (seed, boxed) = held.swap_remove(random.below(held.len()));
            assert!(is_stamped(&boxed, seed));
        }
    }
    assert!(held.iter().all(|(seed, boxed)| is_stamped(boxed, *seed)));
    assert_eq!(pool.stats().live, held.len() as u64);
    drop(held);
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn sheaves_and_barns_of_every_kind() {
    for capacity in [0, 1, 2, 7, 60, 500] {
        for (full, empty) in [(0, 0), (1, 0), (0, 1), (1, 1), (64, 64)] {
            for min_partial in [0, 1, 5] {
                let builder = Pool::<[u64; 60]>::builder("kinds").sheaf_capacity(capacity);
                let builder = builder
                    .barn(full, empty)
                    .min_partial(min_partial)
                    .order(Order::new(0));
                let pool = builder.build().unwrap();
                // A slab holds 135 of them: 500 are more than a slab.
                assert!(pool.config().slots_per_slab() < 500);
                let seed = (capacity * 100 + full * 10 + empty) as u64;
                churn(&pool, 2500, seed);
            }
        }
    }
}

#[test]
fn barely_and_by_far_too_large() {
    struct Huge(#[expect(dead_code, reason = "only its size counts")] [u8; 33 << 20]);
    let error = Pool::<Huge>::builder("huge").build().unwrap_err();
    let BuildError::ObjectTooLarge { size, max } = error else {
        panic!("{error}")
    };
    assert!(size == 33 << 20 && max < 32 << 20);
    // The largest object there may be has a pool.
    struct Largest(#[expect(dead_code, reason = "only its size counts")] [u8; (32 << 20) - 192]);
    let pool = Pool::<Largest>::builder("largest")
        .sheaf_capacity(1)
        .build()
        .unwrap();
    assert!(size_of::<Largest>() <= max);
    let mut boxed = pool.alloc_uninit();
    stamp(&mut boxed, 7);
    assert!(is_stamped(&boxed, 7));
}
