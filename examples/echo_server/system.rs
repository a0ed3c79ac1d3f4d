//! Calls of the system that std has no name for.

use core::time::Duration;
use std::io;
use std::os::fd::RawFd;

use super::connection::Request;
use super::stock::Stock;

/// Raises the soft limit of open files to what is wanted or, if that is less, to the hard limit. How many there are now.
pub(crate) fn raise_descriptors(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for the write.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < wanted {
        limit.rlim_cur = wanted.min(limit.rlim_max);
        // SAFETY: `limit` is a valid limit, no higher than the hard one.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the write.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    if done == 0 {
        Duration::new(seconds, nanoseconds)
    } else {
        Duration::ZERO
    }
}

/// An entry of [`wait`] that waits for `events` of `fd`.
pub(crate) const fn entry(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Waits until something happens at one of the descriptors; negative ones are passed over.
pub(crate) fn wait(entries: &mut [libc::pollfd]) -> io::Result<()> {
    let count = libc::nfds_t::try_from(entries.len()).map_err(io::Error::other)?;
    // SAFETY: the entries are valid for reads and writes, and as many as said.
    while unsafe { libc::poll(entries.as_mut_ptr(), count, -1) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// Reads into a request's buffer; how much, 0 at the end of the stream.
pub(crate) fn receive<S: Stock>(fd: RawFd, request: &mut Request<S>) -> io::Result<usize> {
    let (start, length) = request.room();
    // SAFETY: the room is the request's own, valid for writes of its length.
    let received = unsafe { libc::recv(fd, start.cast(), length, 0) };
    let n = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the system wrote `n` bytes from the room's begin.
    unsafe { request.received(n) };
    Ok(n)
}
