//! Every atomic access says why its ordering is enough: a comment above it, or on its statement,
//! starts with the ordering's name and a colon. `Relaxed: only a count`, `Acquire: pairs with ...`.
//! Two orderings in one call may share a comment of two sentences.

use crate::layers::layer_of;
use crate::spans::{Spans, plain_comment};
use crate::tree::{self, Source};
use crate::{Violation, assert_lines, assert_none};
use proc_macro2::LineColumn;

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// How far above an access its comment may begin when other lines stand between.
const REACH: usize = 4;

fn check(source: &Source) -> Vec<Violation> {
    let Some(path) = source.in_src().filter(|path| layer_of(path) != "sync") else {
        return Vec::new();
    };
    if source.test || layer_of(path) == "lib" {
        return Vec::new();
    }
    let spans = Spans::of(source);
    let mut violations = Vec::new();
    for named in source
        .names
        .iter()
        .filter(|named| named.argument && !named.test)
    {
        let ordering = match named.parts().as_slice() {
            [ordering] | [.., "Ordering", ordering] if ORDERINGS.contains(ordering) => *ordering,
            _ => continue,
        };
        if !is_explained(&spans, named.place, ordering) {
            let text = format!("no comment that starts with `{ordering}:` says why it is enough");
            violations.push(source.violation(named.place.line, text));
        }
    }
    violations
}

fn is_explained(spans: &Spans<'_>, place: LineColumn, ordering: &str) -> bool {
    let statement = spans.statement(place);
    let first = statement.min(place.line.saturating_sub(REACH)).max(1);
    let near = (first..=place.line).filter_map(|near| comment_of(spans.line(near)));
    let above = spans
        .comments_above(statement)
        .into_iter()
        .map(|(_, text)| text);
    near.chain(above).any(|comment| says(comment, ordering))
}

/// A line's comment, whether it fills the line or ends it.
fn comment_of(line: &str) -> Option<&str> {
    plain_comment(line.trim_start())
        .or_else(|| line.split_once(" // ").map(|(_, text)| text.trim()))
}

/// Whether a sentence of the comment starts with the ordering's name and a colon.
fn says(comment: &str, ordering: &str) -> bool {
    let opens = |sentence: &str| {
        sentence
            .trim_start()
            .strip_prefix(ordering)
            .is_some_and(|rest| rest.starts_with(':'))
    };
    comment.split(['.', ';']).any(opens)
}

#[test]
fn every_ordering_is_explained() {
    assert_none(tree::src().iter().flat_map(check).collect());
}

#[test]
fn explained_orderings_pass() {
    let good = "use crate::sync::atomic::Ordering::{self, Acquire, Relaxed};
    fn f(order: Ordering) {
        // Relaxed: only a count.
        a.load(Relaxed);
        a.load(Acquire); // Acquire: pairs with the store in `g`.
        // AcqRel: publishes the slab and sees the last owner's writes. Acquire: on failure only
        // the word is looked at. A long comment
        // goes
        // on
        // and
        // on.
        let done = self
            .state
            .compare_exchange(
                x, y, Ordering::AcqRel, Ordering::Acquire,
            );
        match a.swap(
            // Release: x.
            1, atomic::Ordering::Release) { _ => {} }
    }
    #[cfg(test)]
    mod tests { fn f() { a.load(Ordering::SeqCst); } }";
    assert_lines(&check(&Source::snippet("src/grace/queue.rs", good)), &[]);
    assert_lines(
        &check(&Source::snippet(
            "src/sync/x.rs",
            "fn f() { a.load(SeqCst); }",
        )),
        &[],
    );
}

#[test]
fn unexplained_orderings_are_told() {
    let bad = "fn f() {
        a.load(Relaxed);
        // Acquire: why, but another.
        a.store(1, Ordering::Release);
        // relaxed: lower case.
        // The Relaxed: in the middle.
        a.load(core::Relaxed::<Relaxed>);



        a.cas(1, 2, Ordering::AcqRel,
            Ordering::Acquire);
        m!(fence(Ordering::SeqCst));
    }";
    let found = check(&Source::snippet("src/grace/queue.rs", bad));
    assert_lines(&found, &[2, 4, 7, 11, 12, 13]);
}
