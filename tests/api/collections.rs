//! Collections in a pool against those of std, by random operations.

use alloc::sync::Arc;
use std::collections::{HashMap, HashSet};

use allocator_api2::boxed::Box as BoxIn;
use allocator_api2::vec::Vec as VecIn;
use sheaves::Pool;

use crate::support::{Counted, Drops, Metered, Random};

#[test]
fn vectors_agree_with_std() {
    for seed in 0..4 {
        let source = Metered::new();
        let pool = Pool::<u64>::builder("vectors")
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        let mut random = Random::new(seed);
        let mut ours = VecIn::new_in(&pool);
        let mut std = Vec::new();
        for step in 0..3000_u64 {
            let at = random.below(std.len() + 1);
            match random.below(12) {
                0..5 => {
                    ours.push(step);
                    std.push(step)
                }
                5 => {
                    ours.insert(at, step);
                    std.insert(at, step)
                }
                6 => assert_eq!(ours.pop(), std.pop()),
                7 => {
                    ours.truncate(at);
                    std.truncate(at)
                }
                8 if at < std.len() => assert_eq!(ours.swap_remove(at), std.swap_remove(at)),
                9 => {
                    ours.shrink_to_fit();
                    assert!(ours.capacity() >= std.len())
                }
                10 => {
                    ours.extend_from_slice(&[step; 17]);
                    std.extend_from_slice(&[step; 17])
                }
                11 if random.below(20) == 0 => {
                    ours.clear();
                    ours.shrink_to_fit();
                    std.clear()
                }
                _ => {
                    ours.reserve(at);
                    assert!(ours.capacity() >= ours.len() + at)
                }
            }
            assert_eq!(ours[..], std[..]);
        }
        let boxed: BoxIn<[u64], &Pool<u64>> = ours.into_boxed_slice();
        assert_eq!(boxed[..], std[..]);
        drop(boxed);
        pool.shrink();
        assert_eq!(
            (pool.stats().live, pool.stats().blocks, source.bytes()),
            (0, 0, 0)
        );
    }
}

#[test]
fn vectors_of_droppable_objects() {
    let drops = Drops::default();
    let pool = Pool::<Counted>::new("droppable");
    let mut vector = VecIn::new_in(pool.clone());
    vector.extend((0..1000).map(|id| drops.object(id)));
    assert_eq!(pool.handles(), 2);
    vector.retain(|object| object.id % 2 == 0);
    assert_eq!((drops.count(), vector.len()), (500, 500));
    let copy = vector.clone();
    drop((vector, copy));
    assert_eq!(
        (drops.count(), pool.handles(), pool.stats().blocks),
        (1500, 1, 0)
    );
    pool.close().unwrap();
}

#[test]
fn boxes_in_a_pool_come_from_its_slots() {
    let drops = Drops::default();
    let pool = Pool::new("boxes");
    let boxed = BoxIn::new_in(drops.object(1), pool.clone());
    assert!(pool.owns(&raw const *boxed));
    assert_eq!(
        (pool.stats().live, pool.stats().blocks, pool.handles()),
        (1, 0, 2)
    );
    let other = pool.clone();
    drop(pool);
    drop(boxed);
    assert_eq!(
        (drops.count(), other.stats().live, other.handles()),
        (1, 0, 1)
    );
    // The box holds the last handle.
    let last = BoxIn::new_in(drops.object(2), other);
    drop(last);
    assert_eq!(drops.count(), 2);
}

#[test]
fn maps_and_sets_agree_with_std() {
    for seed in 0..4 {
        let source = Metered::new();
        let pool = Pool::<(u64, String)>::builder("maps")
            .source(Arc::clone(&source))
            .build()
            .unwrap();
        let mut random = Random::new(seed);
        let mut map = hashbrown::HashMap::new_in(pool.clone());
        let mut set = hashbrown::HashSet::new_in(&pool);
        let (mut std_map, mut std_set) = (HashMap::new(), HashSet::new());
        for step in 0..5000_u64 {
            let key = random.next() % 700;
            match random.below(8) {
                0..4 => {
                    let value = step.to_string();
                    assert_eq!(map.insert(key, value.clone()), std_map.insert(key, value));
                    assert_eq!(set.insert(key), std_set.insert(key));
                }
                4 | 5 => {
                    assert_eq!(map.remove(&key), std_map.remove(&key));
                    assert_eq!(set.remove(&key), std_set.remove(&key));
                }
                6 if random.below(50) == 0 => {
                    map.shrink_to_fit();
                    set.retain(|key| key % 3 != 0);
                    std_set.retain(|key| key % 3 != 0);
                }
                6 if random.below(200) == 0 => {
                    map.clear();
                    std_map.clear()
                }
                _ => {
                    assert_eq!(map.get(&key), std_map.get(&key));
                    assert_eq!(set.contains(&key), std_set.contains(&key));
                }
            }
            assert_eq!((map.len(), set.len()), (std_map.len(), std_set.len()));
        }
        assert!(
            map.iter()
                .all(|(key, value)| std_map.get(key) == Some(value))
        );
        assert!(set.iter().all(|key| std_set.contains(key)));
        let copy = map.clone();
        drop((map, set));
        assert_eq!(copy.len(), std_map.len());
        drop(copy);
        assert_eq!(
            (pool.stats().live, pool.stats().blocks, pool.handles()),
            (0, 0, 1)
        );
        pool.close().unwrap();
        assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
    }
}

#[test]
fn a_vector_moves_to_another_thread_and_outlives_all_other_handles() {
    let source = Metered::new();
    let pool = Pool::<u64>::builder("moves")
        .source(Arc::clone(&source))
        .build()
        .unwrap();
    let mut vector = VecIn::new_in(pool);
    vector.extend(0..10_000);
    let sum = std::thread::spawn(move || {
        vector.push(1);
        vector.iter().sum::<u64>()
    });
    assert_eq!(sum.join().unwrap(), 9999 * 5000 + 1);
    assert_eq!((source.blocks(), Arc::strong_count(&source)), (0, 1));
}
