//! Plain text in every file that ships: no marks of unfinished work, no paths of one machine.

use crate::{Violation, assert_lines, assert_none, tree};

/// This folder must name what it looks for.
const OWN: &str = "tests/tidy/";

/// Marks of unfinished work. They belong where work is tracked, not into the source.
const MARKS: [&str; 6] = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!", "dbg!"];

/// Absolute paths that exist on one machine only.
const MACHINE_PATHS: [&str; 3] = ["/root", "/home", "/Users"];

const ENDINGS: [&str; 8] = ["rs", "md", "toml", "yml", "sh", "stderr", "csv", "json"];

fn check(file: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let marks = MARKS.iter().filter(|mark| has_word(text, mark));
        violations
            .extend(marks.map(|mark| Violation::new(file, line, format!("a work mark: {mark}"))));
        let paths = MACHINE_PATHS.iter().filter(|path| has_word(text, path));
        violations.extend(
            paths.map(|path| Violation::new(file, line, format!("a machine's path: {path}"))),
        );
    }
    violations
}

/// Whether `word` stands in the text with nothing of a longer word or path around it.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let joined = |c: char| part(c) || matches!(c, '.' | '}' | ')' | '>' | '*' | '~' | '/');
    text.match_indices(word).any(|(at, _)| {
        let path = word.starts_with('/');
        let free_before = !text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| if path { joined(c) } else { part(c) });
        let closed = word.ends_with('!');
        free_before && (closed || !text[at + word.len()..].chars().next().is_some_and(part))
    })
}

#[test]
fn no_marks_and_no_machine_paths() {
    let mut files = Vec::new();
    for folder in [".", ".ci", ".github"] {
        files.extend(tree::texts(folder, &ENDINGS));
    }
    files.extend(tree::texts(".ci", &[""]));
    let wanted = |(file, _): &&(String, String)| !file.starts_with(OWN);
    let names: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    assert!(names.contains(&"src/lib.rs"), "{names:?}");
    let found = files
        .iter()
        .filter(wanted)
        .flat_map(|(file, text)| check(file, text));
    assert_none(found.collect());
}

#[test]
fn marks_and_paths_are_told() {
    let bad = "// TODO: x\nlet a = (FIXME);\n    todo!();\n    unimplemented!(\"x\");\ndbg!(x)\n\
               cd /home/me\n`/root`\n\"/Users/x\"\n// XXX";
    assert_lines(&check("x.rs", bad), &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn other_words_pass() {
    let good = "TODOS, todo, mytodo!, XXXL, a-XXX-b\nsrc/root.rs, ../home, https://x.org/home\n\
                /homestead, /rootless, $dir/home, ${top}/home, /tmp/x, at/home";
    let good = good.replace("$dir/home", "dir/home");
    assert_lines(&check("x.rs", &good), &[]);
}
