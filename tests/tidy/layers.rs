//! Import order: a layer may use those above it in the list and itself, none below. Comments and
//! doc links are free; `use`, inline paths and macro calls are not, in tests of a layer neither.

use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};

/// Bottom first, as in the crate's documentation. `lib.rs` stands above all.
pub(crate) const LAYERS: [&str; 14] = [
    "sync", "base", "hook", "page", "slab", "sheaf", "node", "barn", "registry", "grace", "local",
    "cache", "pool", "private",
];

/// The layer of a file given relative to `src/`: its folder, or its own name.
pub(crate) fn layer_of(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first)
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

fn check(source: &Source) -> Vec<Violation> {
    let Some(path) = source.in_src() else {
        return Vec::new();
    };
    let layer = layer_of(path);
    if layer == "lib" {
        return Vec::new();
    }
    let Some(own) = rank(layer) else {
        return vec![source.violation(
            1,
            format!("`{layer}` is not a layer of tests/tidy/layers.rs"),
        )];
    };
    let mut violations = Vec::new();
    for named in &source.names {
        let Some(target) = from_root(&named.parts(), module_depth(path) + named.depth) else {
            continue;
        };
        let written = named.segments.join("::");
        let text = match rank(target) {
            Some(other) if other <= own => continue,
            Some(_) => {
                format!("`{layer}` stands below `{target}` and must not use it (`{written}`)")
            }
            None => format!("`{written}` goes through the crate root; name the layer it is from"),
        };
        violations.push(source.violation(named.place.line, text));
    }
    violations
}

/// How many modules deep a file's own module lies: 1 for `sheaf.rs` and `slab/mod.rs`.
fn module_depth(path: &str) -> usize {
    path.trim_end_matches("/mod.rs").split('/').count()
}

/// What a path names first at the root of the crate, when it goes there; `depth` is that of the
/// module around it.
fn from_root<'a>(parts: &[&'a str], depth: usize) -> Option<&'a str> {
    match parts {
        ["crate" | "sheaves", first, ..] => Some(first),
        ["self", rest @ ..] => from_root(rest, depth),
        ["super", rest @ ..] => {
            let rises = 1 + rest.iter().take_while(|part| **part == "super").count();
            (rises >= depth)
                .then(|| parts.get(depth))
                .flatten()
                .copied()
        }
        _ => None,
    }
}

#[test]
fn layers_import_only_from_above() {
    assert_none(tree::src().iter().flat_map(check).collect());
}

#[test]
fn imports_from_above_pass() {
    let good = "//! Filled by [`crate::cache`].
        use crate::{base::Order, slab::Slot};
        use super::state::State;
        pub(crate) use self::inner::X;
        /// Used by [`crate::pool::Pool`].
        fn f() { assert!(crate::sync::ok()); }
        mod inner { use super::super::slot::X; use super::Y; }";
    assert_lines(&check(&Source::snippet("src/slab/header.rs", good)), &[]);
    assert_lines(
        &check(&Source::snippet("src/sheaf.rs", "use super::slab::Slot;")),
        &[],
    );
    assert_lines(
        &check(&Source::snippet("src/private.rs", "use crate::pool::Pool;")),
        &[],
    );
    assert_lines(
        &check(&Source::snippet("src/lib.rs", "pub use crate::pool::Pool;")),
        &[],
    );
}

#[test]
fn imports_from_below_are_told() {
    let bad = "use crate::{base::Order,
        pool::{Pool, PoolBox}};
        fn f() { crate::cache::f(); }
        fn g() { assert!(crate::barn::ok()); }
        use super::super::node::Node;
        use crate::Pool;
        use crate::*;
        use sheaves::Order;
        mod inner { use super::super::super::local::Local; }
        #[cfg(test)]
        mod tests { use crate::grace::Ticket; }";
    let found = check(&Source::snippet("src/slab/header.rs", bad));
    assert_lines(&found, &[2, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    assert_lines(
        &check(&Source::snippet(
            "src/slab/mod.rs",
            "use super::node::Node;",
        )),
        &[1],
    );
    assert_lines(
        &check(&Source::snippet("src/sheaf.rs", "use super::*;")),
        &[1],
    );
    assert_lines(&check(&Source::snippet("src/drawer.rs", "")), &[1]);
}
