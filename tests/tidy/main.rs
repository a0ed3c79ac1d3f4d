//! Checks of the source itself: what the compiler and clippy cannot say but this project promises.
//!
//! Each rule is a module with one test over the tree, which prints every violation as
//! `file:line: text`, and tests of the rule on small snippets, good and bad, so that no rule can pass
//! because it sees nothing. Parsing is done by `proc-macro2` and `syn`; a rule works on tokens where
//! it must also see into macro calls, and on the syntax tree where it needs items and statements.

#![forbid(unsafe_code)]

mod doors;
mod examples;
mod forbid;
mod layers;
mod links;
mod msrv;
mod orderings;
mod project;
mod safety;
mod shape;
mod spans;
mod text;
mod tokens;
mod tree;
mod verification;

use core::fmt;
use std::path::Path;

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    file: String,
    line: usize,
    text: String,
}

impl Violation {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Fails with all violations, one a line.
fn assert_none(mut violations: Vec<Violation>) {
    violations.sort();
    violations.dedup();
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} found:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// The lines at which a rule complains, for the rules' own tests.
#[track_caller]
fn assert_lines(violations: &[Violation], expected: &[usize]) {
    let lines: Vec<usize> = violations.iter().map(|violation| violation.line).collect();
    assert_eq!(lines, expected, "{violations:#?}");
}
