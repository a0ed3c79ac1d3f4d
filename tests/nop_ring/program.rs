//! The program `nop_ring` from outside: its options, its output and its exit codes.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the program. It is where Cargo puts examples: beside the folder of this test's own file.
fn nop_ring(options: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test knows its file");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("tests lie in deps/ of the profile's folder");
    let name = format!("nop_ring{}", std::env::consts::EXE_SUFFIX);
    let program: PathBuf = profile.join("examples").join(name);
    assert!(
        program.exists(),
        "{} is missing: cargo build --example nop_ring",
        program.display()
    );
    Command::new(program)
        .args(options)
        .output()
        .expect("the program starts")
}

/// The standard error of a run, as text.
fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of a successful `--json` run, after a check of what they all say.
fn lines(output: &Output, depth: u64, nops: u64, rounds: u64) -> Vec<Value> {
    assert!(output.status.success(), "{}", errors(output));
    let text = core::str::from_utf8(&output.stdout).expect("JSON is UTF-8");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("one object a line"))
        .collect();
    let contenders: Vec<_> = lines.iter().map(|line| line["contender"].clone()).collect();
    assert_eq!(contenders, ["box", "pool-auto", "pool-large"]);
    for line in &lines {
        let number = |key: &str| line[key].as_f64().expect("a number");
        assert!(number("ns_per_nop") > 0.0);
        assert!((number("nops_per_second") * number("ns_per_nop") / 1e9 - 1.0).abs() < 1e-9);
        assert!(number("ratio_to_box") > 0.0);
        assert_eq!(
            (&line["depth"], &line["nops"], &line["rounds"]),
            (&depth.into(), &nops.into(), &rounds.into())
        );
    }
    assert_eq!(lines[0]["ratio_to_box"], 1.0);
    lines
}

const SHORT: [&str; 5] = ["--nops", "20000", "--rounds", "2", "--json"];

#[test]
fn json_in_process() {
    let output = nop_ring(&[&SHORT[..], &["--ring", "in-process"]].concat());
    for line in lines(&output, 256, 20_000, 2) {
        assert_eq!(line["ring"], "in-process");
    }
    assert_eq!(errors(&output), "");
}

#[test]
fn json_on_io_uring_where_it_is_allowed() {
    let output = nop_ring(&[&SHORT[..], &["--depth", "100"]].concat());
    let lines = lines(&output, 100, 20_000, 2);
    if lines[0]["ring"] == "io_uring" {
        assert_eq!(errors(&output), "");
    } else {
        assert_eq!(lines[0]["ring"], "in-process");
        assert!(
            errors(&output).contains("ring inside the process"),
            "{}",
            errors(&output)
        );
    }
}

#[test]
fn where_io_uring_is_forbidden_the_program_says_so_and_goes_on() {
    let output = nop_ring(&[&SHORT[..], &["--forbid-io-uring"]].concat());
    for line in lines(&output, 256, 20_000, 2) {
        assert_eq!(line["ring"], "in-process");
    }
    assert_eq!(errors(&output).lines().count(), 1);
    assert!(errors(&output).contains("io_uring"), "{}", errors(&output));

    let output = nop_ring(&[&SHORT[..], &["--forbid-io-uring", "--ring", "io_uring"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("--ring in-process"),
        "{}",
        errors(&output)
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn the_table_the_pools_and_nothing_on_standard_error() {
    let output = nop_ring(&[
        "--nops",
        "5000",
        "--rounds",
        "1",
        "--ring",
        "in-process",
        "--depth",
        "4096",
    ]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(errors(&output), "", "no bar off a terminal");
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "ratio to box",
        "slabinfo",
        "pool-auto",
        "pool-large",
        "live",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn wrong_options_are_named_and_end_with_code_2() {
    let wrong: [&[&str]; 11] = [
        &["--nops", "0"],
        &["--nops", "-1"],
        &["--nops", "many"],
        &["--nops", "99999999999999999999"],
        &["--depth", "0"],
        &["--depth", "4097"],
        &["--depth", "70000"],
        &["--rounds", "0"],
        &["--rounds", "1.5"],
        &["--ring", "epoll"],
        &["--no-such-option"],
    ];
    for options in wrong {
        let output = nop_ring(options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(
            errors(&output).contains(options[0]),
            "{options:?}: {}",
            errors(&output)
        );
        assert!(output.stdout.is_empty(), "{options:?}");
    }
}

#[test]
fn help_names_every_option() {
    let output = nop_ring(&["--help"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    for option in [
        "--nops", "--depth", "--rounds", "--ring", "--json", "--help",
    ] {
        assert!(text.contains(option), "{option}");
    }
    assert!(!text.contains("--forbid-io-uring"), "for tests only");
}
