//! Phases: every thread stands at a barrier with slots parked in its sheaves while one counts.

use std::sync::{Barrier, Mutex};

use sheaves::{Pool, PoolBox};

use crate::support::{
    Gauge, Object, Random, THREADS, assert_sums, awaited, must, must_not, scaled, watched,
};

/// What the threads do in one round, drawn by one of them while the others wait.
#[derive(Clone, Debug, Default)]
struct Plan {
    /// How many each thread allocates and frees, so that it parks them.
    park: [usize; THREADS],
    /// How many each thread keeps.
    keep: [usize; THREADS],
    /// Who takes the rest.
    taker: usize,
}

impl Plan {
    fn draw(random: &mut Random, limit: usize) -> Self {
        let mut plan = Self {
            taker: random.below(THREADS),
            ..Self::default()
        };
        random.split(limit, &mut plan.park);
        let kept = random.below(limit + 1);
        random.split(kept, &mut plan.keep);
        plan
    }

    fn rest(&self, limit: usize) -> usize {
        limit - self.keep.iter().sum::<usize>()
    }
}

/// What the threads of one test share.
struct Scene<'a> {
    pool: Pool<Object>,
    gauge: &'static Gauge,
    limit: usize,
    plans: &'a [Plan],
    barrier: Barrier,
    /// Objects on their way to be freed by somebody else.
    swap: Mutex<Vec<PoolBox<Object>>>,
}

impl Scene<'_> {
    fn play(&self, own: usize) {
        for (round, plan) in self.plans.iter().enumerate() {
            // All at once: together they hold at most as many as allowed.
            let parked: Vec<_> = (0..plan.park[own]).map(|_| self.must()).collect();
            self.barrier.wait();
            drop(parked);
            self.barrier.wait();
            let kept: Vec<_> = (0..plan.keep[own]).map(|_| self.must()).collect();
            self.barrier.wait();
            // Exactly `limit - rest` are live, by construction, and everybody else stands still.
            if own == plan.taker {
                let rest: Vec<_> = (0..plan.rest(self.limit)).map(|_| self.must()).collect();
                assert_eq!(self.gauge.live(), self.limit);
                must_not(&self.pool, self.gauge);
                if round % 16 == 0 {
                    assert_sums(&self.pool);
                    assert_eq!(self.pool.stats().live, self.limit as u64);
                }
                drop(rest);
            }
            self.swap.lock().unwrap().extend(kept);
            self.barrier.wait();
            // Freed by whoever comes, so that slots are parked where they were not taken.
            while let Some(boxed) = {
                let mut swap = self.swap.lock().unwrap();
                swap.pop()
            } {
                drop(boxed);
            }
            self.barrier.wait();
        }
    }

    #[track_caller]
    fn must(&self) -> PoolBox<Object> {
        must(&self.pool, self.gauge)
    }
}

/// Plays `rounds` rounds, a few in each of many pools: a pool that has searched once parks little.
fn phases(limit: usize, rounds: usize) {
    const ROUNDS_EACH: usize = 6;
    let mut random = Random::new(limit as u64);
    for _ in 0..rounds / ROUNDS_EACH {
        let capacity = random.pick(&[0, 1, 2, 4, 60, 200]);
        let barn = random.pick(&[(10, 10), (0, 0), (1, 1), (64, 2)]);
        let plans: Vec<_> = (0..ROUNDS_EACH)
            .map(|_| Plan::draw(&mut random, limit))
            .collect();
        let builder = Pool::builder("phases").limit(limit).barn(barn.0, barn.1);
        let scene = Scene {
            pool: builder.sheaf_capacity(capacity).build().unwrap(),
            gauge: Gauge::new(limit),
            limit,
            plans: &plans,
            barrier: Barrier::new(THREADS),
            swap: Mutex::default(),
        };
        std::thread::scope(|scope| {
            for own in 0..THREADS {
                let scene = &scene;
                scope.spawn(move || awaited(|| scene.play(own)));
            }
        });
        assert_eq!(scene.gauge.live(), 0);
    }
}

/// Promise 3: with one object allowed, it can be had by any thread whenever it is not live.
#[test]
fn one_object_is_found_wherever_it_is_parked() {
    watched("phases with a limit of 1", || phases(1, scaled(6000)));
}

/// Promise 3: the same with two.
#[test]
fn two_objects_are_found_wherever_they_are_parked() {
    watched("phases with a limit of 2", || phases(2, scaled(6000)));
}

/// Promise 3: the same with enough to fill the sheaves of all threads and part of the barn.
#[test]
fn a_thousand_objects_are_found_wherever_they_are_parked() {
    watched("phases with a limit of 1000", || phases(1000, scaled(1200)));
}
