//! Retiring when there is no memory for sheaves, nor for anything else.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use sheaves::{Order, Pool, PoolBox, rcu};

use crate::failing::{Plan, Source, failing_at};

struct Counted([u64; 29], Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.0, [7; 29], "written to while a reader could see it");
        self.1.fetch_add(1, SeqCst);
    }
}

/// Promise 11 and the rest: nothing is lost, nothing written to, and no object is refused.
#[test]
fn retiring_never_fails() {
    let _one = crate::alone();
    for capacity in [0, 1, 5, 60] {
        let source = Source::new();
        let builder = Pool::builder("oom").source(Arc::clone(&source));
        let pool = builder
            .sheaf_capacity(capacity)
            .order(Order::new(0))
            .build()
            .expect("memory is there");
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut total = 0;
        for n in [1, 10, 700] {
            let boxes: Vec<_> = (0..n)
                .map(|_| pool.alloc(Counted([7; 29], Arc::clone(&dropped))))
                .collect();
            let guard = rcu::pin();
            let ((), _) = failing_at(Plan::all(), || {
                boxes.into_iter().for_each(PoolBox::retire);
            });
            assert_eq!(dropped.load(SeqCst), total);
            assert_eq!(pool.stats().retired, n as u64);
            drop(guard);
            pool.rcu_barrier().expect("nobody is pinned");
            total += n;
            assert_eq!((dropped.load(SeqCst), pool.stats().retired), (total, 0));
        }
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
        // Also when the pool ends with some of them marked.
        let boxes: Vec<_> = (0..100)
            .map(|_| pool.alloc(Counted([7; 29], Arc::clone(&dropped))))
            .collect();
        let ((), _) = failing_at(Plan::all(), || {
            boxes.into_iter().for_each(PoolBox::retire);
            drop(pool);
        });
        while dropped.load(SeqCst) < total + 100 {
            rcu::drain();
        }
    }
}
