//! `RcuCell` and its optional twin.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use sheaves::{Pool, RcuCell, RcuCellOption, Unlinked, rcu};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::support::{Count, Token};

assert_impl_all!(RcuCell<u64>: Send, Sync);
assert_impl_all!(RcuCellOption<String>: Send, Sync);
assert_impl_all!(sheaves::Unlinked<u64>: Send, Sync);
assert_not_impl_any!(rcu::Guard: Send, Sync);

#[test]
fn each_operation_does_what_it_says() {
    let (pool, count) = (Pool::new("cell"), Count::new());
    let token = |id| pool.alloc(Token::new(id, &count));
    let mut cell = RcuCell::new(token(1));
    let guard = rcu::pin();
    let first = cell.load(&guard);
    cell.replace(token(2));
    let swapped = cell.swap(token(3));
    assert_eq!(
        (first.id(), swapped.id(), cell.load(&guard).id()),
        (1, 2, 3)
    );
    cell.update(|old| token(old.id() + 1));
    assert_eq!(cell.load(&guard).id(), 4);
    assert!(Unlinked::synchronize(swapped).is_err());
    drop(guard);
    assert_eq!(cell.get_mut().id(), 4);
    assert_eq!(Unlinked::synchronize(cell.swap(token(5))).unwrap().id(), 4);
    assert_eq!(cell.into_inner().id(), 5);
    pool.rcu_barrier().unwrap();
    assert_eq!(count.dropped(), 5);
}

#[test]
fn an_empty_cell_is_a_cell() {
    let (pool, count) = (Pool::new("option"), Count::new());
    let token = |id| Some(pool.alloc(Token::new(id, &count)));
    let mut cell = RcuCellOption::empty();
    assert!(cell.take().is_none() && cell.get_mut().is_none());
    cell.update(|old| old.map_or_else(|| token(1), |_| None));
    assert_eq!(cell.get_mut().map(|token| token.id()), Some(1));
    cell.update(|old| old.map_or_else(|| token(1), |_| None));
    assert!(cell.load(&rcu::pin()).is_none());
    cell.replace(token(2));
    assert_eq!(cell.into_inner().map(|token| token.id()), Some(2));
    drop(RcuCellOption::new(token(3)));
    pool.rcu_barrier().unwrap();
    assert_eq!(count.dropped(), 3);
}

#[test]
fn no_update_is_lost() {
    let pool = Pool::new("counter");
    let cell = RcuCell::new(pool.alloc(0_u64));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    cell.update(|old| pool.alloc(old + 1));
                }
            });
        }
    });
    assert_eq!(*cell.into_inner(), 8000);
    // Not the gauges: threads may be on their way out, which a scope does not wait for.
    pool.close().expect("nothing is live");
}

#[test]
fn an_update_that_panics_changes_nothing() {
    let pool = Pool::new("panicking");
    let cell = RcuCell::new(pool.alloc(7));
    let result = catch_unwind(AssertUnwindSafe(|| cell.update(|_| panic!("no"))));
    assert!(result.is_err());
    assert_eq!(*cell.load(&rcu::pin()), 7);
    assert_eq!(rcu::synchronize(), Ok(()));
}
