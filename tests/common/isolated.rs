//! Tests in processes of their own.

use std::process::Command;

use super::watchdog::watched;

/// Runs the test with this path in a process of its own: for what changes or might abort it.
pub(crate) fn isolated(path: &str, body: impl FnOnce()) {
    const MARK: &str = "TEST_ISOLATED";
    if std::env::var_os(MARK).is_some_and(|value| value == path) {
        return watched(path, body);
    }
    let exe = std::env::current_exe().expect("tests have an executable");
    let mut child = Command::new(exe);
    child
        .args([path, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, path);
    let output = child.output().expect("the executable can be run again");
    let text = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{path} alone: {status}\n{text}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 passed"),
        "{path} alone ran nothing: {text}"
    );
}
