//! Syntax newer than the minimum Rust version. Clippy's `incompatible_msrv` compares names of std
//! only, and a newer compiler takes newer syntax without a word.

use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};
use syn::visit::{self, Visit};

fn check(source: &Source) -> Vec<Violation> {
    let mut finder = Lets {
        source,
        violations: Vec::new(),
    };
    finder.visit_file(&source.syntax);
    finder.violations
}

struct Lets<'a> {
    source: &'a Source,
    violations: Vec<Violation>,
}

impl<'ast> Lets<'_> {
    /// A `let` that is the whole condition is as old as `if let`; only inside one it is a chain.
    fn visit_condition(&mut self, condition: &'ast syn::Expr) {
        match condition {
            syn::Expr::Let(whole) => visit::visit_expr_let(self, whole),
            other => self.visit_expr(other),
        }
    }
}

impl<'ast> Visit<'ast> for Lets<'_> {
    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        self.visit_condition(&expression.cond);
        self.visit_block(&expression.then_branch);
        if let Some((_, otherwise)) = &expression.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, expression: &'ast syn::ExprWhile) {
        self.visit_condition(&expression.cond);
        self.visit_block(&expression.body);
    }

    fn visit_expr_let(&mut self, expression: &'ast syn::ExprLet) {
        let line = expression.let_token.span.start().line;
        let text = "`let` in a chain or a guard needs Rust 1.88 or later";
        self.violations.push(self.source.violation(line, text));
        visit::visit_expr_let(self, expression);
    }
}

#[test]
fn syntax_is_as_old_as_promised() {
    assert_none(tree::everything().iter().flat_map(check).collect());
}

#[test]
fn old_conditions_pass() {
    let good = "fn f() {
        if let Some(x) = y { } else if let Some(z) = x { g(); }
        while let Some(x) = y.next() { if a && b { } }
        match x { Some(y) if y > 1 => {} _ => {} }
        let Some(x) = y else { return };
        assert!(matches!(x, Some(y) if y > 1));
    }";
    assert_lines(&check(&Source::snippet("src/x.rs", good)), &[]);
}

#[test]
fn newer_conditions_are_told() {
    let bad = "fn f() {
        if let Some(x) = y && x > 1 { }
        while a
            && let Some(x) = y.next() { }
        if a { } else if let Some(x) = { if b && let C = d { } y } { }
    }";
    assert_lines(&check(&Source::snippet("src/x.rs", bad)), &[2, 4, 5]);
}
