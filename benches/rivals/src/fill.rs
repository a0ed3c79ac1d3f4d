//! Puts tables into the documentation, between the marks of their sections.
#![forbid(unsafe_code)]

use crate::report::Section;

/// The text with what stands between `<!-- rivals: key -->` and `<!-- end -->` replaced, for each section that has
/// such a place.
pub fn fill(text: &str, sections: &[Section]) -> String {
    let mut text = text.to_owned();
    for section in sections {
        let begin = format!("<!-- rivals: {} -->\n", section.key);
        let Some(start) = text.find(&begin).map(|at| at + begin.len()) else {
            continue;
        };
        let Some(length) = text[start..].find("<!-- end -->") else {
            continue;
        };
        let table = format!("\n{}\n", section.text.trim_end());
        text.replace_range(start..start + length, &(table + "\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_places_change() {
        let section = |key, text: &str| Section {
            key,
            text: text.to_owned(),
        };
        let text =
            "a\n<!-- rivals: x -->\nold\n<!-- end -->\nb\n<!-- rivals: y -->\n<!-- end -->\n";
        let filled = fill(text, &[section("x", "new\n"), section("z", "lost")]);
        assert_eq!(
            filled,
            "a\n<!-- rivals: x -->\n\nnew\n\n<!-- end -->\nb\n<!-- rivals: y -->\n<!-- end -->\n"
        );
        assert_eq!(fill(&filled, &[section("x", "new")]), filled);
    }
}
