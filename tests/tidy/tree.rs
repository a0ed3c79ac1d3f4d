//! Finding and parsing the files that rules look at.

use crate::tokens::{self, Named};
use crate::{Violation, assert_none, root};
use proc_macro2::TokenStream;
use std::fs;
use std::path::{Path, PathBuf};

/// Programs for the compiler to refuse, and expansions to compare: data, not code of ours.
const DATA: [&str; 2] = ["tests/ui/", "tests/expand/"];

/// One parsed Rust file.
pub(crate) struct Source {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tokens: TokenStream,
    pub(crate) syntax: syn::File,
    /// Every path that the file names, in order.
    pub(crate) names: Vec<Named>,
    /// The whole file is compiled for tests only.
    pub(crate) test: bool,
}

impl Source {
    /// Parses a file's text.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, Violation> {
        let error = |line: usize, text: &dyn ToString| Violation::new(path, line, text.to_string());
        let syntax = syn::parse_file(text).map_err(|e| error(e.span().start().line, &e))?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|e: proc_macro2::LexError| error(e.span().start().line, &e))?;
        let names = tokens::names(&tokens);
        let test = syntax.attrs.iter().any(tokens::is_test_attribute);
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens,
            syntax,
            names,
            test,
        })
    }

    /// A source for a rule's own tests.
    pub(crate) fn snippet(path: &str, text: &str) -> Self {
        Self::parse(path, text).expect("a snippet must parse")
    }

    /// A violation in this file.
    pub(crate) fn violation(&self, line: usize, text: impl Into<String>) -> Violation {
        Violation::new(&self.path, line, text)
    }

    /// The file's lines; line 1 is at index 0.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text.lines().collect()
    }

    /// `slab/header.rs` for a file of the crate itself.
    pub(crate) fn in_src(&self) -> Option<&str> {
        self.path.strip_prefix("src/")
    }

    /// Where the file's child modules lie, relative to the workspace, with a slash at the end.
    pub(crate) fn child_folder(&self) -> String {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        if matches!(name, "mod" | "lib" | "main") {
            format!("{folder}/")
        } else {
            format!("{stem}/")
        }
    }
}

/// All Rust sources below the given folders. Fails, naming every file, when one does not parse.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut broken = Vec::new();
    for folder in folders {
        for (path, text) in texts(folder, &["rs"]) {
            if DATA.iter().any(|data| path.starts_with(data)) {
                continue;
            }
            match Source::parse(&path, &text) {
                Ok(source) => sources.push(source),
                Err(violation) => broken.push(violation),
            }
        }
    }
    assert_none(broken);
    mark_tests(&mut sources);
    sources
}

/// The crate's own sources, which must be there.
pub(crate) fn src() -> Vec<Source> {
    let sources = sources(&["src"]);
    assert!(
        sources.iter().any(|source| source.path == "src/lib.rs"),
        "src/lib.rs was not found"
    );
    sources
}

/// All code of the workspace: both crates, tests, examples, benchmarks.
pub(crate) fn everything() -> Vec<Source> {
    let sources = sources(&["src", "pool-derive", "tests", "examples", "benches"]);
    for needed in ["src/lib.rs", "pool-derive/src/lib.rs", "tests/tidy/tree.rs"] {
        assert!(
            sources.iter().any(|source| source.path == needed),
            "{needed} was not found"
        );
    }
    sources
}

/// Paths and texts of the files with one of the endings below a folder, in order of path. Build
/// output and hidden folders are left out; what is no UTF-8 is left out too.
pub(crate) fn texts(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    walk(&root().join(folder), &mut files);
    files.sort();
    let wanted = |path: &PathBuf| {
        endings.contains(
            &path
                .extension()
                .and_then(|ending| ending.to_str())
                .unwrap_or(""),
        )
    };
    let relative = |path: &Path| {
        let path = path.strip_prefix(root()).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    };
    let read = |path: PathBuf| Some((relative(&path), fs::read_to_string(&path).ok()?));
    files.into_iter().filter(wanted).filter_map(read).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.') || name == "target";
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden => walk(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// Marks the files that are modules declared under `#[cfg(test)]`, and all below them.
fn mark_tests(sources: &mut [Source]) {
    let mut roots = Vec::new();
    for source in sources.iter() {
        if source.test {
            roots.push(source.child_folder().trim_end_matches('/').to_owned());
        }
        for name in tokens::test_modules(&source.tokens) {
            roots.push(format!("{}{name}", source.child_folder()));
        }
    }
    for source in sources {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        let below = |root: &String| stem == root || stem.starts_with(&format!("{root}/"));
        source.test |= roots.iter().any(below);
    }
}

#[test]
fn modules_declared_for_tests_are_marked() {
    let mut sources = vec![
        Source::snippet(
            "src/slab/mod.rs",
            "mod state;\n#[cfg(all(test, loom))]\nmod model;",
        ),
        Source::snippet("src/slab/state.rs", "#[cfg(test)]\nmod tests;"),
        Source::snippet("src/slab/state/tests.rs", ""),
        Source::snippet("src/slab/model.rs", ""),
        Source::snippet("src/slab/model/scenes.rs", ""),
        Source::snippet("src/slab/fake.rs", "#![cfg(test)]"),
        Source::snippet("src/slab/fake/page.rs", ""),
        Source::snippet("src/slab/models.rs", "#[cfg(any(test, loom))]\nmod x;"),
        Source::snippet("src/slab/models/x.rs", "#![cfg(not(test))]"),
    ];
    mark_tests(&mut sources);
    let marks: Vec<bool> = sources.iter().map(|source| source.test).collect();
    assert_eq!(
        marks,
        [false, false, true, true, true, true, true, false, false]
    );
}

#[test]
fn a_file_that_does_not_parse_is_told_by_line() {
    let violation = Source::parse("src/x.rs", "fn f() {}\nfn g( {}\n")
        .err()
        .expect("an error");
    assert_eq!((violation.file.as_str(), violation.line), ("src/x.rs", 2));
}
