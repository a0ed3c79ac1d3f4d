//! A prefilled sheaf gives what it holds, whatever happens elsewhere.

use std::sync::{Arc, Barrier};

use sheaves::{AllocErrorKind, Pool, PrefilledSheaf};

use crate::support::{Gated, SEQ, THREADS, awaited, watched};

type Node = [u64; 12];

/// Uses a sheaf up, frees into it, and uses it up again: `n` slots each time.
fn use_up(sheaf: &mut PrefilledSheaf<Node>, n: usize) {
    let before = sheaf.len();
    assert!(before >= n);
    for round in 0..3_u64 {
        let held = sheaf.len();
        let mut boxes: Vec<_> = (0..held)
            .map(|i| match i % 2 {
                0 => sheaf.alloc([round; 12]).expect("prefilled"),
                _ => sheaf
                    .alloc_with(|| [round; 12])
                    .unwrap_or_else(|_| panic!("prefilled")),
            })
            .collect();
        assert_eq!(sheaf.alloc([9; 12]).unwrap_err().into_value(), [9; 12]);
        assert!(boxes.iter().all(|boxed| **boxed == [round; 12]));
        // One stays out in each round but the last.
        let stays = if round < 2 { boxes.pop() } else { None };
        for boxed in boxes {
            sheaf
                .free(boxed)
                .expect("it has room for what came out of it");
        }
        drop(stays);
    }
    assert_eq!(sheaf.len(), before.saturating_sub(2));
}

/// Promise 3: others are at the limit, and the sheaf still gives.
#[test]
fn a_sheaf_gives_while_others_are_at_the_limit() {
    for (limit, n) in [
        (1, 1),
        (2, 2),
        (2, 1),
        (100, 40),
        (100, 100),
        (1000, 60),
        (1000, 61),
        (1000, 300),
    ] {
        let pool = Pool::<Node>::builder("at_limit")
            .limit(limit)
            .build()
            .unwrap();
        let mut sheaf = pool.prefill(n).unwrap();
        let rest = limit - sheaf.len();
        let kept: Vec<_> = (0..rest)
            .map(|_| pool.try_alloc([7; 12]).unwrap())
            .collect();
        for _ in 0..10 {
            let error = pool.try_alloc([0; 12]).unwrap_err();
            assert_eq!(error.kind(), AllocErrorKind::LimitReached);
        }
        use_up(&mut sheaf, n);
        assert!(kept.iter().all(|boxed| **boxed == [7; 12]));
    }
}

/// Promise 3: memory is out, and the source says so at every call.
#[test]
fn a_sheaf_gives_while_memory_is_out() {
    for n in [1, 5, 60, 61, 500] {
        let source = Arc::new(Gated::default());
        let builder = Pool::<Node>::builder("memory_out").source(Arc::clone(&source));
        let pool = builder.build().unwrap();
        let mut sheaf = pool.prefill(n).unwrap();
        source.shut(true);
        // Others take all there is.
        let kept: Vec<_> = core::iter::from_fn(|| pool.try_alloc([7; 12]).ok()).collect();
        assert!(source.refusals.load(SEQ) > 0);
        let stats = pool.stats();
        assert_eq!(stats.live + stats.prefilled, stats.slots, "{stats:?}");
        let refusals = source.refusals.load(SEQ);
        use_up(&mut sheaf, n);
        assert_eq!(source.refusals.load(SEQ), refusals, "the source was asked");
        drop((kept, sheaf));
        assert_eq!(pool.stats().live, 0);
    }
}

/// Promises 3 and 5: the last handle is gone, memory is out, and the sheaf is used by another thread.
#[test]
fn a_sheaf_gives_after_the_last_handle() {
    for n in [1, 60, 300] {
        let source = Arc::new(Gated::default());
        let builder = Pool::<Node>::builder("no_handle").source(Arc::clone(&source));
        let pool = builder.limit(1000).build().unwrap();
        let kept = pool.alloc([3; 12]);
        let mut sheaf = pool.prefill(n).unwrap();
        drop(pool);
        source.shut(true);
        let thread = std::thread::spawn(move || {
            use_up(&mut sheaf, n);
            sheaf
        });
        let mut sheaf = thread.join().unwrap();
        use_up(&mut sheaf, n.saturating_sub(2));
        drop(sheaf);
        assert_eq!((*kept, kept.clone()[0]), ([3; 12], 3));
        drop(kept);
        assert_eq!(Arc::strong_count(&source), 1, "the pool is gone");
    }
}

/// Promises 3 and 6: all at once, with threads that search for slots at the limit all the time.
#[test]
fn sheaves_give_under_searches() {
    watched("sheaves under searches", || {
        const EACH: usize = 70;
        let pool = Pool::<Node>::builder("searches")
            .limit(EACH * THREADS)
            .build()
            .unwrap();
        let barrier = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let work = || {
                    for _ in 0..50 {
                        let mut sheaf = pool.prefill(EACH).unwrap();
                        // Now all that is allowed is prefilled.
                        barrier.wait();
                        assert!(pool.try_alloc([0; 12]).is_err());
                        barrier.wait();
                        use_up(&mut sheaf, EACH);
                        barrier.wait();
                        drop(sheaf);
                        barrier.wait();
                    }
                };
                scope.spawn(move || awaited(work));
            }
        });
        assert_eq!(pool.stats().prefilled, 0);
    });
}
