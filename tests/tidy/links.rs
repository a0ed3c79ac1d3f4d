//! Links between the pages: each names a file that is there, and a heading of it.

use crate::{Violation, assert_lines, assert_none, root, tree};
use std::path::{Component, Path};

/// Folders with pages. The workspace's own is looked at without those below it.
const FOLDERS: [&str; 3] = ["docs", "examples", "benches"];

/// Plots of a run of the benches. The published package leaves them out, and so does a tree in which none was made yet.
const PLOTS: &str = "docs/benchmarks";

/// A page's lines outside code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push((number, line));
        }
    }
    lines
}

/// The targets of a page's links, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Code spans hold no links: every second piece between back-ticks is one.
        for piece in line.split('`').step_by(2) {
            let links = piece.split("](").skip(1);
            found.extend(links.filter_map(|link| Some((number, link.split(')').next()?))));
        }
    }
    found
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let mut headings = prose(text)
        .into_iter()
        .filter(|(_, line)| line.starts_with('#'));
    headings.any(|(_, line)| anchor(line) == wanted)
}

/// `docs/GUIDE.md` for `../docs/GUIDE.md` in `examples/README.md`.
fn resolve(page: &str, path: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The broken links of a page; `read` gives the text of a file, or nothing if it is not there.
fn broken(page: &str, text: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Violation> {
    let check = |(line, target): (usize, &str)| {
        if target.contains("://") {
            return None;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let file = if path.is_empty() {
            page.to_owned()
        } else {
            resolve(page, path)
        };
        let Some(text) = read(&file) else {
            return Some(Violation::new(page, line, format!("no file `{file}`")));
        };
        let there = heading.is_empty() || has_heading(&text, heading);
        (!there).then(|| Violation::new(page, line, format!("`{file}` has no heading `{heading}`")))
    };
    targets(text).into_iter().filter_map(check).collect()
}

/// The text of a file below the workspace's folder; a folder has an empty one.
fn read(file: &str) -> Option<String> {
    let path = root().join(file);
    let left_out = file.starts_with(PLOTS) && !root().join(PLOTS).exists();
    if left_out || path.is_dir() {
        return Some(String::new());
    }
    std::fs::read_to_string(path).ok()
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages: Vec<(String, String)> = FOLDERS
        .iter()
        .flat_map(|folder| tree::texts(folder, &["md"]))
        .collect();
    let own = std::fs::read_dir(root()).expect("the workspace's folder can be read");
    for entry in own.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            let text = read(&name).expect("the page can be read");
            pages.push((name, text));
        }
    }
    assert!(pages.iter().any(|(page, _)| page == "README.md"));
    assert_none(
        pages
            .iter()
            .flat_map(|(page, text)| broken(page, text, &read))
            .collect(),
    );
}

#[test]
fn broken_links_are_told_by_line() {
    let files = |file: &str| match file {
        "docs/A.md" => Some("# One\n## `two` and 3: four!\n```\n# five\n```\n".to_owned()),
        _ => None,
    };
    let good = "[x](A.md) [`y`](A.md#one)\n[z](#here) [w](https://x.y/z) `[no](none)`\n## Here\n[v](../docs/A.md#two-and-3-four)\n";
    let with_self = |file: &str| files(file).or((file == "docs/B.md").then(|| good.to_owned()));
    assert_lines(&broken("docs/B.md", good, &with_self), &[]);
    let bad = "[x](B.md)\n\n[y](A.md#two) [z](A.md#five)\n```\n[no](none)\n```\n![p](p.svg)\n";
    assert_lines(&broken("docs/C.md", bad, &files), &[1, 3, 3, 7]);
}
