//! Where a thread runs.

/// The processor that runs the calling thread: at any moment it may be moved to another. 0 where the system does not
/// say. Costs some nanoseconds, no system call on Linux.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn current_cpu() -> usize {
    // SAFETY: `sched_getcpu` takes no argument and touches no memory of the caller.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).unwrap_or(0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn current_cpu() -> usize {
    0
}
