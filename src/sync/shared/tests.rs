//! Counting of shares.

use super::*;
use core::sync::atomic::Ordering::SeqCst;
use std::sync::Barrier;

struct Counted<'a>(u64, &'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

trait Number {
    fn number(&self) -> u64;
}

impl Number for Counted<'_> {
    fn number(&self) -> u64 {
        self.0
    }
}

#[test]
fn a_value_lives_as_long_as_its_owners() {
    let dropped = AtomicUsize::new(0);
    let first = Shared::try_new(Counted(7, &dropped)).unwrap();
    let second = first.clone();
    let value = Shared::as_ptr(&first);
    // SAFETY: the value is alive.
    unsafe { Shared::increment_strong_count(value) };
    // SAFETY: the share was just added.
    let third = unsafe { Shared::from_raw(value) };
    assert_eq!((Shared::strong_count(&first), third.0), (3, 7));
    assert!(Shared::ptr_eq(&first, &third));
    // SAFETY: an unsizing coercion.
    let weak = unsafe { Shared::downgrade_as::<dyn Number + '_>(&first, |inner| inner) };
    drop((first, second));
    assert_eq!(weak.upgrade().unwrap().number(), 7);
    assert_eq!((Shared::strong_count(&third), dropped.load(SeqCst)), (1, 0));
    drop(third);
    assert_eq!(dropped.load(SeqCst), 1);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_value_knows_its_address() {
    struct Own(*const Self, [u8; 100]);
    let shared = Shared::try_new_cyclic(|own| Own(own, [1; 100])).unwrap();
    assert_eq!((shared.0, shared.1[99]), (Shared::as_ptr(&shared), 1));
}

#[test]
fn values_of_all_shapes_can_be_shared() {
    #[repr(align(64))]
    struct Aligned(u64);
    assert_eq!(Shared::try_new(Aligned(3)).unwrap().0, 3);
    let nothing = Shared::try_new(()).unwrap();
    drop(nothing.clone());
    assert_eq!(Shared::strong_count(&nothing), 1);
}

#[test]
fn threads_that_come_and_go_drop_it_once() {
    for _ in 0..200 {
        let dropped = AtomicUsize::new(0);
        let shared = Shared::try_new(Counted(1, &dropped)).unwrap();
        // SAFETY: as above.
        let weak = unsafe { Shared::downgrade_as::<Counted<'_>>(&shared, |inner| inner) };
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                while let Some(shared) = weak.upgrade() {
                    assert_eq!((shared.0, dropped.load(SeqCst)), (1, 0));
                }
            });
            let other = shared.clone();
            for owner in [shared, other] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    drop(owner);
                });
            }
        });
        assert_eq!(dropped.load(SeqCst), 1);
    }
}
