//! What a stream of tokens names: paths with `use` groups expanded, wherever they stand, macro
//! calls included. Doc comments are string literals to the lexer, so links in them do not count.

use core::slice;
use proc_macro2::{Delimiter, Group, Ident, LineColumn, TokenStream, TokenTree};

/// A path as it is written, from its first segment; a glob ends in `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    pub(crate) place: LineColumn,
    /// How many inline modules of the file are around it.
    pub(crate) depth: usize,
    /// It is inside an item that is compiled for tests only.
    pub(crate) test: bool,
    /// It is inside parentheses, as an argument is.
    pub(crate) argument: bool,
    /// A `!` follows: a macro's name.
    pub(crate) bang: bool,
}

impl Named {
    /// The segments as text slices, to match on.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }
}

/// All paths of a file in order; a lone identifier or keyword is a path of one segment.
pub(crate) fn names(tokens: &TokenStream) -> Vec<Named> {
    let mut out = Vec::new();
    let around = Around {
        depth: 0,
        test: false,
        argument: false,
    };
    collect(tokens, around, &mut out);
    out
}

#[derive(Clone, Copy)]
struct Around {
    depth: usize,
    test: bool,
    argument: bool,
}

fn collect(tokens: &TokenStream, outer: Around, out: &mut Vec<Named>) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut around = outer;
    let mut i = 0;
    while i < trees.len() {
        if let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = &trees[i..] {
            if hash.as_char() == '#' && is_test_group(group) {
                // Until the item ends.
                around.test = true;
            }
        }
        match &trees[i] {
            TokenTree::Ident(_) => {
                if let Some(body) = inline_module(&trees[i..]) {
                    let inside = Around {
                        depth: around.depth + 1,
                        ..around
                    };
                    collect(&body.stream(), inside, out);
                    around = outer;
                    i += 3;
                    continue;
                }
                i += path(&trees[i..], &[], around, out);
            }
            TokenTree::Group(group) => {
                let argument = around.argument || group.delimiter() == Delimiter::Parenthesis;
                // A body is no argument, though the closure it belongs to may be one.
                let argument = argument && group.delimiter() != Delimiter::Brace;
                collect(&group.stream(), Around { argument, ..around }, out);
                if group.delimiter() == Delimiter::Brace {
                    around = outer;
                }
                i += 1;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                around = outer;
                i += 1;
            }
            _ => i += 1,
        }
    }
}

/// Takes the path at the start of `trees` and returns how many tokens it took.
fn path(trees: &[TokenTree], prefix: &[String], around: Around, out: &mut Vec<Named>) -> usize {
    let TokenTree::Ident(first) = &trees[0] else {
        return 1;
    };
    let place = first.span().start();
    let mut segments = prefix.to_vec();
    segments.push(first.to_string());
    let mut i = 1;
    while is_path_separator(&trees[i.min(trees.len())..]) {
        match trees.get(i + 2) {
            Some(TokenTree::Ident(next)) => segments.push(next.to_string()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                segments.push("*".to_owned());
                out.push(Named::at(segments, place, around, false));
                return i + 3;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                use_group(group, &segments, around, out);
                return i + 3;
            }
            _ => break,
        }
        i += 3;
    }
    let bang = matches!(trees.get(i), Some(TokenTree::Punct(punct)) if punct.as_char() == '!');
    out.push(Named::at(segments, place, around, bang));
    i
}

fn use_group(group: &Group, prefix: &[String], around: Around, out: &mut Vec<Named>) {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ',');
    for branch in trees.split(comma).filter(|branch| !branch.is_empty()) {
        match &branch[0] {
            TokenTree::Punct(star) => {
                let mut segments = prefix.to_vec();
                segments.push("*".to_owned());
                out.push(Named::at(segments, star.span().start(), around, false));
            }
            _ => _ = path(branch, prefix, around, out),
        }
    }
}

impl Named {
    fn at(segments: Vec<String>, place: LineColumn, around: Around, bang: bool) -> Self {
        let Around {
            depth,
            test,
            argument,
        } = around;
        Self {
            segments,
            place,
            depth,
            test,
            argument,
            bang,
        }
    }
}

fn is_path_separator(trees: &[TokenTree]) -> bool {
    matches!(trees, [TokenTree::Punct(a), TokenTree::Punct(b), ..]
        if a.as_char() == ':' && b.as_char() == ':')
}

/// The body of `mod name { ... }`.
fn inline_module(trees: &[TokenTree]) -> Option<&Group> {
    match trees {
        [
            TokenTree::Ident(word),
            TokenTree::Ident(_),
            TokenTree::Group(body),
            ..,
        ] if word == "mod" && body.delimiter() == Delimiter::Brace => Some(body),
        _ => None,
    }
}

