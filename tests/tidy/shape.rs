//! Length of files and functions, all lines counted.

use crate::tokens;
use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};
use proc_macro2::{Span, TokenTree};
use syn::visit::{self, Visit};

/// What one sitting can read; a longer file has two reasons to change.
const FILE_LINES: usize = 350;

/// One screen, from the signature to the closing brace.
const FUNCTION_LINES: usize = 70;

fn file_length(source: &Source) -> Option<Violation> {
    let lines = source.lines().len();
    let text = || format!("the file has {lines} lines, {FILE_LINES} are the most");
    (lines > FILE_LINES).then(|| source.violation(FILE_LINES + 1, text()))
}

fn function_lengths(source: &Source) -> Vec<Violation> {
    let mut finder = Functions {
        source,
        violations: Vec::new(),
    };
    finder.visit_file(&source.syntax);
    finder.violations
}

struct Functions<'a> {
    source: &'a Source,
    violations: Vec<Violation>,
}

impl Functions<'_> {
    fn check(&mut self, name: &dyn ToString, from: Span, to: Span) {
        let start = from.start().line;
        let lines = to.end().line - start + 1;
        if lines > FUNCTION_LINES {
            let name = name.to_string();
            let text = format!("`{name}` has {lines} lines, {FUNCTION_LINES} are the most");
            self.violations.push(self.source.violation(start, text));
        }
    }

    fn check_function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let end = body.brace_token.span.close();
        self.check(&signature.ident, signature.fn_token.span, end);
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.check_function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.check_function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.check_function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    /// Functions inside macro calls and macro definitions have no syntax tree, only tokens.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        tokens::each_word(&call.tokens, "fn", true, &mut |word, after| {
            if let (Some(TokenTree::Ident(name)), Some(body)) = (after.first(), tokens::body(after))
            {
                self.check(name, word.span(), body.span_close());
            }
        });
    }
}

#[test]
fn files_are_short() {
    assert_none(tree::everything().iter().filter_map(file_length).collect());
}

#[test]
fn functions_are_short() {
    assert_none(
        tree::everything()
            .iter()
            .flat_map(function_lengths)
            .collect(),
    );
}

#[test]
fn a_long_file_is_told() {
    let file = |lines: usize| Source::snippet("src/x.rs", &"// x\n".repeat(lines));
    assert_eq!(file_length(&file(FILE_LINES)), None);
    assert!(file_length(&file(FILE_LINES + 1)).is_some());
}

#[test]
fn long_functions_are_told_wherever_they_are() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    let longest = function(FUNCTION_LINES);
    let long = function(FUNCTION_LINES + 1);
    let check = |text: &str| function_lengths(&Source::snippet("src/x.rs", text));
    assert_lines(&check(&longest), &[]);
    assert_lines(&check(&long), &[1]);
    assert_lines(&check(&format!("impl X {{\n{long}{longest}}}")), &[2]);
    assert_lines(&check(&format!("trait X {{\nfn a();\n{long}}}")), &[3]);
    assert_lines(&check(&format!("mod x {{ fn a() {{\n{long}}} }}")), &[1, 2]);
    assert_lines(
        &check(&format!("proptest! {{\n#[test]\n{long}{longest}}}")),
        &[3],
    );
}
