//! The time as crossbeam-epoch tells it.
//!
//! Nothing of ours is freed in a closure that is deferred there: such closures stay in the bag of the thread that
//! deferred them until it pins again, run pinned, in whoever pins at the time, and the rest of a bag is lost when
//! one panics. What is deferred is one closure for each grace period, which raises a number. It is put into a bag
//! of its own and handed over in one call, so that nothing lingers.
#![forbid(unsafe_code)]

use core::mem::ManuallyDrop;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch as epoch;

use super::tickets::{Clock, Tickets};
use crate::sync::{AtomicU64, Cell, Ordering, thread_local};

/// Grace periods of the process.
pub(crate) static TICKETS: Tickets<Epochs> = Tickets::new(Epochs);

static DONE: AtomicU64 = AtomicU64::new(0);

/// The default collector of crossbeam-epoch.
#[derive(Debug)]
pub(crate) struct Epochs;

/// Bytes that crossbeam asks of the global allocator for a bag, or for a participant if the thread has never pinned,
/// rounded up. It ends the process if they cannot be had.
const NEEDED: usize = 3072;

thread_local! {
    /// Whether the running thread has pinned before, so that to pin again takes no memory.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the global allocator has memory: asked before something that ends the process where there is none.
pub(crate) fn has_memory() -> bool {
    Vec::<u64>::new().try_reserve_exact(NEEDED / 8).is_ok()
}

/// Whether the running thread can pin.
fn can_pin() -> bool {
    ENTERED.get()
        || (has_memory() && {
            ENTERED.set(true);
            true
        })
}

/// Whether the running thread is pinned, through whatever crate.
pub(crate) fn is_pinned() -> bool {
    can_pin() && epoch::is_pinned()
}

/// Closures of other users run inside; a panic of theirs is not to unwind out of ours.
fn shielded(body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        // Dropping it might panic again.
        let _ = ManuallyDrop::new(payload);
    }
}

impl Clock for Epochs {
    fn begin(&self, n: u64) {
        if !has_memory() || !can_pin() {
            return;
        }
        shielded(|| {
            let guard = epoch::pin();
            // What the thread deferred before must not stand before ours in its bag.
            guard.flush();
            guard.defer(move || {
                // Release: pairs with the Acquire in `done`; the reader that unpinned last has done with what
                // it read.
                DONE.fetch_max(n, Ordering::Release);
            });
            guard.flush();
        });
    }

    fn advance(&self) {
        // The bag may not be empty: crossbeam puts closures of its own in.
        if has_memory() && can_pin() {
            shielded(|| epoch::pin().flush());
        }
    }

    fn done(&self) -> u64 {
        // Acquire: pairs with the Release in `begin`.
        DONE.load(Ordering::Acquire)
    }
}
