//! A clock that counts readers, for the models: a grace period is over when all who were pinned at its beginning
//! have unpinned.
#![forbid(unsafe_code)]

use super::tickets::Clock;
use crate::sync::Lock;

/// See the module.
#[derive(Debug)]
pub(crate) struct Counting(Lock<Book>);

#[derive(Debug, Default)]
struct Book {
    /// For each reader that is pinned, the last grace period that had begun.
    pinned: Vec<u64>,
    begun: u64,
    done: u64,
}

impl Counting {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Book::default()))
    }

    /// Pins a reader: the number to unpin with.
    pub(crate) fn pin(&self) -> u64 {
        let mut book = self.0.lock();
        let begun = book.begun;
        book.pinned.push(begun);
        begun
    }

    pub(crate) fn unpin(&self, pinned: u64) {
        let mut book = self.0.lock();
        let at = book.pinned.iter().position(|other| *other == pinned);
        book.pinned.swap_remove(at.expect("a reader unpins once"));
    }
}

impl Clock for Counting {
    fn begin(&self, n: u64) {
        self.0.lock().begun = n;
        self.advance();
    }

    fn advance(&self) {
        let mut book = self.0.lock();
        // A reader that was pinned when `n` had begun holds up all after `n`.
        let oldest = book.pinned.iter().min().copied();
        book.done = book.begun.min(oldest.unwrap_or(u64::MAX)).max(book.done);
    }

    fn done(&self) -> u64 {
        self.0.lock().done
    }
}
