//! The drain thread: hands in what has waited long enough, and reaps what no reader sees any more.
//!
//! It is started when something is retired, stops when a look at all caches finds nothing retired, and is started
//! again when it is needed: threads that retire ask for it whenever they begin to fill a sheaf ([`Summons`]).
//!
//! A forked child has no such thread and gets none. There, and in a process that chose the manual mode, what is
//! retired is reaped by those who retire and by [`drain`](super::rcu::drain).
#![forbid(unsafe_code)]

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;
use std::thread::{self, Thread};

use super::epoch::has_memory;
use super::reaper::is_forked;
use super::summons::Summons;
use super::time::{Millis, now};
use crate::registry::{self, Due};
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering};

static SUMMONS: Summons = Summons::new();

/// 1: no thread is to be started.
static MANUAL: AtomicU32 = AtomicU32::new(0);

/// 1: the process is on its way out.
static EXITING: AtomicU32 = AtomicU32::new(0);

/// When the thread will look again.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The thread, to wake it up.
static THREAD: Lock<Option<Thread>> = Lock::new(None);

/// While grace periods are under way the thread looks after this long, and after twice as long each time that there
/// was nothing to reap: a reader that stays pinned should not cost a processor.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(32);

/// Sees to it that the thread looks within `interval`, if there may be one. Never waits for it.
pub(crate) fn need(interval: Duration) {
    // Asked before it is looked whether the thread may run: whoever allows it asks after that.
    while SUMMONS.ask() {
        if may_run() {
            start();
            break;
        }
        SUMMONS.abandon();
        // Who allowed it in between found one that runs, and started none.
        if !may_run() {
            return;
        }
    }
    // Relaxed: a hint; too late by one look at most.
    let next = NEXT.load(Ordering::Relaxed);
    if super::time::millis(interval).saturating_add(now()) < next {
        wake();
    }
}

/// Has the thread look at once.
pub(crate) fn wake() {
    if let Some(thread) = THREAD.lock().as_ref() {
        thread.unpark();
    }
}

fn may_run() -> bool {
    // Relaxed: a choice that orders nothing.
    MANUAL.load(Ordering::Relaxed) == 0 && !is_exiting() && !is_forked()
}

fn is_exiting() -> bool {
    // Relaxed: what is begun before the exit is seen may as well be finished.
    EXITING.load(Ordering::Relaxed) != 0
}

#[cold]
fn start() {
    let started = has_memory() && {
        at_exit();
        let builder = thread::Builder::new().name("sheaves-drain".into());
        builder.spawn(run).is_ok()
    };
    if !started {
        // Whoever needs the thread next tries again.
        SUMMONS.abandon();
    }
}

/// What is not reaped when the process exits stays so: destructors do not run beside what is torn down.
fn at_exit() {
    #[cfg(unix)]
    super::exit::on_exit(|| {
        // Relaxed: see `is_exiting`.
        EXITING.store(1, Ordering::Relaxed);
    });
}

fn run() {
    *THREAD.lock() = Some(thread::current());
    let mut patience = FIRST_LOOK;
    loop {
        SUMMONS.begin();
        let due = if may_run() { look() } else { None };
        let Some(due) = due else {
            if stop() {
                return;
            }
            continue;
        };
        patience = match due {
            Due::Now => FIRST_LOOK,
            Due::Grace => patience.saturating_mul(2).min(LAST_LOOK),
            Due::Age(_) => FIRST_LOOK,
        };
        let pause = match due {
            Due::Age(pause) => pause.max(FIRST_LOOK),
            _ => patience,
        };
        // Relaxed: a hint.
        NEXT.store(until(pause), Ordering::Relaxed);
        thread::park_timeout(pause);
    }
}

/// Has the thread stop, unless somebody asked after its look; whether it does.
fn stop() -> bool {
    // Taken back before the state changes: a thread that is started then enters itself.
    let known = THREAD.lock().take();
    if SUMMONS.stop() {
        return true;
    }
    if may_run() {
        *THREAD.lock() = known;
        return false;
    }
    SUMMONS.abandon();
    // Who allowed the thread again found one that runs, and started none.
    if may_run() {
        need(Duration::ZERO);
    }
    true
}

fn until(pause: Duration) -> Millis {
    now().saturating_add(super::time::millis(pause))
}

/// Looks after every cache; what to wait for, if anything is retired.
fn look() -> Option<Due> {
    let mut due: Option<Due> = None;
    for cache in registry::all() {
        // What a page source panics with is nobody's.
        let found = catch_unwind(AssertUnwindSafe(|| {
            let found = cache.reclaim(false).due;
            drop(cache);
            found
        }));
        let Ok(Some(found)) = found else { continue };
        due = Some(due.map_or(found, |due| due.min(found)));
        if is_exiting() {
            return None;
        }
    }
    let attic = super::attic::reclaim().then_some(Due::Grace);
    due.into_iter().chain(attic).min()
}

/// Chooses whether the process has a drain thread.
pub(crate) fn set_manual(manual: bool) {
    // Relaxed: a choice that orders nothing.
    MANUAL.store(u32::from(manual), Ordering::Relaxed);
    if manual {
        wake();
    } else {
        need(Duration::ZERO);
    }
}

/// Locks what a fork must not find locked.
pub(crate) fn hold() -> impl Sized {
    THREAD.lock()
}

/// In a forked child: the thread is not there.
pub(crate) fn forget() {
    *THREAD.lock() = None;
    SUMMONS.abandon();
}
