//! A pool against a plain model: random calls from several threads, one at a time, after each of which every gauge,
//! every address and every refusal is what the model foresaw.
//!
//! With one call at a time a pool is deterministic, so the model says more than that nothing is lost: it says which
//! slot is handed out, and where each other slot waits. `op` decodes random bytes into operations; `drive` turns them
//! into calls, which `engine` does to the pool and `model` and `steps` to lists; `judge` compares. The fuzz target in
//! `tests/fuzz` runs the same from the fuzzer's bytes.

mod atlas;
mod drive;
mod engine;
mod faulted;
mod judge;
#[path = "../common/machine.rs"]
mod machine;
mod model;
mod op;
mod regressions;
mod slabs;
mod source;
mod steps;
#[path = "../common/watchdog.rs"]
mod watchdog;
mod worker;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, TestRunner};

use crate::drive::Reached;
use crate::op::{CONFIG_BYTES, Config, OP_BYTES, Op};
use crate::watchdog::watched;

/// Operations of the longest run.
const LONGEST: usize = 150;

fn configs() -> impl Strategy<Value = Config> {
    any::<[u8; CONFIG_BYTES]>().prop_map(Config::decode)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(any::<[u8; OP_BYTES]>().prop_map(Op::decode), 0..LONGEST)
}

fn settings() -> ProptestConfig {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/regressions.txt");
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        // Leaving out operations is worth more than making each smaller.
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(settings())]

    /// As many cases as `PROPTEST_CASES` says.
    #[test]
    fn a_pool_does_what_its_model_does(config in configs(), ops in ops()) {
        drive::run(&config, &ops);
    }
}

/// What is never reached is not tested: random runs must come to every place that is hard to come by.
#[test]
fn random_runs_go_everywhere() {
    watched("random runs", || {
        let mut runner = TestRunner::deterministic();
        let mut times = [0_u64; 20];
        for _ in 0..RUNS_THAT_GO_EVERYWHERE {
            let tree = (configs(), ops()).new_tree(&mut runner).unwrap();
            let (config, ops) = tree.current();
            let reached = drive::run(&config, &ops);
            for (sum, count) in times.iter_mut().zip(counts(&reached)) {
                *sum += count;
            }
        }
        assert!(times.iter().all(|times| *times >= 3), "{times:?}");
    });
}

/// Enough for each of [`counts`] to come up several times.
const RUNS_THAT_GO_EVERYWHERE: usize = 300;

fn counts(reached: &Reached) -> [u64; 20] {
    let stats = &reached.stats;
    let own = [
        reached.refused_at_limit,
        reached.refused_for_memory,
        reached.loosened,
        reached.cloned_after_the_end,
    ]
    .map(|count| count as u64);
    let [limit, memory, loosened, late] = own;
    [
        limit,
        memory,
        loosened,
        late,
        stats.limit_search,
        stats.order_fallback,
        stats.alloc_slab,
        stats.free_slab,
        stats.free_add_partial,
        stats.sheaf_flush,
        stats.sheaf_refill,
        stats.barn_get,
        stats.barn_get_fail,
        stats.barn_put,
        stats.barn_put_fail,
        stats.sheaf_prefill_fast,
        stats.sheaf_prefill_slow,
        stats.sheaf_prefill_oversize,
        stats.sheaf_return_fast,
        stats.sheaf_return_slow,
    ]
}
