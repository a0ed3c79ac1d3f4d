//! Words: a type's name in snake case, and the near miss of a keyword.

#![forbid(unsafe_code)]

/// `TreeNode` as `tree_node`, `HTTPRequest` as `http_request`, `Node2D` as `node2_d`.
pub(crate) fn snake_case(camel: &str) -> String {
    let letters: Vec<char> = camel.chars().collect();
    let mut snake = String::with_capacity(camel.len() + 4);
    for (i, &letter) in letters.iter().enumerate() {
        if letter.is_uppercase() {
            // A word begins after a small letter or a digit, and at the last capital of a run that a small
            // letter follows.
            let after_word =
                i > 0 && (letters[i - 1].is_lowercase() || letters[i - 1].is_numeric());
            let after_run = i > 0
                && letters[i - 1].is_uppercase()
                && letters.get(i + 1).is_some_and(|c| c.is_lowercase());
            if after_word || after_run {
                snake.push('_');
            }
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The one of `known` that `word` was most likely meant to be.
///
/// Case and underscores do not count. A part of a word is near the whole (`capacity` is near
/// `sheaf_capacity`); else one change in three letters is forgiven.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |s: &str| s.to_lowercase().replace('_', "");
    let word = plain(word);
    let score = |known: &&&'k str| {
        let known = plain(known);
        let part = word.len() >= 3 && (known.contains(&word) || word.contains(&known));
        if part { 1 } else { 2 * distance(&word, &known) }
    };
    let best = known.iter().min_by_key(score)?;
    let forgiven = 2 * (word.chars().count() / 3).max(1);
    (score(&best) <= forgiven).then_some(*best)
}

/// Levenshtein's distance with swaps of neighbours as one change.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_follows_the_words() {
        for (camel, snake) in [
            ("Kiocb", "kiocb"),
            ("TreeNode", "tree_node"),
            ("HTTPRequest", "http_request"),
            ("IoKiocbHTTP", "io_kiocb_http"),
            ("Node2D", "node2_d"),
            ("X86Page", "x86_page"),
            ("io_kiocb", "io_kiocb"),
            ("Io_Kiocb", "io_kiocb"),
            ("_Hidden", "_hidden"),
            ("A", "a"),
            ("ÄrgerÜber", "ärger_über"),
            ("名前", "名前"),
        ] {
            assert_eq!(snake_case(camel), snake, "{camel}");
        }
    }

    #[test]
    fn distance_counts_changes() {
        for (a, b, changes) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("order", "order", 0),
            ("odrer", "order", 1),
            ("oder", "order", 1),
            ("orders", "order", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), changes, "{a} {b}");
        }
    }

    #[test]
    fn nearest_finds_slips_and_parts_but_nothing_far() {
        let known = [
            "name",
            "order",
            "sheaf_capacity",
            "min_partial",
            "zero_on_free",
        ];
        for (word, near) in [
            ("oder", Some("order")),
            ("odrer", Some("order")),
            ("Order", Some("order")),
            ("nam", Some("name")),
            ("capacity", Some("sheaf_capacity")),
            ("sheafCapacity", Some("sheaf_capacity")),
            ("sheaf_capasity", Some("sheaf_capacity")),
            ("minpartial", Some("min_partial")),
            ("zero_on_fre", Some("zero_on_free")),
            ("x", None),
            ("numa", None),
            ("source", None),
            ("huge", None),
        ] {
            assert_eq!(nearest(word, &known), near, "{word}");
        }
    }
}
