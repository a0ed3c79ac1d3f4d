//! Where slots belong, and how they get there.

use sheaves::testing::Topology;
use sheaves::{AllocErrorKind, PoolBox};

use crate::support::{Counted, Object, SHEAF, machine, nodes, on, pages, small};

#[test]
fn each_node_has_slabs_of_its_own() {
    let pool = machine(4).build(small("own")).unwrap();
    let of_nodes: Vec<Vec<PoolBox<Object>>> = (0..4)
        .map(|node| {
            on(2 * node + 1, || {
                (0..20).map(|_| pool.alloc([1; 30])).collect()
            })
        })
        .collect();
    assert!(nodes(&pool).iter().all(|node| node.slabs == 1));
    let all: Vec<&Object> = of_nodes.iter().flatten().map(|boxed| &**boxed).collect();
    assert_eq!(pages(&all).len(), 4, "nodes shared a slab");
    drop(of_nodes);
    pool.shrink();
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn what_another_node_frees_goes_home_by_the_sheaf() {
    const OBJECTS: usize = 10 * SHEAF;
    let pool = machine(2).build(small("foreign")).unwrap();
    let boxes: Vec<PoolBox<Object>> = (0..OBJECTS).map(|_| pool.alloc([1; 30])).collect();
    let before = pool.stats();
    on(2, || {
        drop(boxes);
        let [home, other] = nodes(&pool)[..] else {
            panic!("two nodes")
        };
        assert_eq!((other.slots, other.barn, home.barn), (0, 0, 0));
        let now = pool.stats();
        let parked = 2 * SHEAF as u64;
        assert!(now.cached - before.cached <= parked);
        let flushed = now.sheaf_flush - before.sheaf_flush;
        assert!(flushed >= OBJECTS as u64 - parked);
        // All but the first slow paths send a whole sheaf.
        let visits = now.free_slowpath - before.free_slowpath;
        assert!(
            visits <= flushed / SHEAF as u64 + 2,
            "{visits} for {flushed}"
        );
    });
    let [home, other] = nodes(&pool)[..] else {
        panic!("two nodes")
    };
    assert_eq!(
        (other.slots, other.barn, home.barn),
        (0, 0, 0),
        "left at the exit"
    );
    assert_eq!(home.free + pool.stats().cached, home.slots);
}

#[test]
fn a_full_sheaf_of_local_slots_is_traded() {
    let pool = machine(2).build(small("traded")).unwrap();
    on(2, || {
        let boxes: Vec<PoolBox<Object>> = (0..10 * SHEAF).map(|_| pool.alloc([1; 30])).collect();
        drop(boxes);
        assert!(nodes(&pool)[1].barn >= SHEAF as u64);
        assert_eq!(nodes(&pool)[0].barn, 0);
    });
    // Nobody on another node is given them.
    let boxed = pool.alloc([2; 30]);
    assert_eq!(nodes(&pool)[0].slabs, 1);
    drop(boxed);
}

#[test]
fn bulk_frees_send_strange_slots_home() {
    let pool = machine(2).build(small("bulk")).unwrap();
    let mut boxes: Vec<PoolBox<Object>> = (0..50).map(|_| pool.alloc([1; 30])).collect();
    let cached = pool.stats().cached;
    on(3, || {
        boxes.extend((0..50).map(|_| pool.alloc([2; 30])));
        PoolBox::free_bulk(boxes);
        let [home, _] = nodes(&pool)[..] else {
            panic!("two nodes")
        };
        assert_eq!(home.free + cached, home.slots);
    });
    assert_eq!(pool.stats().live, 0);
    assert_eq!(pool.validate(), 0);
}

#[test]
fn a_thread_that_moves_draws_on_the_node_that_it_came_to() {
    let pool = machine(2).build(small("moves")).unwrap();
    let mut boxes = vec![pool.alloc([1; 30])];
    assert_eq!(nodes(&pool)[1].slabs, 0);
    Topology::stand_on(2);
    boxes.extend((0..SHEAF).map(|_| pool.alloc([1; 30])));
    assert_eq!(nodes(&pool)[1].slabs, 1);
    Topology::stand_on(0);
    drop(boxes);
    pool.flush_thread();
    assert!(nodes(&pool).iter().all(|node| node.free == node.slots));
}

#[test]
fn a_node_without_memory_shares_the_slabs_of_its_home() {
    let machine = Topology::new(&[("0", true), ("1", false), ("2", true)]).unwrap();
    let pool = machine.build(small("memoryless")).unwrap();
    on(1, || {
        assert_eq!(machine.here(), (1, 0));
        let boxes: Vec<PoolBox<Object>> = (0..10 * SHEAF).map(|_| pool.alloc([1; 30])).collect();
        let slabs: Vec<u64> = nodes(&pool).iter().map(|node| node.slabs).collect();
        assert_eq!(slabs, [1, 0, 0]);
        drop(boxes);
        assert!(
            nodes(&pool)[1].barn >= SHEAF as u64,
            "its home is not strange to it"
        );
    });
}

#[test]
fn a_node_without_processors_may_be_the_home_of_all() {
    let machine = Topology::new(&[("0", false), ("1", false), ("", true)]).unwrap();
    let pool = machine.build(small("far").reserve(10)).unwrap();
    assert_eq!(nodes(&pool)[2].slabs, 1);
    let boxed = on(1, || pool.alloc([1; 30]));
    on(0, || drop(boxed));
    pool.shrink();
    assert_eq!(
        nodes(&pool)
            .iter()
            .map(|node| node.slabs)
            .collect::<Vec<_>>(),
        [0, 0, 1]
    );
}

#[test]
fn a_dry_source_is_made_up_for_by_all_nodes() {
    let source = Counted::default();
    let pool = machine(3)
        .build(small("dry").source(source.clone()))
        .unwrap();
    let of_nodes: Vec<PoolBox<Object>> = (0..3)
        .map(|node| on(2 * node, || pool.alloc([1; 30])))
        .collect();
    source.shut();
    let slots = pool.stats().slots;
    let free = usize::try_from(slots).unwrap() - of_nodes.len();
    let mut bulk = Vec::new();
    pool.try_alloc_uninit_bulk(free, &mut bulk)
        .expect("all nodes together have them");
    let error = pool.try_alloc([1; 30]).unwrap_err();
    assert_eq!(error.kind(), AllocErrorKind::OutOfMemory);
    drop(bulk);
    let sheaf = on(4, || pool.prefill(free)).expect("all nodes together have them");
    assert_eq!(sheaf.len(), free);
    assert_eq!(
        pool.try_alloc_now([1; 30]).unwrap_err().kind(),
        AllocErrorKind::WouldBlock
    );
    drop(sheaf);
    assert!(pool.try_alloc_now([1; 30]).is_ok());
}

#[test]
fn nodes_together_give_as_many_as_were_asked_for() {
    const LEFT: usize = 5;
    let source = Counted::default();
    let pool = machine(3)
        .build(small("some").limit(100_000).source(source.clone()))
        .unwrap();
    let of_nodes: Vec<PoolBox<Object>> = (0..3)
        .map(|node| on(2 * node, || pool.alloc([1; 30])))
        .collect();
    source.shut();
    let slots = usize::try_from(pool.stats().slots).unwrap();
    let some = slots - of_nodes.len() - LEFT;
    // More than one node has, and more of the others than is wanted of them.
    let sheaf = pool
        .prefill(some)
        .expect("all nodes together have more than that");
    assert_eq!(sheaf.len(), some);
    assert_eq!(pool.stats().prefilled, some as u64);
    let rest: Vec<_> = (0..=LEFT)
        .map_while(|_| pool.try_alloc([1; 30]).ok())
        .collect();
    assert_eq!(rest.len(), LEFT);
}

#[test]
fn slabs_that_a_node_would_not_keep_are_drawn_on_by_others() {
    let pool = machine(2)
        .build(small("lying-about").min_partial(0))
        .unwrap();
    let first = pool.alloc([1; 30]);
    let second = on(2, || pool.alloc([2; 30]));
    assert_eq!(nodes(&pool)[1].slabs, 0);
    assert_eq!(pages(&[&*first, &*second]).len(), 1);
}

#[test]
fn the_reserve_is_for_all_nodes() {
    let pool = machine(2).build(small("reserve").reserve(500)).unwrap();
    let slabs = pool.stats().alloc_slab;
    let boxes: Vec<PoolBox<Object>> = on(2, || (0..500).map(|_| pool.alloc([1; 30])).collect());
    assert_eq!(pool.stats().alloc_slab, slabs, "the source was asked");
    drop(boxes);
    pool.shrink();
    assert!(nodes(&pool)[0].slots >= 500);
    assert_eq!(nodes(&pool)[1].slabs, 0);
}

#[test]
fn one_shrink_empties_all_nodes_from_any() {
    let pool = machine(4).build(small("shrink")).unwrap();
    let (parked, all_parked) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let mut release = Vec::new();
        for node in 0..4 {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            release.push(go);
            let (pool, parked) = (&pool, parked.clone());
            scope.spawn(move || {
                Topology::stand_on(2 * node);
                drop((0..50).map(|_| pool.alloc([1; 30])).collect::<Vec<_>>());
                parked.send(()).unwrap();
                // Idle on full sheaves until the end.
                let _ = wait.recv();
            });
        }
        (0..4).for_each(|_| all_parked.recv().unwrap());
        assert!(pool.stats().bytes > 0);
        pool.shrink();
        assert_eq!(pool.stats().bytes, 0);
    });
}

#[test]
fn a_pool_ends_with_the_last_object_of_any_node() {
    let source = Counted::default();
    let pool = machine(2)
        .build(small("ends").source(source.clone()))
        .unwrap();
    let first = pool.alloc([1; 30]);
    let second = on(2, || pool.alloc([2; 30]));
    drop(pool);
    assert_eq!(source.bytes(), 2 << 16);
    on(2, || drop(first));
    assert_eq!(source.bytes(), 1 << 16, "a closed pool keeps what it needs");
    let copy = second.clone();
    drop(second);
    assert_eq!(copy[0], 2);
    drop(copy);
    assert_eq!(source.bytes(), 0);
    assert_eq!(
        std::sync::Arc::strong_count(&source.bytes),
        1,
        "the cache is gone"
    );
}
