//! What happens when the process exits.

use crate::sync::OnceLock;

static HANDLER: OnceLock<fn()> = OnceLock::new();

extern "C" fn call() {
    if let Some(handler) = HANDLER.get() {
        handler();
    }
}

/// Has `handler` called when the process exits; the first call counts.
pub(super) fn on_exit(handler: fn()) {
    HANDLER.get_or_init(|| {
        // SAFETY: the function is one of this program with the type that is asked for. It calls a handler that is set
        // by then or none, and does not unwind: the one handler there is stores a word.
        let _ = unsafe { libc::atexit(call) };
        handler
    });
}
