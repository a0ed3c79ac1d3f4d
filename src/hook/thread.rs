//! The running thread, told at any time of its life.

use core::fmt;

/// A thread, by the names that a debugger shows.
///
/// std's handle of the running thread is not to be had in the last destructors of a thread; the system knows it
/// always.
#[derive(Clone, Debug)]
pub(crate) struct Id {
    name: String,
    number: u64,
}

impl Id {
    #[cfg(target_os = "linux")]
    pub(crate) fn current() -> Self {
        /// Bytes of a thread's name with its end, by the system's documentation.
        const NAME: usize = 16;
        let mut name = [0_u8; NAME];
        // SAFETY: takes no argument and names the running thread.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread is alive, since it runs; the buffer is as long as it says.
        unsafe { libc::pthread_getname_np(this, name.as_mut_ptr().cast(), NAME) };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        // SAFETY: takes no argument and touches no memory of ours.
        let number = unsafe { libc::gettid() };
        Self {
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            number: u64::try_from(number).unwrap_or(0),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn current() -> Self {
        Self {
            name: "a thread".to_owned(),
            number: 0,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (thread {})", self.name, self.number)
    }
}
