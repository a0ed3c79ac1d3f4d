//! A thread that has no sheaves any more, at the limit.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use sheaves::Pool;

use crate::support::watched;

type Plain = [u64; 6];

const LIMIT: usize = 100;

/// Takes all that the pool may give, when the thread's sheaves are gone: from slabs, since it can have nothing else.
struct Last {
    pool: Arc<Pool<Plain>>,
    taken: Sender<usize>,
}

impl Drop for Last {
    fn drop(&mut self) {
        let all: Vec<_> = (0..=LIMIT)
            .map_while(|_| self.pool.try_alloc([1; 6]).ok())
            .collect();
        // Nobody may be left to hear it.
        let _ = self.taken.send(all.len());
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Promise 3: what is parked in the barn, and in sheaves of a thread that goes on, is found by one that can look into
/// neither.
#[test]
fn a_thread_on_its_way_out_finds_what_is_parked() {
    watched("a thread on its way out", || {
        for full in [0, 10] {
            let builder = Pool::builder("leaving").limit(LIMIT).sheaf_capacity(8);
            let pool: Pool<Plain> = builder.barn(full, 10).build().unwrap();
            let pool = Arc::new(pool);
            drop((0..LIMIT).map(|_| pool.alloc([0; 6])).collect::<Vec<_>>());
            let parked = pool.stats();
            assert_eq!(parked.barn > 0, full > 0, "{parked:?}");
            assert!(parked.cached > 0, "{parked:?}");
            let (taken, told) = channel();
            let last = Last {
                pool: Arc::clone(&pool),
                taken,
            };
            let thread = std::thread::spawn(|| {
                // Registered before the thread first uses a pool, so its destructor runs after that of its sheaves.
                LAST.with(|cell| *cell.borrow_mut() = Some(last));
                LAST.with(|cell| {
                    let last = cell.borrow();
                    drop(last.as_ref().map(|last| last.pool.alloc([2; 6])));
                });
            });
            thread.join().unwrap();
            assert_eq!(told.recv(), Ok(LIMIT), "{:?}", pool.stats());
            assert_eq!(pool.stats().live, 0);
        }
    });
}
