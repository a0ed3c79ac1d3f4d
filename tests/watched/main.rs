//! Stray accesses under a memory checker: told at the faulting line, wherever the slot waits.
//!
//! Each case runs in a process of its own, once with the fault and once with the same access where it is allowed.
//! Under AddressSanitizer that process is this program; with the feature `valgrind` it is Valgrind, which runs it.
#![cfg(any(sheaves_asan, feature = "valgrind"))]

use core::hint::black_box;
#[cfg(feature = "rcu")]
use core::sync::atomic::{AtomicU64, Ordering};
use std::process::{Command, Output};

use sheaves::{DebugFlags, Pool, PoolBox};
#[cfg(feature = "rcu")]
use sheaves::{StablePool, TypeStable};

type Object = [u64; 30];

const CASE: &str = "WATCHED_TEST_CASE";

/// The access. Its name is looked for in what the checker says.
#[inline(never)]
fn the_faulting_read(object: *const u8) -> u8 {
    // SAFETY: none in the cases with a fault; that it is told is what they test.
    unsafe { object.read_volatile() }
}

/// Where a freed object waits, and how it got there: pool, address of the freed one, and one that is live.
type Case = fn() -> Ends;

/// Addresses: one that must not be used, one that may be, and what keeps them where they are.
struct Ends {
    bad: *const u8,
    good: *const u8,
    _kept: Box<dyn std::any::Any>,
}

fn ends(bad: *const u8, live: PoolBox<Object>, pool: Pool<Object>) -> Ends {
    let good = PoolBox::as_ptr(&live).cast();
    Ends {
        bad,
        good,
        _kept: Box::new((live, pool)),
    }
}

fn address(boxed: &PoolBox<Object>) -> *const u8 {
    PoolBox::as_ptr(boxed).cast()
}

fn in_a_sheaf() -> Ends {
    let pool = Pool::new("sheaf");
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    drop(freed);
    assert!(pool.stats().cached > 0);
    ends(bad, live, pool)
}

fn in_the_barn() -> Ends {
    let pool = Pool::builder("barn")
        .sheaf_capacity(2)
        .build()
        .expect("possible options");
    let live = pool.alloc([1; 30]);
    let freed: Vec<_> = (0..12).map(|_| pool.alloc([2; 30])).collect();
    // What was freed first is in the sheaf that left the thread first.
    let bad = address(&freed[0]);
    freed.into_iter().for_each(drop);
    assert!(pool.stats().barn >= 2);
    ends(bad, live, pool)
}

fn in_a_slab() -> Ends {
    let pool = Pool::new("slab");
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    drop(freed);
    pool.flush_thread();
    assert_eq!(pool.stats().cached, 0);
    ends(bad, live, pool)
}

fn in_a_lent_sheaf() -> Ends {
    let pool = Pool::new("lent");
    let mut sheaf = pool.prefill(2).expect("memory");
    let live = sheaf.alloc([1; 30]).expect("promised");
    let freed = sheaf.alloc([2; 30]).expect("promised");
    let bad = address(&freed);
    assert!(sheaf.free(freed).is_ok());
    let mut all = ends(bad, live, pool);
    all._kept = Box::new((all._kept, sheaf));
    all
}

fn never_handed_out() -> Ends {
    let pool = Pool::builder("never")
        .sheaf_capacity(0)
        .build()
        .expect("possible options");
    let live = pool.alloc([1; 30]);
    let bad = address(&live).wrapping_add(240);
    ends(bad, live, pool)
}

fn freed_in_bulk() -> Ends {
    let pool = Pool::new("bulk");
    let live = pool.alloc([1; 30]);
    let freed: Vec<_> = (0..5).map(|_| pool.alloc([2; 30])).collect();
    let bad = address(&freed[3]);
    PoolBox::free_bulk(freed);
    ends(bad, live, pool)
}

fn moved_out() -> Ends {
    let pool = Pool::new("moved");
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    assert_eq!(PoolBox::into_inner(freed)[0], 2);
    ends(bad, live, pool)
}

fn past_the_last_slot() -> Ends {
    let pool = Pool::new("slack");
    let live = pool.alloc([1; 30]);
    let bad = address(&live).map_addr(|addr| addr | 0xffff);
    ends(bad, live, pool)
}

fn in_a_red_zone() -> Ends {
    let pool = Pool::builder("zone")
        .debug(DebugFlags::RED_ZONE)
        .build()
        .expect("possible options");
    let live = pool.alloc([1; 30]);
    let bad = address(&live).wrapping_add(240);
    ends(bad, live, pool)
}

fn free_in_a_debugged_pool() -> Ends {
    let flags = DebugFlags::POISON | DebugFlags::RED_ZONE;
    let pool = Pool::builder("debugged")
        .debug(flags)
        .build()
        .expect("possible options");
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    drop(freed);
    // Checks read what others must not.
    assert_eq!(pool.validate(), 0);
    ends(bad, live, pool)
}

fn zeroed_on_free() -> Ends {
    let pool = Pool::builder("zeroed")
        .zero_on_free()
        .build()
        .expect("possible options");
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    drop(freed);
    ends(bad, live, pool)
}

