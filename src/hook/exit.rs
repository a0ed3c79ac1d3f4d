//! What is to be done when the process ends.

/// Has `f` called when the process ends by a return from `main` or by `exit`. Off unix never.
pub(crate) fn at_exit(f: extern "C" fn()) {
    #[cfg(unix)]
    // SAFETY: a function of this program with the type that is asked for. Without room for it, it is not called.
    let _ = unsafe { libc::atexit(f) };
    #[cfg(not(unix))]
    let _ = f;
}
