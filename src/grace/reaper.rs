//! Who is running destructors of retired objects.
#![forbid(unsafe_code)]

use super::epoch;
use crate::base::error::BarrierError;
use crate::sync::{AtomicU32, Cell, Ordering, thread_local};

thread_local! {
    /// How many reapers the running thread is inside of: its destructors may reap in turn by a barrier's twin.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The running thread while it runs destructors of retired objects.
#[derive(Debug)]
pub(crate) struct Reaping(());

impl Reaping {
    pub(crate) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Reaping {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether the running thread may run destructors of retired objects: it is not pinned, and does not run any.
pub(crate) fn may_reap() -> bool {
    DEPTH.get() == 0 && !epoch::is_pinned()
}

/// Not 0 in a forked child.
static FORKED: AtomicU32 = AtomicU32::new(0);

/// In a forked child: a thread that was pinned elsewhere stays so for ever.
pub(crate) fn note_fork() {
    // Relaxed: the child has one thread, and those it starts come after.
    FORKED.store(1, Ordering::Relaxed);
}

pub(crate) fn is_forked() -> bool {
    // Relaxed: see `note_fork`.
    FORKED.load(Ordering::Relaxed) != 0
}

/// Whether the running thread may wait for readers.
pub(crate) fn may_wait() -> Result<(), BarrierError> {
    if is_forked() {
        Err(BarrierError::Forked)
    } else if epoch::is_pinned() {
        Err(BarrierError::Pinned)
    } else {
        Ok(())
    }
}

/// Whether the running thread may wait for readers and for those who run destructors.
pub(crate) fn may_wait_for_reapers() -> Result<(), BarrierError> {
    if DEPTH.get() > 0 {
        return Err(BarrierError::Reaping);
    }
    may_wait()
}
