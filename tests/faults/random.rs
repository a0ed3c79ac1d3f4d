//! Random operations while allocations fail at random, against a plain model: a list of what is live.
//!
//! Whatever fails, every object is as it was made, no two share an address, and the pool's gauges are those of the model.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sheaves::{AllocErrorKind, Fault, Pool, PoolBox, PrefilledSheaf};

use crate::random_numbers::Random;
use crate::sweeps::pools;

type Object = [u64; 8];

/// What the model knows, with what the test has in hand for each.
struct World {
    pool: Pool<Object>,
    live: Vec<(PoolBox<Object>, u64)>,
    lent: Vec<PrefilledSheaf<Object>>,
    made: u64,
    failed: usize,
}

impl World {
    fn fail(&mut self, kind: AllocErrorKind) {
        // What is at hand may be nothing, and a limit may be reached.
        let usual = matches!(
            kind,
            AllocErrorKind::WouldBlock | AllocErrorKind::LimitReached
        );
        assert!(usual || kind == AllocErrorKind::Injected, "{kind:?}");
        self.failed += usize::from(kind == AllocErrorKind::Injected);
    }

    fn keep(&mut self, boxed: PoolBox<Object>, serial: u64) {
        self.live.push((boxed, serial));
    }

    fn take(&mut self, random: &mut Random) -> Option<PoolBox<Object>> {
        if self.live.is_empty() {
            return None;
        }
        let at = random.below(self.live.len());
        let (boxed, serial) = self.live.swap_remove(at);
        assert_eq!(*boxed, [serial; 8]);
        Some(boxed)
    }

    fn step(&mut self, random: &mut Random) {
        self.made += 1;
        let serial = self.made;
        match random.below(14) {
            0..=2 => match self.pool.try_alloc([serial; 8]) {
                Ok(boxed) => self.keep(boxed, serial),
                Err(error) => {
                    self.fail(error.kind());
                    assert_eq!(error.into_value(), [serial; 8]);
                }
            },
            3 => match self.pool.try_alloc_now([serial; 8]) {
                Ok(boxed) => self.keep(boxed, serial),
                Err(error) => self.fail(error.kind()),
            },
            4 => self.bulk(random),
            5 | 6 => drop(self.take(random)),
            7 => {
                let few = (0..random.below(40)).map_while(|_| self.take(random));
                PoolBox::free_bulk(few.collect::<Vec<_>>());
            }
            8 => match self.pool.prefill(random.below(9)) {
                Ok(sheaf) => self.lent.push(sheaf),
                Err(error) => self.fail(error.kind()),
            },
            9 | 10 => self.use_sheaf(random),
            11 => {
                let Some((boxed, _)) = self.live.first() else {
                    return;
                };
                match catch_unwind(AssertUnwindSafe(|| boxed.clone())) {
                    Ok(mut boxed) => {
                        *boxed = [serial; 8];
                        self.keep(boxed, serial);
                    }
                    Err(_) => self.failed += 1,
                }
            }
            12 => self.retire(random),
            _ => {
                if random.below(3) == 0 {
                    self.pool.shrink();
                } else {
                    self.pool.flush_thread();
                }
            }
        }
    }

    fn bulk(&mut self, random: &mut Random) {
        let (n, serial) = (random.below(20), self.made);
        let mut boxes = Vec::new();
        match self.pool.try_alloc_uninit_bulk(n, &mut boxes) {
            Ok(()) => assert_eq!(boxes.len(), n),
            Err(error) => {
                assert!(boxes.is_empty(), "all or nothing");
                self.fail(error.kind());
            }
        }
        for uninit in boxes {
            self.keep(PoolBox::write(uninit, [serial; 8]), serial);
        }
    }

    fn use_sheaf(&mut self, random: &mut Random) {
        let Some(mut sheaf) = self.lent.pop() else {
            return;
        };
        let (held, serial) = (sheaf.len(), self.made);
        match random.below(4) {
            0 => {
                let wanted = random.below(12);
                match sheaf.refill(wanted) {
                    Ok(()) => assert!(sheaf.len() >= wanted.max(held)),
                    Err(error) => {
                        assert!(sheaf.len() >= held, "it keeps what it had");
                        self.fail(error.kind());
                    }
                }
            }
            1 => match self.take(random).map(|boxed| sheaf.free(boxed)) {
                Some(Ok(())) => assert_eq!(sheaf.len(), held + 1),
                Some(Err(boxed)) => drop(boxed),
                None => {}
            },
            2 => return sheaf.give_back(),
            _ => {
                let boxed = sheaf.alloc([serial; 8]);
                assert_eq!(boxed.is_ok(), held > 0, "what was promised is there");
                if let Ok(boxed) = boxed {
                    self.keep(boxed, serial);
                }
            }
        }
        self.lent.push(sheaf);
    }

    #[cfg(feature = "rcu")]
    fn retire(&mut self, random: &mut Random) {
        (0..random.below(9)).for_each(|_| {
            self.take(random).into_iter().for_each(PoolBox::retire);
        });
    }

    #[cfg(not(feature = "rcu"))]
    fn retire(&mut self, random: &mut Random) {
        drop(self.take(random));
    }

    fn check(&self, what: &str) {
        let addresses: HashSet<_> = self.live.iter().map(|(b, _)| PoolBox::as_ptr(b)).collect();
        assert_eq!(addresses.len(), self.live.len(), "{what}: two in one place");
        for (boxed, serial) in &self.live {
            assert_eq!(**boxed, [*serial; 8], "{what}: an object changed");
        }
        let stats = self.pool.stats();
        let prefilled: usize = self.lent.iter().map(PrefilledSheaf::len).sum();
        assert_eq!(
            (stats.live, stats.prefilled),
            (self.live.len() as u64, prefilled as u64),
            "{what}: {stats:?}"
        );
    }
}

#[test]
fn objects_stay_what_they_are_whatever_fails() {
    crate::by_hand();
    let mut failed = 0;
    for seed in 0..12 {
        for (kind, pool) in pools().into_iter().enumerate() {
            let random = &mut Random::new(seed);
            let mut world = World {
                pool,
                live: Vec::new(),
                lent: Vec::new(),
                made: 0,
                failed: 0,
            };
            for step in 0..150 {
                if step % 50 == 0 {
                    let fault = Fault::probability([0.02, 0.2, 0.7][step / 50], seed);
                    world.pool.set_fault(Some(fault));
                }
                world.step(random);
                world.check(&format!("seed {seed}, pool {kind}, step {step}"));
            }
            failed += world.failed;
            let World {
                pool, live, lent, ..
            } = world;
            drop((live, lent));
            pool.set_fault(None);
            assert_eq!(pool.validate(), 0);
            #[cfg(feature = "rcu")]
            pool.rcu_barrier().expect("nobody is pinned");
            pool.shrink();
            assert_eq!(pool.stats().bytes, 0, "seed {seed}, pool {kind}");
            pool.close().expect("nothing is left");
        }
    }
    assert!(failed > 100, "only {failed} failed");
}
