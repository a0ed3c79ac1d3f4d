use sheaves::{Pool, PoolBox};

#[test]
fn alloc_and_free() {
    let pool: Pool<[u64; 30]> = Pool::new("smoke");
    let boxes: Vec<_> = (0..10_000_u64).map(|i| pool.alloc([i; 30])).collect();
    assert_eq!(pool.stats().live, 10_000);
    for (i, b) in boxes.iter().enumerate() {
        assert_eq!(**b, [i as u64; 30]);
    }
    println!("{:?}", pool.stats());
    drop(boxes);
    println!("{:?}", pool.stats());
    println!("{}", sheaves::slabinfo());
    assert_eq!(pool.stats().live, 0);
    pool.shrink();
    println!("{:?}", pool.stats());
    assert_eq!(pool.stats().bytes, 0);
}

#[test]
fn threads_trade() {
    let pool: Pool<u64> = Pool::new("trade");
    let (tx, rx) = std::sync::mpsc::sync_channel::<PoolBox<u64>>(64);
    let p2 = pool.clone();
    let t = std::thread::spawn(move || {
        for i in 0..100_000 {
            tx.send(p2.alloc(i)).unwrap();
        }
    });
    for (i, b) in rx.iter().enumerate() {
        assert_eq!(*b, i as u64);
    }
    t.join().unwrap();
    println!("{:?}", pool.stats());
    assert_eq!(pool.stats().live, 0);
    let kept = pool.alloc(7);
    drop(pool);
    assert_eq!(*kept, 7);
    std::thread::spawn(move || drop(kept)).join().unwrap();
}
