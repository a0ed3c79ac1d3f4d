//! Random calls on machines of two and four nodes, by a thread that wanders, against what a list of boxes says.

use sheaves::testing::{NodeStats, Topology};
use sheaves::{AllocErrorKind, Pool, PoolBox, PrefilledSheaf};

use crate::support::{Object, Random, machine, nodes, small};

/// Runs, and calls of each.
const SEEDS: u64 = if cfg!(debug_assertions) { 60 } else { 400 };
const CALLS: usize = 300;

fn machines() -> [Topology; 4] {
    let odd = [
        Topology::new(&[("0-2", true), ("3-5", false), ("6", true), ("7", true)]),
        Topology::new(&[("0-3", false), ("4-7", false), ("", true)]),
    ];
    let [first, second] = odd.map(|machine| machine.expect("lists of processors"));
    [machine(2), machine(4), first, second]
}

/// A pool, and what it must be said to hold.
struct World {
    seed: u64,
    call: u64,
    random: Random,
    limit: Option<usize>,
    pool: Pool<Object>,
    held: Vec<(u64, PoolBox<Object>)>,
    sheaf: Option<PrefilledSheaf<Object>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let machine = &machines()[random.below(4)];
        let limit = (random.below(2) == 0).then(|| 1 + random.below(60));
        let mut builder = small("wandering")
            .sheaf_capacity([0, 1, 3, 8][random.below(4)])
            .min_partial(random.below(2) * 5);
        if let Some(limit) = limit {
            builder = builder.limit(limit).reserve(random.below(limit + 1));
        }
        Self {
            seed,
            call: 0,
            random,
            limit,
            pool: machine.build(builder).expect("options that can be"),
            held: Vec::new(),
            sheaf: None,
        }
    }

    fn lent(&self) -> usize {
        self.sheaf.as_ref().map_or(0, PrefilledSheaf::len)
    }

    /// A call for `n` slots was refused: rightly?
    fn refused(&self, kind: AllocErrorKind, n: usize) {
        assert_eq!(kind, AllocErrorKind::LimitReached);
        let taken = self.held.len() + self.lent();
        let room = self.limit.map_or(usize::MAX, |limit| limit - taken);
        let Self { seed, call, .. } = self;
        assert!(room < n, "seed {seed}, call {call}: {n} were refused");
    }

    fn allocate(&mut self) {
        match self.pool.try_alloc([self.call; 30]) {
            Ok(boxed) => self.held.push((self.call, boxed)),
            Err(error) => self.refused(error.kind(), 1),
        }
    }

    fn free(&mut self) {
        let at = self.random.below(self.held.len());
        let (word, boxed) = self.held.swap_remove(at);
        assert_eq!(*boxed, [word; 30], "seed {}: an object changed", self.seed);
    }

    fn allocate_many(&mut self) {
        let (n, call) = (self.random.below(20), self.call);
        let mut bulk = Vec::new();
        match self.pool.try_alloc_uninit_bulk(n, &mut bulk) {
            Ok(()) => {
                let written = bulk
                    .into_iter()
                    .map(|boxed| PoolBox::write(boxed, [call; 30]));
                self.held.extend(written.map(|boxed| (call, boxed)));
            }
            Err(error) => self.refused(error.kind(), n),
        }
    }

    fn lend(&mut self) {
        let n = self.random.below(20);
        match self.pool.prefill(n) {
            Ok(sheaf) => {
                assert!(sheaf.len() >= n);
                self.sheaf = Some(sheaf);
            }
            Err(error) => self.refused(error.kind(), n),
        }
    }

    fn step(&mut self) {
        self.call += 1;
        Topology::stand_on(self.random.below(8));
        match self.random.below(16) {
            0..=5 => self.allocate(),
            6..=9 if !self.held.is_empty() => self.free(),
            10 if !self.held.is_empty() => {
                let some = self.held.split_off(self.random.below(self.held.len()));
                PoolBox::free_bulk(some.into_iter().map(|(_, boxed)| boxed));
            }
            11 => self.allocate_many(),
            12 if self.sheaf.is_none() => self.lend(),
            12 => self.sheaf = None,
            13 => self.pool.flush_thread(),
            14 => {
                self.pool.shrink();
            }
            _ => {
                let call = self.call;
                let sheaf = self.sheaf.as_mut();
                let boxed = sheaf.and_then(|sheaf| sheaf.alloc([call; 30]).ok());
                self.held.extend(boxed.map(|boxed| (call, boxed)));
            }
        }
    }

    fn check(&self) {
        let (stats, of_nodes) = (self.pool.stats(), nodes(&self.pool));
        assert_eq!(
            (stats.live, stats.prefilled),
            (self.held.len() as u64, self.lent() as u64),
            "seed {}, call {}",
            self.seed,
            self.call
        );
        let parked = stats.cached + stats.barn + stats.free;
        assert_eq!(stats.slots, stats.live + stats.prefilled + parked);
        let sum = |gauge: fn(&NodeStats) -> u64| of_nodes.iter().map(gauge).sum::<u64>();
        assert_eq!(stats.slots, sum(|node| node.slots));
        assert_eq!(stats.free, sum(|node| node.free));
        assert_eq!(stats.barn, sum(|node| node.barn));
    }

    fn end(self) {
        let lent = self.lent();
        let Self {
            pool, held, sheaf, ..
        } = self;
        assert_eq!(pool.validate(), 0);
        assert!(held.iter().all(|(word, boxed)| **boxed == [*word; 30]));
        assert_eq!(pool.leaks().len(), held.len() + lent);
        drop((held, sheaf));
        pool.shrink();
        let kept = pool
            .config()
            .reserve()
            .div_ceil(pool.config().slots_per_slab());
        assert_eq!(pool.stats().slabs, kept as u64, "seed {}", self.seed);
        pool.close().expect("nothing is live");
    }
}

#[test]
fn random_calls_on_several_nodes() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..CALLS {
            world.step();
            world.check();
        }
        world.end();
    }
}
