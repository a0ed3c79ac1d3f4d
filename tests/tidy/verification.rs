//! `docs/VERIFICATION.md`: every test and mutation that it names is there, and every mutation is named.

use std::collections::BTreeSet;

use crate::{Violation, assert_lines, assert_none, root, tree};

const PAGE: &str = "docs/VERIFICATION.md";

/// What the page may name.
struct Named {
    /// Test binaries of `tests`.
    binaries: BTreeSet<String>,
    /// Tests as `binary module::test`, those of the library as ` module::test`; modules as the same with `::` at the end.
    tests: BTreeSet<String>,
    mutations: BTreeSet<String>,
}

impl Named {
    fn of_tree() -> Self {
        let mut named = Self {
            binaries: BTreeSet::new(),
            tests: BTreeSet::new(),
            mutations: BTreeSet::new(),
        };
        for (path, text) in tree::texts("src", &["rs"]) {
            let path = path.trim_start_matches("src/");
            named.add_tests("", path, &text);
        }
        for (path, text) in tree::texts("tests", &["rs"]) {
            let path = path.trim_start_matches("tests/");
            let (binary, path) = match path.split_once('/') {
                Some((binary, path)) => (binary, path),
                None => (path.trim_end_matches(".rs"), "main.rs"),
            };
            if root().join(format!("tests/{binary}/main.rs")).exists() || path == "main.rs" {
                named.binaries.insert(binary.to_owned());
                named.add_tests(binary, path, &text);
            }
        }
        let patches = tree::texts("tests/mutations", &["patch"]);
        named.mutations.extend(patches.iter().map(|(path, _)| {
            let name = path.trim_start_matches("tests/mutations/");
            name.trim_end_matches(".patch").to_owned()
        }));
        named
    }

    /// Adds the tests of a file by its path under the crate's root file.
    fn add_tests(&mut self, binary: &str, path: &str, text: &str) {
        let of_file = path.trim_end_matches(".rs");
        let modules = of_file
            .split('/')
            .filter(|part| !matches!(*part, "main" | "lib" | "mod"));
        let module: String = modules.map(|part| format!("{part}::")).collect();
        let mut inner = String::new();
        let (mut is_test, mut in_list) = (false, false);
        self.tests.insert(format!("{binary} {module}"));
        for line in text.lines() {
            if let Some(name) = line
                .strip_prefix("mod ")
                .and_then(|rest| rest.strip_suffix(" {"))
            {
                inner = format!("{name}::");
                self.tests.insert(format!("{binary} {module}{inner}"));
            } else if line == "}" {
                inner.clear();
            }
            // Tests that a macro of the file makes of lists, `name: what;`.
            let listed = line
                .strip_prefix("    ")
                .and_then(|rest| rest.split_once(": "));
            let listed = listed.filter(|(_, what)| in_list && what.ends_with(';'));
            self.tests
                .extend(listed.map(|(name, _)| format!("{binary} {module}{inner}{name}")));
            in_list =
                line.ends_with("! {") && !line.starts_with("macro_rules") || in_list && line != "}";
            let line = line.trim();
            is_test |= line == "#[test]";
            if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = rest.split('(').next().unwrap_or(rest);
                self.tests.insert(format!("{binary} {module}{inner}{name}"));
                is_test = false;
            }
        }
    }

    /// Whether tests of a binary, or of any if it is `None`, are meant by `name`, which may end in `::` or `...`.
    fn has_test(&self, binary: Option<&str>, name: &str) -> bool {
        let prefix = name.trim_end_matches("...");
        let whole = prefix.len() == name.len() && !name.ends_with("::");
        self.tests.iter().any(|known| {
            let (of, path) = known.split_once(' ').unwrap_or(("", known));
            // A continuation of a list leaves out what the entry before it says.
            let starts = path
                .match_indices("::")
                .map(|(at, _)| at + 2)
                .chain([0])
                .filter(|start| binary.is_none() || *start == 0);
            binary.is_none_or(|binary| binary == of)
                && starts.into_iter().any(|start| {
                    let path = &path[start..];
                    let same = path == prefix || path.strip_suffix("::") == Some(prefix);
                    if whole {
                        same
                    } else {
                        path.starts_with(prefix)
                    }
                })
        })
    }
}

/// What is wrong with a code span, if it names a test or a mutation.
fn wrong(span: &str, named: &Named) -> Option<String> {
    let is_name = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':' | '.'))
    };
    let looks_like_tests = |word: &str| {
        let many = word.matches('_').count() >= 3;
        // Paths of items are not those of tests.
        let of_items = ["core::", "mem::", "sheaves::", "std::"];
        let is_item = of_items.iter().any(|path| word.starts_with(path));
        is_name(word) && !is_item && (word.ends_with("...") || word.contains("::") || many)
    };
    if let Some((binary, name)) = span.split_once(' ') {
        let is_of_binary = named.binaries.contains(binary) && is_name(name);
        if !is_of_binary && !looks_like_tests(name) {
            return None;
        }
        let known = named.has_test(Some(binary), name);
        return (!known).then(|| format!("no such test: `{span}`"));
    }
    let mutation = span.starts_with(|c: char| c.is_ascii_digit()) && span.contains('-');
    if mutation {
        let known = named.mutations.contains(span);
        return (!known).then(|| format!("no such mutation: `{span}`"));
    }
    let known = !looks_like_tests(span) || named.has_test(None, span);
    (!known).then(|| format!("no such test: `{span}`"))
}

fn check(text: &str, named: &Named) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut unnamed = named.mutations.clone();
    for (line, text) in (1..).zip(text.lines()) {
        for span in text.split('`').skip(1).step_by(2) {
            unnamed.remove(span);
            let told = wrong(span, named);
            found.extend(told.map(|text| Violation::new(PAGE, line, text)));
        }
    }
    let last = text.lines().count();
    let missing = |name| Violation::new(PAGE, last, format!("does not name the mutation `{name}`"));
    found.extend(unnamed.into_iter().map(missing));
    found
}

#[test]
fn what_the_page_names_is_there() {
    let named = Named::of_tree();
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page can be read");
    assert_none(check(&page, &named));
}

#[test]
fn names_of_nothing_are_told() {
    let mut named = Named {
        binaries: ["api".to_owned()].into(),
        tests: BTreeSet::new(),
        mutations: ["1-a".to_owned(), "2-b".to_owned()].into(),
    };
    let file = "mod tests {\n    #[test]\n    fn unit_test() {}\n}\n";
    named.add_tests("", "slab/set.rs", file);
    named.add_tests(
        "api",
        "boxed.rs",
        "#[test]\nfn a_box_is_a_box() {}\nfn helper() {}\nshapes! {\n    one: 1;\n}\n",
    );
    let good = "`api boxed::` `api boxed::a_box...` `api boxed::one` `api` `a_box_is_a_box` `slab::set` `slab::set::tests::unit_test`\n\
                `boxed::a_box_is...` `Some::thing` `.ci/test` `a <= b` `cargo test` `1-a`, `2-b`";
    assert_lines(&check(good, &named), &[]);
    let bad = "`api boxes::`\n`api boxed::the_box...`\n`api helper`\n`a_box_is_no_box`\n`slab::sets`\n`ap boxed::`\n`3-c` `1-a`\n`2-b`";
    assert_lines(&check(bad, &named), &[1, 2, 3, 4, 5, 6, 7]);
    assert_lines(&check("`1-a`", &named), &[1]);
}
