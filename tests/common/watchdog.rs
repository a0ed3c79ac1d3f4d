//! A deadlock fails instead of hanging.

use core::time::Duration;
use std::io::Write;
use std::sync::mpsc;

/// Says why on the real stderr, whatever the test harness captures, and ends the process.
pub(crate) fn die(why: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "\n{why}");
    std::process::abort();
}

/// Runs `body`, and ends the process if it takes longer than two minutes.
pub(crate) fn watched<R>(what: &str, body: impl FnOnce() -> R) -> R {
    let (done, wait) = mpsc::channel::<()>();
    let what = what.to_owned();
    let dog = std::thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(120)) == Err(mpsc::RecvTimeoutError::Timeout) {
            die(&format!(
                "{what}: still not done after two minutes, deadlocked?"
            ));
        }
    });
    let result = body();
    drop(done);
    dog.join().expect("the watchdog does not panic");
    result
}