/// The names of modules declared by `mod name;` for tests only, at the top of a file.
pub(crate) fn test_modules(tokens: &TokenStream) -> Vec<String> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut found = Vec::new();
    let mut test = false;
    for (i, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => test |= is_test_group(group),
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                if let [.., TokenTree::Ident(word), TokenTree::Ident(name)] = &trees[..i] {
                    if test && word == "mod" {
                        found.push(name.to_string());
                    }
                }
                test = false;
            }
            _ => {}
        }
        let body = matches!(tree, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
        test &= !body;
    }
    found
}

/// `cfg(test)`, `cfg(all(test, ...))` or `test`, as an attribute's brackets hold them.
fn is_test_group(group: &Group) -> bool {
    if group.delimiter() != Delimiter::Bracket {
        return false;
    }
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    match trees.as_slice() {
        [TokenTree::Ident(word)] => word == "test",
        [TokenTree::Ident(word), TokenTree::Group(list)] => word == "cfg" && needs_test(list),
        _ => false,
    }
}

/// Whether the condition holds in tests only: `test` itself, or `all(...)` of which one part does.
fn needs_test(list: &Group) -> bool {
    let trees: Vec<TokenTree> = list.stream().into_iter().collect();
    let mut test = false;
    for (i, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(word) => test |= word == "test",
            TokenTree::Group(inner) if i > 0 => {
                let all = matches!(&trees[i - 1], TokenTree::Ident(word) if word == "all");
                test |= all && needs_test(inner);
            }
            _ => {}
        }
    }
    test
}

/// The same for an attribute of the syntax tree.
pub(crate) fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return attribute.path().is_ident("test");
    };
    let group = Group::new(Delimiter::Parenthesis, list.tokens.clone());
    attribute.path().is_ident("cfg") && needs_test(&group)
}

/// Calls `visit` with every identifier that `wanted` names and the tokens after it. Token quoters
/// (`quote!` and its kin) are left out when `quoted` is false: what they hold is data.
pub(crate) fn each_word(
    tokens: &TokenStream,
    wanted: &str,
    quoted: bool,
    visit: &mut dyn FnMut(&Ident, &[TokenTree]),
) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (i, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(word) if word == wanted => visit(word, &trees[i + 1..]),
            TokenTree::Group(group) if quoted || !is_quoter(&trees[..i]) => {
                each_word(&group.stream(), wanted, quoted, visit);
            }
            _ => {}
        }
    }
}

/// Whether `quote!` or one of its kin stands right before.
fn is_quoter(before: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(word), TokenTree::Punct(bang)] = before else {
        return false;
    };
    let name = word.to_string();
    bang.as_char() == '!' && (name.starts_with("quote") || name.starts_with("parse_quote"))
}

/// The first body in braces before the next `;`.
pub(crate) fn body(after: &[TokenTree]) -> Option<&Group> {
    let mut trees: slice::Iter<'_, TokenTree> = after.iter();
    trees.find_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group)),
        TokenTree::Punct(punct) if punct.as_char() == ';' => Some(None),
        _ => None,
    })?
}

#[cfg(test)]
mod tests {
    use super::names;

    fn long(text: &str) -> Vec<String> {
        let named = names(&text.parse().expect("tokens"));
        let long = named.into_iter().filter(|named| named.segments.len() > 1);
        long.map(|named| named.segments.join("::")).collect()
    }

    #[test]
    fn use_groups_are_expanded() {
        let text = "use crate::{base::{Order, layout::*}, slab as s, sync::{self}};";
        let expected = [
            "crate::base::Order",
            "crate::base::layout::*",
            "crate::slab",
            "crate::sync::self",
        ];
        assert_eq!(long(text), expected);
    }

    #[test]
    fn macro_calls_are_seen_and_doc_links_are_not() {
        let text = "/// See [`crate::pool`].\nfn f() { assert!(crate::cache::ok::<super::X>()); }";
        assert_eq!(long(text), ["crate::cache::ok", "super::X"]);
    }

    #[test]
    fn places_are_told() {
        let text = "#[cfg(test)] use a::b; mod m { f(c::d); } #[test] fn t() { e::f } g::h!();";
        let named = names(&text.parse().expect("tokens"));
        let told: Vec<_> = named
            .iter()
            .filter(|named| named.segments.len() > 1)
            .map(|n| (n.segments[0].as_str(), n.depth, n.test, n.argument, n.bang))
            .collect();
        let expected = [
            ("a", 0, true, false, false),
            ("c", 1, false, true, false),
            ("e", 0, true, false, false),
            ("g", 0, false, false, true),
        ];
        assert_eq!(told, expected);
    }
}
