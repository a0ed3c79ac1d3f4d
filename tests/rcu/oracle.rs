//! Random operations against a plain model, which knows at each step how many objects are live, how many retired, and
//! which of them a pinned reader keeps. In a process of its own and without a drain thread: there nobody else reclaims,
//! and the gauges are exact.

use std::sync::Arc;
use std::thread;

use sheaves::rcu::{self, BarrierError, Guard};
use sheaves::{AllocErrorKind, Builder, DebugFlags, Pool, PoolBox};

use crate::isolated::isolated;
use crate::random::Random;
use crate::support::{Count, Token, check};

const SEEDS: usize = 24;
const STEPS: usize = 250;
const LIMIT: usize = 150;

struct World {
    pool: Pool<Token>,
    count: Arc<Count>,
    live: Vec<PoolBox<Token>>,
    /// Objects that were made.
    made: usize,
    /// Objects dropped by their owner.
    freed: usize,
    retired: usize,
    /// Of the retired ones, the first so many are known to be dropped.
    reclaimed: usize,
    /// Readers, and how many were retired before each.
    readers: Vec<(Guard, usize)>,
    limit: usize,
}

impl World {
    fn new(builder: Builder<Token>, limit: Option<usize>) -> Self {
        let builder = match limit {
            Some(limit) => builder.limit(limit),
            None => builder,
        };
        Self {
            pool: builder.build().expect("a possible pool"),
            count: Count::new(),
            live: Vec::new(),
            made: 0,
            freed: 0,
            retired: 0,
            reclaimed: 0,
            readers: Vec::new(),
            limit: limit.unwrap_or(usize::MAX),
        }
    }

    fn alloc(&mut self, n: usize) {
        for _ in 0..n {
            self.made += 1;
            let token = Token::new(self.made as u64, &self.count);
            match self.pool.try_alloc(token) {
                Ok(token) => self.live.push(token),
                Err(refused) => {
                    assert_eq!(refused.kind(), AllocErrorKind::LimitReached);
                    let still = self.pool.stats().retired;
                    assert_eq!(self.live.len() as u64 + still, self.limit as u64);
                    // The value came back, and goes as any other.
                    drop(refused);
                    self.freed += 1;
                }
            }
        }
    }

    fn take(&mut self, n: usize, random: &mut Random) -> Vec<PoolBox<Token>> {
        let n = n.min(self.live.len());
        let some = (0..n).map(|_| self.live.swap_remove(random.below(self.live.len())));
        some.collect()
    }

    /// Here, or on a thread that ends.
    fn retire(&mut self, boxes: Vec<PoolBox<Token>>, elsewhere: bool) {
        self.retired += boxes.len();
        let retire = || boxes.into_iter().for_each(PoolBox::retire);
        if elsewhere {
            thread::scope(|scope| scope.spawn(retire).join()).expect("it does not panic");
        } else {
            retire();
        }
    }

    fn wait(&mut self) {
        let done = self.pool.rcu_barrier();
        if self.readers.is_empty() {
            assert_eq!(done, Ok(()));
            self.reclaimed = self.retired;
            assert_eq!(self.pool.stats().retired, 0);
        } else {
            assert_eq!(done, Err(BarrierError::Pinned));
        }
    }

    fn drain(&mut self) {
        let before = self.count.dropped();
        let drained = rcu::drain() + rcu::drain();
        assert_eq!(self.count.dropped() - before, drained);
        if self.readers.is_empty() {
            assert_eq!(
                self.count.dropped(),
                self.freed + self.retired,
                "two drains"
            );
            self.reclaimed = self.retired;
        } else {
            assert_eq!(drained, 0, "dropped by a thread that is pinned");
        }
    }

    fn compare(&self) {
        let stats = self.pool.stats();
        check(&stats);
        let dropped = self.count.dropped() - self.freed;
        assert_eq!(stats.live, self.live.len() as u64);
        assert_eq!(stats.retired, (self.retired - dropped) as u64);
        // The first reader keeps what was retired after it was pinned.
        let most = self.readers.first().map_or(self.retired, |(_, n)| *n);
        assert!((self.reclaimed..=most).contains(&dropped), "{dropped}");
        assert!(self.live.len() + self.retired - dropped <= self.limit);
        self.live.iter().for_each(|token| assert!(token.id() > 0));
    }

    fn step(&mut self, random: &mut Random) {
        let n = 1 + random.below(20);
        match random.below(32) {
            0..=9 => self.alloc(n),
            10..=13 => {
                let some = self.take(n, random);
                self.freed += some.len();
                drop(some);
            }
            14..=22 => {
                let some = self.take(n, random);
                self.retire(some, random.below(3) == 0);
            }
            23 | 24 if self.readers.len() < 3 => self.readers.push((rcu::pin(), self.retired)),
            23..=26 if !self.readers.is_empty() => {
                // A guard that is nested: the thread stays pinned since the first.
                self.readers.pop();
            }
            27 => self.wait(),
            28 | 29 => self.drain(),
            30 => self.pool.flush_thread(),
            _ => {
                self.pool.shrink();
            }
        }
    }

    /// All goes, and the pool with it.
    fn end(mut self) {
        self.readers.clear();
        let rest = std::mem::take(&mut self.live);
        self.retire(rest, false);
        let Self {
            pool, count, made, ..
        } = self;
        drop(pool);
        while count.dropped() < made {
            rcu::drain();
        }
        assert_eq!(count.dropped(), made);
        assert!(!sheaves::pools().iter().any(|pool| pool.name() == "oracle"));
    }
}

#[test]
fn retired_objects_are_where_a_plain_model_says() {
    isolated(
        "oracle::retired_objects_are_where_a_plain_model_says",
        || {
            rcu::set_manual(true);
            let shapes: [fn(Builder<Token>) -> Builder<Token>; 6] = [
                |builder| builder,
                |builder| builder.sheaf_capacity(0),
                |builder| builder.sheaf_capacity(1).barn(0, 0),
                |builder| builder.sheaf_capacity(4).barn(1, 1).min_partial(0),
                |builder| builder.sheaf_capacity(7).zero_on_free(),
                |builder| builder.debug(DebugFlags::SANITY),
            ];
            for seed in 0..SEEDS {
                let shape = shapes[seed % shapes.len()];
                let limit = (seed / 6 % 2 == 1).then_some(LIMIT);
                let mut world = World::new(shape(Pool::builder("oracle")), limit);
                let mut random = Random::new(seed as u64 + 1);
                for step in 0..STEPS {
                    world.step(&mut random);
                    let compared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        world.compare();
                    }));
                    assert!(compared.is_ok(), "seed {seed}, step {step}");
                }
                world.end();
            }
        },
    );
}
