//! Promise 2: whatever a reader can see stays whole for as long as it is pinned.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use sheaves::{Pool, PoolBox, RcuCell, RcuCellOption, rcu};

use crate::support::{Count, Token};

/// Objects that each writer retires; a test under a sanitizer takes its time. `SHEAVES_TEST_RETIRED` has another
/// number.
fn objects() -> usize {
    let wanted = std::env::var("SHEAVES_TEST_RETIRED").ok();
    let wanted = wanted.and_then(|number| number.parse().ok());
    wanted.unwrap_or(if cfg!(debug_assertions) {
        30_000
    } else {
        1_000_000
    })
}

#[test]
fn a_pinned_reader_keeps_what_it_saw() {
    let objects = objects();
    let (pool, count) = (Pool::new("tokens"), Count::new());
    let cells: Vec<RcuCell<Token>> = (0..8)
        .map(|id| RcuCell::new(pool.alloc(Token::new(id, &count))))
        .collect();
    let next = AtomicU64::new(100);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2 {
            let (cells, stop) = (&cells, &stop);
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    let guard = rcu::pin();
                    let seen: Vec<&Token> = cells.iter().map(|cell| cell.load(&guard)).collect();
                    let before: Vec<u64> = seen.iter().map(|token| token.id()).collect();
                    for _ in 0..=reader * 20 {
                        thread::yield_now();
                        let now: Vec<u64> = seen.iter().map(|token| token.id()).collect();
                        assert_eq!(before, now);
                    }
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (pool, count, cells, next) = (&pool, &count, &cells, &next);
                scope.spawn(move || {
                    for i in 0..objects {
                        let id = next.fetch_add(1, SeqCst);
                        let cell = &cells[(i * 3 + writer) % cells.len()];
                        cell.replace(pool.alloc(Token::new(id, count)));
                    }
                })
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        stop.store(true, SeqCst);
    });
    pool.rcu_barrier().unwrap();
    assert_eq!(pool.stats().live, 8);
    drop(cells);
    assert_eq!(count.dropped(), 2 * objects + 8);
}

/// A list that readers walk while a writer takes nodes out of it.
#[test]
fn a_walk_goes_on_through_what_was_unlinked() {
    struct Node {
        token: Token,
        next: RcuCellOption<Node>,
    }
    let (pool, count) = (Pool::new("list"), Count::new());
    let head = RcuCellOption::empty();
    let push = |id| {
        let node = pool.alloc(Node {
            token: Token::new(id, &count),
            next: RcuCellOption::empty(),
        });
        let mut node = Some(node);
        // A list with one writer.
        let old = head.take();
        assert!(old.is_none());
        head.replace(node.take());
    };
    push(0);
    let guard = rcu::pin();
    let first = head.load(&guard).unwrap();
    first.next.replace(Some(pool.alloc(Node {
        token: Token::new(1, &count),
        next: RcuCellOption::empty(),
    })));
    let second = first.next.load(&guard).unwrap();
    head.replace(None);
    rcu::drain();
    assert_eq!((first.token.id(), second.token.id()), (0, 1));
    drop(guard);
    pool.rcu_barrier().unwrap();
    assert_eq!(count.dropped(), 2);
}

#[test]
fn a_long_reader_holds_up_everything_and_then_nothing() {
    let (pool, count) = (Pool::new("long"), Count::new());
    let guard = rcu::pin();
    thread::scope(|scope| {
        let retire = || {
            scope.spawn(|| {
                for id in 0..5000 {
                    PoolBox::retire(pool.alloc(Token::new(id, &count)));
                }
            })
        };
        // A scope by itself does not wait for destructors of thread-locals.
        for thread in [retire(), retire()] {
            thread.join().unwrap();
        }
    });
    assert_eq!((count.dropped(), pool.stats().retired), (0, 10_000));
    drop(guard);
    pool.rcu_barrier().unwrap();
    assert_eq!(count.dropped(), 10_000);
}
