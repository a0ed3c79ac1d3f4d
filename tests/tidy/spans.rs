//! Statements by line, and the comments above them.

use crate::tree::Source;
use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The lines of a file with its statements, match arms and items.
pub(crate) struct Spans<'a> {
    lines: Vec<&'a str>,
    ranges: Vec<(LineColumn, LineColumn)>,
}

impl<'a> Spans<'a> {
    pub(crate) fn of(source: &'a Source) -> Self {
        let mut spans = Self {
            lines: source.lines(),
            ranges: Vec::new(),
        };
        spans.visit_file(&source.syntax);
        spans
    }

    /// The text of a line; the first is 1. Empty outside the file.
    pub(crate) fn line(&self, line: usize) -> &'a str {
        self.lines.get(line.wrapping_sub(1)).copied().unwrap_or("")
    }

    /// The first line of the innermost statement, arm or item around a place.
    pub(crate) fn statement(&self, place: LineColumn) -> usize {
        let around = self
            .ranges
            .iter()
            .filter(|(start, end)| (*start..*end).contains(&place));
        // Ranges nest, so the innermost starts last.
        around.map(|(start, _)| *start).max().unwrap_or(place).line
    }

    /// The whole-line comments directly above a line, bottom first, as (line, text after `//`).
    /// Attributes may stand between; doc comments end the block.
    pub(crate) fn comments_above(&self, line: usize) -> Vec<(usize, &'a str)> {
        let mut comments = Vec::new();
        for above in (1..line).rev() {
            let text = self.line(above).trim_start();
            if let Some(comment) = plain_comment(text) {
                comments.push((above, comment));
            } else if !(text.starts_with("#[") && comments.is_empty()) {
                break;
            }
        }
        comments
    }

    fn push(&mut self, span: Span) {
        self.ranges.push((span.start(), span.end()));
    }
}

/// What a `//` comment says that is no doc comment.
pub(crate) fn plain_comment(text: &str) -> Option<&str> {
    let comment = text.strip_prefix("//")?;
    (!comment.starts_with(['/', '!'])).then(|| comment.trim())
}

impl<'ast> Visit<'ast> for Spans<'_> {
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.push(statement.span());
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.push(arm.span());
        visit::visit_arm(self, arm);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.push(item.span());
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        self.push(item.span());
        visit::visit_impl_item(self, item);
    }
}

#[test]
fn statements_and_the_comments_above_them_are_found() {
    let text = "/// Docs.
fn f() {
    // two
    // lines
    #[expect(x)]
    let a = g(
        1,
    );
    match a {
        // arm
        1 => h(
            2),
    }
}";
    let source = Source::snippet("src/x.rs", text);
    let spans = Spans::of(&source);
    let statement = |line, column| spans.statement(LineColumn { line, column });
    assert_eq!(
        (statement(7, 8), statement(12, 12), statement(9, 4)),
        (5, 11, 9)
    );
    assert_eq!(spans.comments_above(6), [(4, "lines"), (3, "two")]);
    assert_eq!(spans.comments_above(5), [(4, "lines"), (3, "two")]);
    assert_eq!(spans.comments_above(11), [(10, "arm")]);
    assert_eq!(spans.comments_above(2), []);
}
