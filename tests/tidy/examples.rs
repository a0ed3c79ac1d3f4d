//! Every public item is shown: a type, trait or function has an example of its own, a method is called in one.

use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};
use std::collections::BTreeSet;
use syn::{ImplItem, Item, UseTree, Visibility};

/// Files whose `pub` items are public as they stand, beside what `lib.rs` re-exports.
const PUBLIC: [&str; 2] = ["src/page/mod.rs", "src/grace/rcu.rs"];

/// The text of doc comments, a line each.
fn docs(attributes: &[syn::Attribute]) -> String {
    let line = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value() + "\n"),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

/// The code blocks of Rust source or Markdown, with the marks of comments before their lines.
fn code(text: &str) -> String {
    let mut inside = false;
    let mut code = String::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches(['/', '!']).trim();
        if line.starts_with("```") {
            inside = !inside && matches!(line.trim_matches('`'), "" | "rust");
        } else if inside {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

fn leaves(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, names),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, names)),
        UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

/// Names that public `use` items give, those in public modules written out too.
fn exported(items: &[Item], names: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Use(item) if is_public(&item.vis) => leaves(&item.tree, names),
            Item::Mod(module) if is_public(&module.vis) => {
                if let Some((_, items)) = &module.content {
                    exported(items, names);
                }
            }
            _ => {}
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The name, docs and place of a public type, trait or function.
fn definition(item: &Item) -> Option<(&syn::Ident, &[syn::Attribute])> {
    let (visibility, name, attributes) = match item {
        Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.sig.ident, &item.attrs),
        _ => return None,
    };
    is_public(visibility).then_some((name, attributes))
}

fn unshown(source: &Source, names: &BTreeSet<String>, shown: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let all = PUBLIC.contains(&source.path.as_str());
    for item in &source.syntax.items {
        if let Some((name, attributes)) = definition(item) {
            let public = all || names.contains(&name.to_string());
            if public && code(&docs(attributes)).is_empty() {
                let text = format!("`{name}` has no example");
                found.push(source.violation(name.span().start().line, text));
            }
        }
        let Item::Impl(block) = item else { continue };
        let syn::Type::Path(owner) = &*block.self_ty else {
            continue;
        };
        let owner = owner
            .path
            .segments
            .last()
            .map(|last| last.ident.to_string());
        if block.trait_.is_some() || !owner.is_some_and(|owner| names.contains(&owner)) {
            continue;
        }
        for method in &block.items {
            let ImplItem::Fn(method) = method else {
                continue;
            };
            let name = method.sig.ident.to_string();
            let called = [".", "::"].iter().any(|before| {
                shown.contains(&format!("{before}{name}("))
                    || shown.contains(&format!("{before}{name}::"))
            });
            if is_public(&method.vis) && !called {
                let text = format!("no example calls `{name}`");
                found.push(source.violation(method.sig.ident.span().start().line, text));
            }
        }
    }
    found
}

#[test]
fn every_public_item_is_shown() {
    let sources = tree::src();
    let mut names = BTreeSet::new();
    for source in &sources {
        if source.path == "src/lib.rs" || PUBLIC.contains(&source.path.as_str()) {
            exported(&source.syntax.items, &mut names);
        }
    }
    assert!(
        names.contains("PoolBox") && names.contains("Guard"),
        "{names:?}"
    );
    let pages = tree::texts("docs", &["md"]);
    let texts = pages.iter().map(|(_, text)| text);
    let texts = texts.chain(sources.iter().map(|source| &source.text));
    let shown: String = texts.map(|text| code(text)).collect();
    let check = |source| unshown(source, &names, &shown);
    assert_none(sources.iter().flat_map(check).collect());
}

#[test]
fn what_no_example_shows_is_told() {
    let text = "/// A.\n///\n/// ```\n/// a.run();\n/// ```\npub struct A;\nimpl A {\n    /// Runs.\n    pub fn run(&self) {}\n    \
                /// Stops.\n    pub fn stop(&self) {}\n    fn own(&self) {}\n}\n/// B.\n///\n/// ```text\n/// no code\n/// ```\n\
                pub struct B;\n/// C.\npub struct C;\n";
    let source = Source::snippet("src/x.rs", text);
    let names = ["A", "B"].map(str::to_owned).into();
    assert_lines(&unshown(&source, &names, &code(text)), &[11, 19]);
}
