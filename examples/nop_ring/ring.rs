//! What the loop needs of a ring, and a ring that needs no kernel.

#![forbid(unsafe_code)]

use alloc::collections::VecDeque;

use super::failure::Failure;

/// How many completions a ring has room for, for each place in its submission queue. The same as
/// io_uring's default.
const COMPLETIONS_PER_SUBMISSION: usize = 2;

/// What a ring says about one finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// What the request was queued with.
    pub(crate) user_data: u64,
    /// 0 when the NOP succeeded, else a negative error number.
    pub(crate) result: i32,
}

/// How a call of [`Ring::submit_and_wait`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The ring took requests, and completions may be there.
    Done,
    /// A signal came first (`EINTR`): nothing is lost, call again.
    Interrupted,
    /// The ring is short of memory or of room for completions (`EAGAIN`, `EBUSY`): reap, then call
    /// again.
    Busy,
}

/// A pair of queues: requests go in at one, completions come out at the other.
///
/// What was queued stays queued until the ring has taken it, whatever
/// [`submit_and_wait`](Self::submit_and_wait) says.
pub(crate) trait Ring {
    /// Queues a NOP for each user data `next` gives, until it gives none or the submission queue is
    /// full.
    fn queue(&mut self, next: impl FnMut() -> Option<u64>);

    /// Hands over what is queued and waits for at least one completion. One system call at most.
    ///
    /// # Errors
    ///
    /// When the ring is beyond use; what can be waited out is a [`Wait`].
    fn submit_and_wait(&mut self) -> Result<Wait, Failure>;

    /// Gives every completion that is there to `each`, oldest first.
    fn reap(&mut self, each: impl FnMut(Completion));
}

/// A ring inside the process: a bounded queue that completes each NOP when it is submitted, in
/// order.
#[derive(Debug)]
pub(crate) struct InProcess {
    queued: VecDeque<u64>,
    completed: VecDeque<Completion>,
    depth: usize,
}

impl InProcess {
    /// A ring whose submission queue has `depth` places.
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            queued: VecDeque::with_capacity(depth),
            completed: VecDeque::with_capacity(depth * COMPLETIONS_PER_SUBMISSION),
            depth,
        }
    }
}

impl Ring for InProcess {
    #[inline]
    fn queue(&mut self, mut next: impl FnMut() -> Option<u64>) {
        while self.queued.len() < self.depth {
            let Some(user_data) = next() else { return };
            self.queued.push_back(user_data);
        }
    }

    fn submit_and_wait(&mut self) -> Result<Wait, Failure> {
        let room = self.depth * COMPLETIONS_PER_SUBMISSION - self.completed.len();
        let taken = room.min(self.queued.len());
        let completions = self.queued.drain(..taken).map(|user_data| Completion {
            user_data,
            result: 0,
        });
        self.completed.extend(completions);
        Ok(if self.queued.is_empty() {
            Wait::Done
        } else {
            Wait::Busy
        })
    }

    #[inline]
    fn reap(&mut self, each: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(each);
    }
}
