//! Slabs of type-stable pools on their way back to the page source.
//!
//! A slot of such a pool is used again at once, and readers that hold a reference to it find another object of the
//! same type there. What they must not find is no memory: a slab that has become empty waits here for a grace period.
#![forbid(unsafe_code)]

use alloc::collections::VecDeque;
use core::mem::ManuallyDrop;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use super::epoch::TICKETS;
use super::tickets::Ticket;
use super::{is_reaping_allowed, worker};
use crate::slab::Surplus;
use crate::sync::Lock;

static ATTIC: Lock<VecDeque<(Ticket, Surplus)>> = Lock::new(VecDeque::new());

/// Keeps empty slabs for a grace period. Calls no page source. If there is no memory for an entry they are leaked.
pub(crate) fn keep(surplus: Surplus) {
    let mut entry = Some(surplus);
    while let Some(surplus) = entry.take() {
        let wanted = {
            let mut attic = ATTIC.lock();
            if attic.len() < attic.capacity() {
                // Stamped under the lock, so that entries are in the order of their stamps.
                attic.push_back((TICKETS.stamp(), surplus));
                break;
            }
            attic.len() * 2 + 8
        };
        let mut larger = VecDeque::new();
        if larger.try_reserve_exact(wanted).is_err() {
            let _leaked = ManuallyDrop::new(surplus);
            return;
        }
        let mut attic = ATTIC.lock();
        if attic.len() < larger.capacity() {
            larger.append(&mut attic);
            core::mem::swap(&mut *attic, &mut larger);
        }
        drop(attic);
        entry = Some(surplus);
    }
    TICKETS.push(newest());
    worker::need(Duration::ZERO);
}

fn newest() -> Ticket {
    ATTIC.lock().back().map_or(Ticket(0), |(ticket, _)| *ticket)
}

/// Gives slabs that no reader sees any more back to their sources; whether others are left.
pub(crate) fn reclaim() -> bool {
    TICKETS.push(newest());
    if !is_reaping_allowed() {
        return newest() != Ticket(0);
    }
    loop {
        let mut attic = ATTIC.lock();
        let is_over = attic
            .front()
            .is_some_and(|(ticket, _)| TICKETS.is_over(*ticket));
        if !is_over {
            return !attic.is_empty();
        }
        let entry = attic.pop_front();
        drop(attic);
        // A page source that panics does so in the middle of nobody's call.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(entry)));
    }
}

/// Locks what a fork must not find locked.
pub(crate) fn hold() -> impl Sized {
    ATTIC.lock()
}
