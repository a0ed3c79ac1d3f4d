//! The real ring: io_uring by way of the `io-uring` crate.
//!
//! The one unsafe call is the push of a submission entry, whose pointers the kernel would follow; a
//! NOP has none.

use std::io;

use io_uring::{IoUring, opcode};

use super::failure::Failure;
use super::ring::{Completion, Ring, Wait};

/// A way to set io_uring up: what it is called, and how to ask for it.
type Setting = (&'static str, fn(&mut io_uring::Builder));

/// From the cheapest to what every kernel has. The first two keep completion work out of interrupts
/// and out of other threads' way; a kernel that does not know a flag answers `EINVAL`.
const SETTINGS: [Setting; 4] = [
    ("single issuer, deferred task work", |builder| {
        builder.setup_single_issuer().setup_defer_taskrun();
    }),
    ("single issuer, cooperative task work", |builder| {
        builder.setup_single_issuer().setup_coop_taskrun();
    }),
    ("cooperative task work", |builder| {
        builder.setup_coop_taskrun();
    }),
    ("no flags", |_| {}),
];

/// What the trial NOP carries.
const TRIAL: u64 = 0x0074_7269_616c;

/// How often the trial NOP may be put off by a signal or a shortage.
const MOST_TRIALS: u32 = 1_000;

/// An io_uring of one thread.
pub(crate) struct Uring {
    ring: IoUring,
    setting: &'static str,
}

impl Uring {
    /// Sets a ring with `depth` submission places up and sends one NOP through it: some sandboxes
    /// allow the set-up and forbid the use.
    ///
    /// # Errors
    ///
    /// The system's own error; see [`forbidden`] for what it may mean.
    pub(crate) fn open(depth: usize) -> io::Result<Self> {
        let entries = u32::try_from(depth).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut last = io::Error::from(io::ErrorKind::Unsupported);
        for (setting, ask) in SETTINGS {
            let mut builder = IoUring::builder();
            ask(&mut builder);
            match builder.build(entries) {
                Ok(ring) => {
                    let mut opened = Self { ring, setting };
                    opened.try_nop()?;
                    return Ok(opened);
                }
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Which flags the ring runs with, in words.
    pub(crate) const fn setting(&self) -> &'static str {
        self.setting
    }

    /// Sends one NOP and waits for it.
    fn try_nop(&mut self) -> io::Result<()> {
        let mut trial = Some(TRIAL);
        self.queue(|| trial.take());
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for _ in 0..MOST_TRIALS {
            match self.ring.submit_and_wait(1) {
                Err(error) if classify(&error).is_none() => return Err(error),
                Err(error) => last = error,
                Ok(_) => {}
            }
            let mut answer = None;
            self.reap(|completion| answer = Some(completion));
            match answer {
                None => {}
                Some(Completion {
                    user_data: TRIAL,
                    result: 0,
                }) => return Ok(()),
                Some(_) => return Err(io::Error::other("a trial NOP came back changed")),
            }
        }
        Err(last)
    }
}

impl Ring for Uring {
    #[inline]
    fn queue(&mut self, mut next: impl FnMut() -> Option<u64>) {
        let mut submission = self.ring.submission();
        while !submission.is_full() {
            let Some(user_data) = next() else { return };
            let entry = opcode::Nop::new().build().user_data(user_data);
            // SAFETY: `push` asks that what the entry refers to stays valid while the operation
            // runs; a NOP refers to nothing, its user data is a number to the kernel.
            let pushed = unsafe { submission.push(&entry) };
            debug_assert!(pushed.is_ok(), "the queue was not full");
        }
    }

    fn submit_and_wait(&mut self) -> Result<Wait, Failure> {
        let wait = match self.ring.submit_and_wait(1) {
            Ok(_) => Wait::Done,
            Err(error) => classify(&error).ok_or(Failure::Ring(error))?,
        };
        // Since Linux 5.5 completions that find the queue full are kept and delivered later; this
        // counts what could not be.
        match self.ring.completion().overflow() {
            0 => Ok(wait),
            dropped => Err(Failure::Dropped(dropped)),
        }
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(Completion)) {
        for entry in self.ring.completion() {
            each(Completion {
                user_data: entry.user_data(),
                result: entry.result(),
            });
        }
    }
}

/// What can be waited out; `None` for an error that stays.
fn classify(error: &io::Error) -> Option<Wait> {
    match error.raw_os_error()? {
        libc::EINTR => Some(Wait::Interrupted),
        libc::EAGAIN | libc::EBUSY => Some(Wait::Busy),
        _ => None,
    }
}

/// Whether `error`, from [`Uring::open`], says that this system has no io_uring or does not let
/// this process use it.
pub(crate) fn forbidden(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES)
    )
}
