//! Threads trade objects, end, and start anew while others drain them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sheaves::{Pool, PoolBox};

use crate::{CHOICES, Choices, Market, Stamped, assert_home, tiny};

const THREADS: u64 = 4;
/// How many threads one after the other play one part.
const LIVES: u64 = 8;

type Object<const N: usize> = PoolBox<Stamped<N>>;

struct Trader<'a, const N: usize> {
    name: u64,
    pool: &'a Pool<Stamped<N>>,
    /// Where objects have the stamp 0.
    market: &'a Market<Object<N>>,
    held: Vec<Object<N>>,
}

impl<const N: usize> Trader<'_, N> {
    fn take(&mut self, choices: &mut Choices) -> Option<Object<N>> {
        let at = (!self.held.is_empty()).then(|| choices.below(self.held.len()))?;
        let object = self.held.swap_remove(at);
        object.check(self.name);
        Some(object)
    }

    fn sell(&mut self, choices: &mut Choices) {
        let Some(mut object) = self.take(choices) else {
            return;
        };
        object.stamp(0);
        self.market.put(object);
    }

    fn buy(&mut self) {
        let Some(mut object) = self.market.take() else {
            return;
        };
        object.check(0);
        object.stamp(self.name);
        self.held.push(object);
    }

    fn use_prefilled(&mut self, choices: &mut Choices) {
        let n = choices.below(7);
        let mut sheaf = self.pool.prefill(n).expect("memory");
        for _ in 0..n {
            let object = sheaf.alloc(Stamped::new(self.name));
            self.held
                .push(object.unwrap_or_else(|_| panic!("{n} were promised")));
        }
        if let Some(object) = self.take(choices) {
            // Full unless one was taken: then it is dropped here.
            drop(sheaf.free(object));
        }
    }

    fn free_half(&mut self) {
        let half = self.held.split_off(self.held.len() / 2);
        half.iter().for_each(|object| object.check(self.name));
        PoolBox::free_bulk(half);
    }

    fn choose(&mut self, choices: &mut Choices) {
        match choices.below(64) {
            0 => self.pool.flush_thread(),
            1 => self.use_prefilled(choices),
            2 => self.free_half(),
            3..=9 => self.sell(choices),
            10..=16 => self.buy(),
            17..=40 if self.held.len() < 40 => {
                self.held.push(self.pool.alloc(Stamped::new(self.name)))
            }
            17..=24 => self
                .held
                .extend(self.pool.try_alloc_now(Stamped::new(self.name))),
            _ => drop(self.take(choices)),
        }
    }
}

fn trade<const N: usize>(pool: &Pool<Stamped<N>>) {
    let market = Market::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let drainer = scope.spawn(|| {
            let mut choices = Choices::new(1000);
            while !done.load(Ordering::Relaxed) {
                match choices.below(3) {
                    0 => _ = pool.stats(),
                    _ => _ = pool.shrink(),
                }
            }
        });
        let parts: Vec<_> = (1..=THREADS)
            .map(|part| {
                let market = &market;
                scope.spawn(move || {
                    for life in 0..LIVES {
                        let name = part * LIVES + life;
                        thread::scope(|scope| {
                            scope
                                .spawn(move || live(name, pool, market))
                                .join()
                                .expect("it did well")
                        });
                    }
                })
            })
            .collect();
        parts
            .into_iter()
            .for_each(|part| part.join().expect("it did well"));
        done.store(true, Ordering::Relaxed);
        // The end of a scope is an order that ThreadSanitizer does not see, a join is one.
        drainer.join().expect("it did well");
    });
    while let Some(object) = market.take() {
        object.check(0);
    }
    assert_home(pool);
}

/// One thread's life; what it holds in the end goes to market or dies with it.
fn live<const N: usize>(name: u64, pool: &Pool<Stamped<N>>, market: &Market<Object<N>>) {
    let mut choices = Choices::new(name);
    let mut trader = Trader {
        name,
        pool,
        market,
        held: Vec::new(),
    };
    for _ in 0..CHOICES / usize::try_from(LIVES).expect("a few") {
        trader.choose(&mut choices);
    }
    trader.sell(&mut choices);
    trader.held.iter().for_each(|object| object.check(name));
}

#[test]
fn small_objects_change_hands() {
    trade(&tiny::<3>("stress-small").build().unwrap());
}

/// Seven to a slab: slabs come and go all the time.
#[test]
fn large_objects_change_hands() {
    trade(&tiny::<1024>("stress-large").build().unwrap());
}

#[test]
fn cleared_objects_change_hands() {
    trade(&tiny::<5>("stress-cleared").zero_on_free().build().unwrap());
}

#[test]
fn objects_without_sheaves_change_hands() {
    trade(&tiny::<7>("stress-bare").sheaf_capacity(0).build().unwrap());
}
