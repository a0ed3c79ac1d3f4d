//! What loom sees of the arrays: one cell for each place, accessed whenever the place is.
//!
//! The arrays are plain memory of vectors, of which loom knows nothing. In a model the [`Place`] of a local
//! therefore accesses a cell of loom's besides, so that a race on the place is a race on the cell. loom runs all
//! threads of a model on one thread of the system, so the cells can sit in a thread-local.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::RefCell;

use loom::cell::Cell;

use super::super::{Place, SlotPlace};
use crate::sheaf::Sheaf;
use crate::slab::Slot;

std::thread_local! {
    static CELLS: RefCell<BTreeMap<usize, Rc<Cell<()>>>> = const { RefCell::new(BTreeMap::new()) };
    static KEPT: RefCell<Vec<Sheaf>> = const { RefCell::new(Vec::new()) };
    static HANDLER: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Forgets the last round: loom's cells live for one.
pub(super) fn restart() {
    CELLS.take();
    KEPT.take();
    HANDLER.take();
}

/// Keeps an array until the end of the round, so that its address is not used again.
pub(super) fn keep(sheaf: Sheaf) {
    KEPT.with_borrow_mut(|kept| kept.push(sheaf));
}

/// Runs `handler` in the middle of the next operation that accesses a place.
pub(super) fn interrupt(handler: impl FnOnce() + 'static) {
    HANDLER.replace(Some(Box::new(handler)));
}

fn access(place: *const SlotPlace) {
    if let Some(handler) = HANDLER.take() {
        handler();
    }
    let cell = CELLS.with_borrow_mut(|cells| {
        Rc::clone(
            cells
                .entry(place.addr())
                .or_insert_with(|| Rc::new(Cell::new(()))),
        )
    });
    cell.set(());
}

// SAFETY: a read returns what the last write stored.
unsafe impl Place for SlotPlace {
    type Item = Slot;

    unsafe fn take(place: *mut Self) -> Slot {
        access(place);
        // SAFETY: valid for reads, by the caller's word.
        let place = unsafe { place.read() };
        // SAFETY: it holds an item, which leaves it, by the caller's word.
        unsafe { place.assume_init() }
    }

    unsafe fn put(place: *mut Self, slot: Slot) {
        access(place);
        // SAFETY: valid for writes, by the caller's word.
        unsafe { place.write(Self::new(slot)) };
    }
}
