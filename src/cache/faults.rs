//! Injected faults: who asks, and the pool without its fast path.
//!
//! Faults are asked about on slow paths only. So while a pool has a fault its threads' gates stay *guarded*: shut for
//! the fast path, with all else as ever. Sheaves, barn and refills work behind the locals' locks.
#![forbid(unsafe_code)]

use super::{Cache, Failure};
use crate::base::error::AllocErrorKind;
use crate::hook::counter::Counter;
use crate::hook::fault::{Fault, Injector};
use crate::local::Local;

impl Cache {
    /// Whether an allocation is to fail.
    #[inline]
    pub(super) fn is_faulted(&self) -> bool {
        let fires = self.injector.fires();
        if fires {
            self.counters.add(Counter::Faults, 1);
        }
        fires
    }

    /// Fails where a fault says so.
    #[inline]
    pub(super) fn ask(&self) -> Result<(), Failure> {
        if self.is_faulted() {
            return Err(AllocErrorKind::Injected);
        }
        Ok(())
    }

    /// Replaces the fault. The caches beside the pool's own ask this one, see `classes`.
    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.injector.set(fault);
        self.guard(&self.injector);
        for class in self.classes.iter() {
            class.guard(&self.injector);
        }
    }

    /// Keeps all threads off the fast path while there is a fault, or no more. Whoever comes last of those who replace
    /// it, or make a class, sees the fault that stays.
    pub(super) fn guard(&self, injector: &Injector) {
        let mut locals = self.locals.lock();
        let guarded = injector.is_set();
        if locals.closed || locals.guarded == guarded {
            return;
        }
        locals.guarded = guarded;
        self.tightness.set_faulted(guarded);
        let change = if guarded {
            Local::guard
        } else {
            Local::unguard
        };
        locals.list.iter().for_each(|local| change(local));
    }

    /// Has prefilled sheaves hold no more than was asked for.
    pub(crate) fn set_exact_prefill(&self, exact: bool) {
        self.injector.set_exact(exact);
    }
}
