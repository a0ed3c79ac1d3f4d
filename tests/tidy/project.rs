//! The files around the source: manifests, scripts, README, change log.

use crate::{Violation, assert_lines, assert_none, root, tree};
use std::fs;

/// Manifests of the workspace; packages outside it keep their own tables.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "pool-derive/Cargo.toml"];

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The lines of one section of a manifest, without comments.
fn section<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let header = format!("[{name}]");
    let lines = manifest
        .lines()
        .map(|line| line.split('#').next().unwrap_or(line).trim());
    let inside = lines.skip_while(|line| *line != header).skip(1);
    inside
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty())
        .collect()
}

fn shares_lints(file: &str, manifest: &str) -> Option<Violation> {
    let shared = section(manifest, "lints").contains(&"workspace = true");
    let text = "`[lints]` must say `workspace = true`: one table for both crates";
    (!shared).then(|| Violation::new(file, 1, text))
}

fn has_unreleased(log: &str) -> bool {
    log.lines()
        .any(|line| line.starts_with("## ") && line.contains("Unreleased"))
}

/// Names of examples, by file or by folder with a `main.rs`.
fn examples() -> Vec<String> {
    let name = |(path, _): (String, String)| {
        let path = path.strip_prefix("examples/")?.strip_suffix(".rs")?;
        match path.split_once('/') {
            None => Some(path.to_owned()),
            Some((folder, "main")) => Some(folder.to_owned()),
            Some(_) => None,
        }
    };
    tree::texts("examples", &["rs"])
        .into_iter()
        .filter_map(name)
        .collect()
}

fn unlisted<'a>(examples: &'a [String], readme: &str) -> Vec<&'a str> {
    let part = |c: char| !(c.is_alphanumeric() || c == '_' || c == '-');
    let listed = |example: &&String| readme.split(part).any(|word| word == example.as_str());
    examples
        .iter()
        .filter(|example| !listed(example))
        .map(String::as_str)
        .collect()
}

/// A check script runs from any folder and stops at the first error.
fn check_script(file: &str, text: &str) -> Vec<Violation> {
    let needed = ["set -euo pipefail", "cd \"$(dirname \"$0\")/..\""];
    let missing = needed
        .iter()
        .filter(|line| !text.lines().any(|own| own.trim() == **line));
    let mut found: Vec<Violation> = missing
        .map(|line| Violation::new(file, 1, format!("no line `{line}`")))
        .collect();
    let mut head = text.lines();
    if head.next() != Some("#!/usr/bin/env bash") {
        found.push(Violation::new(
            file,
            1,
            "the first line must be `#!/usr/bin/env bash`",
        ));
    }
    if !head.next().is_some_and(|line| line.starts_with("# ")) {
        found.push(Violation::new(
            file,
            2,
            "the second line must say what the script checks",
        ));
    }
    found
}

#[test]
fn crates_share_the_lint_table() {
    let check = |file: &&str| shares_lints(file, &read(file));
    assert_none(MANIFESTS.iter().filter_map(check).collect());
}

#[test]
fn the_change_log_has_a_place_for_what_is_new() {
    assert!(
        has_unreleased(&read("CHANGELOG.md")),
        "CHANGELOG.md:1: no heading for `Unreleased`"
    );
}

#[test]
fn the_readme_lists_every_example() {
    let examples = examples();
    let Ok(readme) = fs::read_to_string(root().join("README.md")) else {
        return;
    };
    let missing = unlisted(&examples, &readme);
    let told = |name: &str| {
        Violation::new(
            "README.md",
            1,
            format!("does not list the example `{name}`"),
        )
    };
    assert_none(missing.into_iter().map(told).collect());
}

#[test]
fn check_scripts_run_from_anywhere() {
    // The published package leaves them out.
    let scripts = tree::texts(".ci", &["", "sh"]);
    assert_none(
        scripts
            .iter()
            .flat_map(|(file, text)| check_script(file, text))
            .collect(),
    );
}

#[test]
fn lint_tables_of_their_own_are_told() {
    let good = "[package]\nname = \"x\"\n\n[lints]\nworkspace = true # one table\n[features]\n";
    let bad =
        "[lints.rust]\nworkspace = true\n[lints]\n# workspace = true\n[x]\nworkspace = true\n";
    assert_eq!(shares_lints("Cargo.toml", good), None);
    assert!(shares_lints("Cargo.toml", bad).is_some());
}

#[test]
fn missing_examples_and_headings_are_told() {
    let examples = ["lru".to_owned(), "hello".to_owned()];
    assert_eq!(
        unlisted(&examples, "| [`hello`](examples/hello.rs) | lru_cache |"),
        ["lru"]
    );
    assert!(has_unreleased("# Changes\n\n## [Unreleased]\n"));
    assert!(!has_unreleased("# Unreleased\n## 0.1.0\nUnreleased"));
}

#[test]
fn careless_scripts_are_told() {
    let good = "#!/usr/bin/env bash\n# Checks x.\nset -euo pipefail\ncd \"$(dirname \"$0\")/..\"\n";
    assert_lines(&check_script("x", good), &[]);
    assert_lines(&check_script("x", "#!/bin/sh\ncargo x\n"), &[1, 1, 1, 2]);
}
