//! Threads that together never want more than the limit, so that nobody may ever be refused.

use sheaves::{Pool, PoolBox, PrefilledSheaf};

use crate::support::{Gauge, Object, Random, THREADS, assert_sums, must, scaled, watched};

/// Runs `body` on `threads` threads and waits until they are gone, destructors of thread-locals included.
fn on_threads(threads: usize, body: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let body = &body;
                scope.spawn(move || body(thread))
            })
            .collect();
        handles
            .into_iter()
            .for_each(|handle| handle.join().unwrap());
    });
}

/// Allocates and frees at random, with at most `share` objects at a time.
fn single(
    pool: &Pool<Object>,
    gauge: &'static Gauge,
    share: usize,
    steps: usize,
    random: &mut Random,
) {
    let mut kept: Vec<PoolBox<Object>> = Vec::new();
    for step in 0..steps {
        // Bursts up and down, so that sheaves fill and run empty.
        let up = (step / (2 * share + 1)) % 2 == 0;
        if kept.len() < share && (kept.is_empty() || up || random.below(4) == 0) {
            kept.push(must(pool, gauge));
        } else {
            let at = random.below(kept.len());
            drop(kept.swap_remove(at));
        }
    }
}

/// Promise 3: eight threads with an eighth of the limit each.
#[test]
fn threads_with_a_share_each_are_never_refused() {
    watched("shares", || {
        for limit in [1, 2, 8, 16, 1000] {
            for capacity in [0, 1, 3, 60] {
                let threads = THREADS.min(limit);
                let builder = Pool::builder("shares").limit(limit);
                let pool = builder.sheaf_capacity(capacity).build().unwrap();
                let gauge = Gauge::new(limit);
                on_threads(threads, |thread| {
                    let mut random = Random::new(thread as u64);
                    single(&pool, gauge, limit / threads, scaled(40_000), &mut random);
                });
                assert_sums(&pool);
                assert_eq!((gauge.live(), pool.stats().live), (0, 0));
            }
        }
    });
}

/// What one thread of the mixes holds.
struct Mixer<'a> {
    pool: &'a Pool<Object>,
    gauge: &'static Gauge,
    capacity: usize,
    share: usize,
    kept: Vec<PoolBox<Object>>,
    sheaves: Vec<PrefilledSheaf<Object>>,
}

impl Mixer<'_> {
    /// Slots this thread has, prefilled ones included.
    fn held(&self) -> usize {
        self.kept.len() + self.sheaves.iter().map(PrefilledSheaf::len).sum::<usize>()
    }

    fn room(&self) -> usize {
        self.share - self.held()
    }

    fn step(&mut self, random: &mut Random) {
        let room = self.room();
        match random.below(10) {
            0 | 1 if room > 0 => self.kept.push(must(self.pool, self.gauge)),
            2 if room > 0 => self.bulk(1 + random.below(room)),
            // A sheaf may hold its capacity, whatever is asked for.
            3 if room >= self.capacity => self.prefill(random.below(self.capacity + 1)),
            4 if room > self.capacity => {
                self.prefill(self.capacity + 1 + random.below(room - self.capacity));
            }
            5 => self.refill(random),
            6 => self.use_sheaf(random),
            7 if !self.sheaves.is_empty() => {
                let at = random.below(self.sheaves.len());
                self.sheaves.swap_remove(at).give_back();
            }
            8 => {
                let from = random.below(self.kept.len() + 1);
                PoolBox::free_bulk(self.kept.drain(from..));
            }
            _ if !self.kept.is_empty() => {
                let at = random.below(self.kept.len());
                drop(self.kept.swap_remove(at));
            }
            _ => {}
        }
    }

    fn bulk(&mut self, n: usize) {
        let mut boxes = Vec::new();
        let result = self.pool.try_alloc_uninit_bulk(n, &mut boxes);
        assert!(
            result.is_ok(),
            "a bulk of {n}: {result:?}, {:?}",
            self.pool.stats()
        );
        let gauge = self.gauge;
        let written = boxes
            .into_iter()
            .map(|boxed| PoolBox::write(boxed, gauge.object()));
        self.kept.extend(written);
    }

    fn prefill(&mut self, n: usize) {
        let sheaf = self.pool.prefill(n);
        assert!(
            sheaf.is_ok(),
            "a prefill of {n}: {sheaf:?}, {:?}",
            self.pool.stats()
        );
        let sheaf = sheaf.unwrap();
        assert!(sheaf.len() >= n && sheaf.len() <= n.max(self.capacity));
        self.sheaves.push(sheaf);
    }

    /// Refills a sheaf, which may fill it up.
    fn refill(&mut self, random: &mut Random) {
        let room = self.room();
        let Some(sheaf) = self.sheaves.last_mut() else {
            return;
        };
        if sheaf.capacity() - sheaf.len() > room {
            return;
        }
        let n = random.below(sheaf.capacity() + 1);
        let result = sheaf.refill(n);
        assert!(
            result.is_ok(),
            "a refill to {n}: {result:?}, {:?}",
            self.pool.stats()
        );
        assert!(sheaf.len() >= n);
    }

    /// Moves objects out of a sheaf, and some of them back.
    fn use_sheaf(&mut self, random: &mut Random) {
        let Some(sheaf) = self.sheaves.last_mut() else {
            return;
        };
        for _ in 0..random.below(sheaf.len() + 1) {
            let gauge = self.gauge;
            let boxed = sheaf.alloc_with(|| gauge.object());
            self.kept
                .push(boxed.unwrap_or_else(|_| panic!("it has some")));
        }
        for _ in 0..random.below(self.kept.len() + 1) {
            let Some(boxed) = self.kept.pop() else { return };
            if let Err(back) = sheaf.free(boxed) {
                return self.kept.push(back);
            }
        }
    }
}

/// Promise 3: prefilling, refilling and bulk take no more than they say, and find what is parked.
#[test]
fn mixed_operations_within_a_share_are_never_refused() {
    watched("mixes", || {
        for (capacity, share) in [(1, 1), (4, 5), (4, 30), (60, 125), (60, 60)] {
            let limit = share * THREADS;
            let builder = Pool::builder("mixes").limit(limit);
            let pool = builder.sheaf_capacity(capacity).build().unwrap();
            let gauge = Gauge::new(limit);
            on_threads(THREADS, |thread| {
                let mut random = Random::new(thread as u64 + 100);
                let mut mixer = Mixer {
                    pool: &pool,
                    gauge,
                    capacity,
                    share,
                    kept: Vec::new(),
                    sheaves: Vec::new(),
                };
                for _ in 0..scaled(20_000) {
                    mixer.step(&mut random);
                }
            });
            assert_sums(&pool);
            let stats = pool.stats();
            assert_eq!((gauge.live(), stats.live, stats.prefilled), (0, 0, 0));
            assert_eq!(pool.handles(), 1);
        }
    });
}
