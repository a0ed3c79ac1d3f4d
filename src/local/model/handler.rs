//! A signal handler in the middle of the owner's operation.
#![forbid(unsafe_code)]

use alloc::rc::Rc;
use core::cell::Cell;

use super::{Drain, Owner, Slot, empty, search, sheaf, watch};

/// Runs `operation` on a local with room and a slot, interrupted by a handler that tries everything.
fn interrupted(operation: fn(&Owner)) {
    search(move || {
        let owner = Owner::new(sheaf(2, 1..=1), Some(empty(2)));
        let (inner, ran) = (Owner(owner.local()), Rc::new(Cell::new(false)));
        let told = Rc::clone(&ran);
        watch::interrupt(move || {
            assert!(
                inner.fast_pop().is_none(),
                "a handler took a slot from a busy gate"
            );
            let slot = inner
                .fast_push(Slot::of_model(0))
                .expect_err("a handler put a slot into a busy gate");
            assert_eq!(slot.end(), 0);
            assert!(inner.0.gate.is_busy(), "a handler undid the mark");
            assert!(
                inner.try_hold().is_none(),
                "a handler got hold of a busy local"
            );
            assert!(
                Drain::begin(&[inner.local()], Some(&inner.0)).is_none(),
                "a handler waits for itself"
            );
            told.set(true);
        });
        operation(&owner);
        assert!(ran.get(), "the operation was not interrupted");
        assert!(!owner.0.gate.is_busy());
        owner.assert_open();
        owner.account(Vec::new(), 1);
    });
}

#[test]
fn a_handler_interrupts_an_allocation() {
    interrupted(|owner| {
        let slot = owner.fast_pop().expect("it has one");
        assert!(owner.fast_push(slot).is_ok());
    });
}

#[test]
fn a_handler_interrupts_a_free() {
    interrupted(|owner| {
        assert!(owner.fast_push(Slot::of_model(0)).is_ok());
        assert_eq!(owner.fast_pop().map(Slot::end), Some(0));
    });
}

#[test]
fn a_handler_interrupts_a_slow_allocation() {
    interrupted(|owner| {
        let slot = owner.hold().pop().expect("it has one");
        assert!(owner.fast_push(slot).is_ok());
    });
}

#[test]
fn a_handler_interrupts_a_slow_free() {
    interrupted(|owner| {
        assert!(owner.hold().push(Slot::of_model(0)).is_ok());
        assert_eq!(owner.fast_pop().map(Slot::end), Some(0));
    });
}
