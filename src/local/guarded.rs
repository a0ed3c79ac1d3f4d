//! Locals whose owners stay off the fast path while nothing else changes for them.
//!
//! Nobody takes anything from behind the gate, so its owner need not be waited for: an operation that is under way ends
//! as it would have, and the next one finds the gate shut.
#![forbid(unsafe_code)]

use super::Local;

impl Local {
    /// Keeps the owner off the fast path until [`Local::unguard`]; nothing else changes for it.
    pub(crate) fn guard(&self) {
        let mut shelf = self.shelf.lock();
        shelf.guarded = true;
        self.gate.shut();
    }

    /// Lets the owner onto the fast path again.
    pub(crate) fn unguard(&self) {
        let mut shelf = self.shelf.lock();
        shelf.guarded = false;
        shelf.reopen(self);
    }
}
