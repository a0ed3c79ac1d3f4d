//! Where `unsafe` may stand. Only some layers may hold it, and of their files only those that do go
//! without `#![forbid(unsafe_code)]`: the files to audit are exactly the files without that line.

use crate::layers::layer_of;
use crate::tokens;
use crate::tree::{self, Source};
use crate::{Violation, assert_none};

/// Layers, or single files of a layer, that may hold `unsafe`.
const ALLOWED: [&str; 11] = [
    "sync/",
    "base/list.rs",
    "hook/",
    "page/",
    "slab/",
    "grace/",
    "local/",
    "cache/blocks.rs",
    "cache/fork.rs",
    "cache/own.rs",
    "pool/",
];

fn may_hold(path: &str) -> bool {
    let folder = format!("{}/", layer_of(path));
    ALLOWED
        .iter()
        .any(|allowed| *allowed == path || *allowed == folder)
}

/// The line of the first `unsafe` in code. What a macro quotes is another crate's code.
fn first_unsafe(source: &Source) -> Option<usize> {
    let mut first = None;
    tokens::each_word(&source.tokens, "unsafe", false, &mut |word, _| {
        first.get_or_insert(word.span().start().line);
    });
    first
}

/// The line of an inner attribute of this level on `unsafe_code`.
fn lint_line(source: &Source, level: &str) -> Option<usize> {
    let names = |attribute: &&syn::Attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        list.path.is_ident(level) && list.tokens.to_string().contains("unsafe_code")
    };
    let attribute = source.syntax.attrs.iter().find(names)?;
    Some(attribute.pound_token.span.start().line)
}

fn check(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        let allowed = source.in_src().is_some_and(may_hold);
        let first = first_unsafe(source);
        let children = source.child_folder();
        let above_unsafe = sources
            .iter()
            .any(|other| other.path.starts_with(&children) && first_unsafe(other).is_some());
        if let Some(line) = first.filter(|_| !allowed) {
            violations.push(source.violation(line, "no `unsafe` is allowed in this file"));
        }
        if let Some(line) = lint_line(source, "deny") {
            let text = "`deny(unsafe_code)` can be undone below; use `forbid` or nothing";
            violations.push(source.violation(line, text));
        }
        // The attribute reaches child modules, so a parent of unsafe code cannot carry it.
        if first.is_none() && !above_unsafe && lint_line(source, "forbid").is_none() {
            violations
                .push(source.violation(1, "holds no unsafe code: say `#![forbid(unsafe_code)]`"));
        }
    }
    violations
}

#[test]
fn files_without_unsafe_code_forbid_it() {
    let own = check(&tree::src());
    let derive = check(&tree::sources(&["pool-derive/src"]));
    assert_none([own, derive].concat());
}

#[cfg(test)]
mod tests {
    use super::{Source, check};
    use crate::assert_lines;

    const FORBID: &str = "//! Docs.\n#![forbid(unsafe_code)]\nfn f() {}";
    const PLAIN: &str = "//! Not unsafe, `unsafe`.\nfn f() {}";
    const UNSAFE: &str = "fn f() {\n    unsafe { g() } }";

    fn lines(files: &[(&str, &str)], expected: &[usize]) {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::snippet(path, text))
            .collect();
        assert_lines(&check(&sources), expected);
    }

    #[test]
    fn each_file_says_what_it_is() {
        lines(
            &[
                ("src/lib.rs", PLAIN),
                ("src/slab/mod.rs", PLAIN),
                ("src/slab/a.rs", UNSAFE),
            ],
            &[],
        );
        lines(
            &[("src/barn.rs", FORBID), ("src/slab/state.rs", FORBID)],
            &[],
        );
        lines(
            &[("src/cache/own.rs", UNSAFE), ("src/cache/mod.rs", PLAIN)],
            &[],
        );
        lines(
            &[("src/local.rs", PLAIN), ("src/local/gate.rs", UNSAFE)],
            &[],
        );
        let quoted = "#![forbid(unsafe_code)]\nfn f() { quote! { unsafe impl X for Y {} }; }";
        lines(&[("pool-derive/src/lib.rs", quoted)], &[]);
    }

    #[test]
    fn a_missing_line_is_told() {
        lines(&[("src/barn.rs", PLAIN)], &[1]);
        lines(
            &[("src/slab/state.rs", PLAIN), ("src/slab/state2.rs", UNSAFE)],
            &[1],
        );
        lines(
            &[("src/slab/mod.rs", PLAIN), ("src/slab/a.rs", FORBID)],
            &[1],
        );
        lines(
            &[("src/base/mod.rs", PLAIN), ("src/base/a.rs", FORBID)],
            &[1],
        );
        lines(&[("pool-derive/src/lib.rs", PLAIN)], &[1]);
    }

    #[test]
    fn unsafe_code_in_the_wrong_place_is_told() {
        lines(&[("src/barn.rs", UNSAFE)], &[2]);
        lines(&[("src/cache/alloc.rs", UNSAFE)], &[2]);
        lines(
            &[("src/base/order.rs", UNSAFE), ("src/base/list.rs", UNSAFE)],
            &[2],
        );
        lines(&[("src/lib.rs", UNSAFE)], &[2]);
        lines(
            &[("src/barn.rs", "\nmacro_rules! m { () => { unsafe {} } }")],
            &[2],
        );
        lines(
            &[
                ("src/slab/mod.rs", "#![deny(unsafe_code)]"),
                ("src/slab/a.rs", UNSAFE),
            ],
            &[1],
        );
    }
}