fn used_again() -> Ends {
    let pool = Pool::builder("again")
        .min_partial(0)
        .build()
        .expect("possible options");
    drop((0..2000).map(|_| pool.alloc([1; 30])).collect::<Vec<_>>());
    pool.shrink();
    let others: Vec<_> = (0..2000).map(|_| pool.alloc([2; 30])).collect();
    assert!(others.iter().all(|other| other[29] == 2));
    drop(others);
    let (live, freed) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let bad = address(&freed);
    drop(freed);
    ends(bad, live, pool)
}

/// What is free there may be read; what is left over in the run may not.
#[cfg(feature = "rcu")]
fn free_in_a_type_stable_pool() -> Ends {
    struct Words([AtomicU64; 30]);
    // SAFETY: zeros are valid integers.
    unsafe impl TypeStable for Words {}

    let pool = StablePool::new("stable");
    let object = pool.alloc(|words: &Words| words.0[0].store(1, Ordering::Relaxed));
    let good = (&raw const *object).cast::<u8>();
    drop(object);
    Ends {
        bad: good.map_addr(|addr| addr | 0xffff),
        good,
        _kept: Box::new(pool),
    }
}

/// Retired, and read by nobody any more. The live one is retired too, while a reader that may see it is pinned.
#[cfg(feature = "rcu")]
fn past_its_grace_period() -> Ends {
    let pool = Pool::new("rcu");
    let (first, second) = (pool.alloc([1; 30]), pool.alloc([2; 30]));
    let (bad, good) = (address(&first), address(&second));
    PoolBox::retire(first);
    pool.rcu_barrier().expect("nobody is pinned");
    let stats = pool.stats();
    assert_eq!((stats.live, stats.retired), (1, 0));
    let guard = sheaves::rcu::pin();
    PoolBox::retire(second);
    assert_eq!(pool.stats().retired, 1);
    Ends {
        bad,
        good,
        _kept: Box::new((guard, pool)),
    }
}

/// As above, in a batch that goes from the rcu sheaf to the barn as it is.
#[cfg(feature = "rcu")]
fn past_its_grace_period_with_a_sheaf() -> Ends {
    let pool = Pool::builder("rcu").sheaf_capacity(4);
    let pool = pool.build().expect("possible options");
    let objects: Vec<_> = (0..9).map(|_| pool.alloc([2; 30])).collect();
    let (bad, good) = (address(&objects[1]), address(&objects[8]));
    let guard = sheaves::rcu::pin();
    let mut objects = objects.into_iter();
    objects.by_ref().take(4).for_each(PoolBox::retire);
    drop(guard);
    pool.rcu_barrier().expect("nobody is pinned");
    assert!(pool.stats().rcu_batch > 0 && pool.stats().barn >= 4);
    let guard = sheaves::rcu::pin();
    objects.for_each(PoolBox::retire);
    Ends {
        bad,
        good,
        _kept: Box::new((guard, pool)),
    }
}

const CASES: &[(&str, Case)] = &[
    ("in_a_sheaf", in_a_sheaf),
    ("in_the_barn", in_the_barn),
    ("in_a_slab", in_a_slab),
    ("in_a_lent_sheaf", in_a_lent_sheaf),
    ("never_handed_out", never_handed_out),
    ("freed_in_bulk", freed_in_bulk),
    ("moved_out", moved_out),
    ("past_the_last_slot", past_the_last_slot),
    ("in_a_red_zone", in_a_red_zone),
    ("free_in_a_debugged_pool", free_in_a_debugged_pool),
    ("zeroed_on_free", zeroed_on_free),
    ("used_again", used_again),
    #[cfg(feature = "rcu")]
    ("free_in_a_type_stable_pool", free_in_a_type_stable_pool),
    #[cfg(feature = "rcu")]
    ("past_its_grace_period", past_its_grace_period),
    #[cfg(feature = "rcu")]
    (
        "past_its_grace_period_with_a_sheaf",
        past_its_grace_period_with_a_sheaf,
    ),
];

/// The other process.
#[test]
fn child() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    let (name, fault) = case
        .split_once(' ')
        .expect("a name, and whether it is at fault");
    let (_, case) = CASES
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a known case");
    let ends = case();
    let object = if fault == "fault" {
        ends.bad
    } else {
        ends.good
    };
    black_box(the_faulting_read(black_box(object)));
}

fn run(case: &str, fault: &str) -> Output {
    let exe = std::env::current_exe().expect("tests have an executable");
    let mut command = if cfg!(sheaves_asan) {
        Command::new(exe)
    } else {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"])
            .arg(exe);
        valgrind
    };
    command
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CASE, format!("{case} {fault}"))
        .output()
        .expect("the checker can be run")
}

#[test]
fn stray_accesses_are_told_where_they_happen() {
    if std::env::var_os(CASE).is_some() {
        return;
    }
    let word = if cfg!(sheaves_asan) {
        "use-after-poison"
    } else {
        "Invalid read of size 1"
    };
    for (case, _) in CASES.iter().copied() {
        let output = run(case, "fault");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{case} was not told");
        assert!(stderr.contains(word), "{case}: {stderr}");
        assert!(stderr.contains("the_faulting_read"), "{case}: {stderr}");
        let output = run(case, "none");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case} without a fault: {stderr}");
    }
}
