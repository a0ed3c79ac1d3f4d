//! The example `echo_server` from outside: both ways to wait, connections that are shed, and what it leaves behind.
//!
//! The program checks every message, compares the accounts of both ends, and closes its pools; it says so in its last
//! line, or fails.

#![cfg(all(unix, not(loom)))]
#![forbid(unsafe_code)]

use std::process::{Command, Output};

use sheaves::export::Snapshot;

const SMALL: [&str; 6] = ["--connections", "24", "--messages", "5", "--rounds", "1"];
const DONE: &str =
    "every message came back; every connection was ended by the server; every pool was closed";

/// Runs the program, which lies where Cargo puts examples: beside the folder of this test's own file.
fn echo_server(options: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test knows its file");
    let profile = test.ancestors().nth(2).expect("tests lie in deps/");
    let program = profile.join("examples/echo_server");
    assert!(
        program.exists(),
        "{} is missing: cargo build --example echo_server",
        program.display()
    );
    Command::new(program)
        .args(SMALL)
        .args(options)
        .output()
        .expect("the program starts")
}

/// What a run that succeeded has printed.
#[track_caller]
fn printed(options: &[&str]) -> String {
    let output = echo_server(options);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert_eq!(text.lines().last(), Some(DONE), "{text}");
    assert!(!text.contains("were shed") || options.contains(&"--limit"));
    text
}

#[test]
fn threads_that_poll_echo_everything() {
    let text = printed(&["--mode", "threads", "--threads", "3"]);
    assert!(text.contains("3 server threads on poll"), "{text}");
    assert!(text.contains("    24 live"), "{text}");
}

#[test]
fn io_uring_echoes_everything_where_it_is_allowed() {
    let text = printed(&["--threads", "2"]);
    let fell_back = text.contains("threads poll instead");
    let way = if fell_back { "poll" } else { "io_uring" };
    assert!(
        text.contains(&format!("2 server threads on {way}")),
        "{text}"
    );
}

#[test]
fn messages_larger_than_a_buffer_come_back() {
    printed(&["--size", "10000"]);
    printed(&["--size", "10000", "--mode", "threads"]);
}

#[test]
fn what_is_more_than_the_limit_is_shed_and_told_why() {
    for mode in ["auto", "threads"] {
        let text = printed(&["--limit", "7", "--threads", "2", "--mode", mode]);
        let told = "17 connections were shed, and told: cannot allocate from pool `connection`: its limit is reached";
        assert!(text.contains(told), "{text}");
        assert!(text.contains("     7 live"), "{text}");
    }
}

#[test]
fn where_io_uring_is_forbidden_threads_poll_or_nothing_runs() {
    let text = printed(&["--forbid-io-uring"]);
    assert!(text.contains("threads poll instead"), "{text}");
    let output = echo_server(&["--forbid-io-uring", "--mode", "io_uring"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--mode threads"), "{errors}");
}

#[test]
fn snapshots_are_written_for_slabtop() {
    let name = format!("echo-server-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    printed(&["--export", path.to_str().expect("a plain path")]);
    let snapshot = Snapshot::read(&path);
    std::fs::remove_file(&path).expect("the file was written");
    assert_ne!(snapshot.expect("a snapshot").pid, 0);
}
