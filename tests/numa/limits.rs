//! A limit is one for all nodes (promise 3), and retired objects come home from any.

use core::sync::atomic::{AtomicUsize, Ordering};

use sheaves::testing::Topology;
use sheaves::{AllocErrorKind, PoolBox};

use crate::support::{Object, Random, SHEAF, machine, nodes, on, small};

#[test]
fn slots_that_are_parked_on_other_nodes_are_found() {
    const LIMIT: usize = 3 * SHEAF;
    let pool = machine(3).build(small("parked").limit(LIMIT)).unwrap();
    for node in [1, 2] {
        on(2 * node, || {
            let boxes: Vec<PoolBox<Object>> = (0..LIMIT).map(|_| pool.alloc([1; 30])).collect();
            assert_eq!(
                pool.try_alloc([1; 30]).unwrap_err().kind(),
                AllocErrorKind::LimitReached
            );
            drop(boxes);
        });
    }
    let boxes: Vec<PoolBox<Object>> = (0..LIMIT)
        .map(|_| pool.try_alloc([2; 30]).expect("nothing is live"))
        .collect();
    let refused = on(4, || pool.try_alloc([3; 30]).unwrap_err().kind());
    assert_eq!(refused, AllocErrorKind::LimitReached);
    drop(boxes);
    let sheaf = on(2, || pool.prefill(LIMIT)).expect("nothing is live");
    assert_eq!(
        pool.try_alloc([3; 30]).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    drop(sheaf);
}

#[test]
fn a_limit_is_exact_over_nodes() {
    const LIMIT: usize = 40;
    const ROUNDS: usize = if cfg!(debug_assertions) {
        3_000
    } else {
        20_000
    };
    let pool = machine(4).build(small("exact").limit(LIMIT)).unwrap();
    let live = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pool, live) = (&pool, &live);
            scope.spawn(move || {
                let mut random = Random::new(thread as u64 + 1);
                let mut held: Vec<PoolBox<Object>> = Vec::new();
                for _ in 0..ROUNDS {
                    Topology::stand_on(random.below(8));
                    if random.below(5) < 3 {
                        match pool.try_alloc([1; 30]) {
                            Ok(boxed) => {
                                let live = live.fetch_add(1, Ordering::SeqCst) + 1;
                                assert!(live <= LIMIT, "{live} objects are live");
                                held.push(boxed);
                            }
                            Err(error) => assert_eq!(error.kind(), AllocErrorKind::LimitReached),
                        }
                    } else if !held.is_empty() {
                        live.fetch_sub(1, Ordering::SeqCst);
                        drop(held.swap_remove(random.below(held.len())));
                    }
                }
                live.fetch_sub(held.len(), Ordering::SeqCst);
                drop(held);
            });
        }
    });
    let boxes: Vec<PoolBox<Object>> = (0..LIMIT)
        .map(|_| pool.try_alloc([2; 30]).expect("nothing is live"))
        .collect();
    assert_eq!(
        pool.try_alloc([2; 30]).unwrap_err().kind(),
        AllocErrorKind::LimitReached
    );
    drop(boxes);
    pool.shrink();
    assert_eq!((pool.stats().bytes, pool.stats().live), (0, 0));
}

/// A pool at its limit loosens after as many frees as on one node, wherever they come home.
#[test]
fn frees_of_all_nodes_count_towards_loosening() {
    const EACH: usize = 100;
    let pool = machine(3).build(small("loosens").limit(3 * EACH)).unwrap();
    let boxes: Vec<Vec<PoolBox<Object>>> = (0..3)
        .map(|node| {
            on(2 * node, || {
                (0..EACH).map(|_| pool.alloc([1; 30])).collect()
            })
        })
        .collect();
    assert!(pool.try_alloc([1; 30]).is_err());
    drop(boxes);
    assert_eq!(pool.stats().live, 0);
    (0..SHEAF).for_each(|_| drop(pool.try_alloc([1; 30]).unwrap()));
    let stats = pool.stats();
    assert!(
        stats.cached > 0,
        "300 came home and it parks nothing: {stats:?}"
    );
}

#[cfg(feature = "rcu")]
#[test]
fn what_is_retired_on_another_node_comes_home() {
    let pool = machine(2).build(small("retired")).unwrap();
    let boxes: Vec<PoolBox<Object>> = (0..10 * SHEAF).map(|_| pool.alloc([1; 30])).collect();
    let cached = pool.stats().cached;
    on(2, || {
        boxes.into_iter().for_each(PoolBox::retire);
        pool.rcu_barrier().unwrap();
    });
    let [home, other] = nodes(&pool)[..] else {
        panic!("two nodes")
    };
    assert_eq!((other.slots, other.barn), (0, 0));
    assert_eq!(home.free + home.barn + cached, home.slots);
}

#[cfg(feature = "rcu")]
#[test]
fn slots_of_all_nodes_are_marked_where_there_is_no_memory_for_a_sheaf() {
    use sheaves::Fault;
    let pool = machine(3).build(small("marked").sheaf_capacity(0)).unwrap();
    let boxes: Vec<PoolBox<Object>> = (0..3)
        .map(|node| on(2 * node, || pool.alloc([1; 30])))
        .collect();
    pool.set_fault(Some(Fault::every(1)));
    boxes.into_iter().for_each(PoolBox::retire);
    assert_eq!(pool.stats().retired, 3);
    pool.set_fault(None);
    pool.rcu_barrier().unwrap();
    assert_eq!((pool.stats().retired, pool.stats().live), (0, 0));
    assert!(nodes(&pool).iter().all(|node| node.free == node.slots));
}
