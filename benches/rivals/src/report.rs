//! Everything that was measured, as tables in Markdown: the terminal shows them and the documentation holds them.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

use serde::Serialize;

use crate::footprint::Footprint;
use crate::goals::Goal;
use crate::latency::Latency;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::stats::{Measured, Spread};

/// The JSON object.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub quick: bool,
    pub workloads: Vec<Measured>,
    pub latencies: Vec<Latency>,
    pub memory: Vec<Memory>,
    pub footprints: Vec<Footprint>,
    pub goals: Vec<Goal>,
}

/// A table and the name of its place in the documentation.
pub struct Section {
    pub key: &'static str,
    pub text: String,
}

impl Report {
    pub fn sections(&self) -> Vec<Section> {
        let mut sections = vec![Section {
            key: "machine",
            text: self.machine.to_string(),
        }];
        let mut add = |key, text: String| {
            if !text.is_empty() {
                sections.push(Section { key, text });
            }
        };
        add(
            "work",
            self.single(|one| one.x.is_none() && one.size == 240),
        );
        add(
            "bulk",
            self.curve("bulk", "ns an object, by the size of the bulk"),
        );
        add(
            "threads",
            self.curve("threads", "ns of one processor a pair, by threads"),
        );
        add("sizes", self.single(|one| one.size != 240));
        add("latency", self.latency());
        add("memory", self.memory());
        add("footprint", self.footprint());
        add("goals", self.goals());
        sections
    }

    /// A table for each workload that passes.
    fn single(&self, passes: impl Fn(&Measured) -> bool) -> String {
        let mut text = String::new();
        for one in self.workloads.iter().filter(|one| passes(one)) {
            let _ = writeln!(text, "{}:\n", sentence(&one.title));
            let head = ["contender", "ns", "quartiles", "PoolBox takes, times"];
            let own = one.row("PoolBox");
            let rows = one.rows.iter().map(|row| {
                let ratio = own.filter(|own| {
                    own.name != row.name && one.harness().is_none_or(|h| h.name != row.name)
                });
                vec![
                    row.name.to_owned(),
                    row.nanos
                        .map_or_else(String::new, |spread| number(spread.median)),
                    row.nanos.map_or_else(String::new, quartiles),
                    ratio.map_or_else(String::new, |own| with_quartiles(one.ratio(own, row))),
                ]
            });
            text.push_str(&table(&head, rows.collect()));
            text.push('\n');
        }
        text
    }

    /// One table whose columns are the points of a curve.
    fn curve(&self, key: &str, title: &str) -> String {
        let points: Vec<_> = self.workloads.iter().filter(|one| one.key == key).collect();
        let Some(first) = points.first() else {
            return String::new();
        };
        let at = |one: &&Measured| one.x.map_or_else(String::new, |x| x.to_string());
        let columns: Vec<String> = points.iter().map(at).collect();
        let mut head = vec!["contender"];
        head.extend(columns.iter().map(String::as_str));
        let mut names: Vec<&str> = first.rows.iter().map(|row| row.name).collect();
        names.sort_by_key(|name| first.rows.iter().position(|row| row.name == *name));
        let rows = names.into_iter().map(|name| {
            let cell = |one: &&Measured| {
                let spread = one.row(name).and_then(|row| row.nanos);
                spread.map_or_else(|| "-".to_owned(), |spread| number(spread.median))
            };
            let cells = points.iter().map(cell);
            [name.to_owned()].into_iter().chain(cells).collect()
        });
        format!("{}:\n\n{}\n", sentence(title), table(&head, rows.collect()))
    }

    fn latency(&self) -> String {
        if self.latencies.is_empty() {
            return String::new();
        }
        let head = [
            "contender",
            "operation",
            "samples",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "worst",
        ];
        let rows = self.latencies.iter().map(|row| {
            let shown = row.shown.iter().map(|(_, nanos)| number(*nanos));
            let names = [
                row.name.to_owned(),
                row.operation.to_owned(),
                row.samples.to_string(),
            ];
            names.into_iter().chain(shown).collect()
        });
        let title = "Nanoseconds, two looks at the clock included";
        format!("{title}:\n\n{}\n", table(&head, rows.collect()))
    }

    fn memory(&self) -> String {
        if self.memory.is_empty() {
            return String::new();
        }
        let head = [
            "contender",
            "size",
            "objects",
            "resident bytes each",
            "MiB left, all freed",
            "MiB left, purged",
        ];
        let rows = self.memory.iter().map(|row| {
            vec![
                row.name.clone(),
                row.size.to_string(),
                row.objects.to_string(),
                number(row.per_object),
                number(row.freed_mib),
                number(row.purged_mib),
            ]
        });
        format!("{}\n", table(&head, rows.collect()))
    }

    fn footprint(&self) -> String {
        if self.footprints.is_empty() {
            return String::new();
        }
        let head = ["contender", "reader", "objects", "KiB, mean", "KiB, most"];
        let rows = self.footprints.iter().map(|row| {
            let reader = if row.reader { "1 ms at a time" } else { "none" };
            vec![
                row.name.clone(),
                reader.to_owned(),
                row.objects.to_string(),
                number(row.mean_kib),
                number(row.most_kib),
            ]
        });
        format!("{}\n", table(&head, rows.collect()))
    }

    fn goals(&self) -> String {
        let head = ["work", "against", "ratio", "at most", "met"];
        let rows = self.goals.iter().map(|goal| {
            let met = match goal.met {
                Some(true) => "yes",
                Some(false) => "no",
                None if goal.ratio.is_some() => "a floor",
                None => "see there",
            };
            vec![
                goal.work.clone(),
                goal.against.clone(),
                goal.ratio.map_or_else(String::new, with_quartiles),
                goal.at_most
                    .map_or_else(String::new, |most| format!("{most:.2}")),
                met.to_owned(),
            ]
        });
        format!("{}\n", table(&head, rows.collect()))
    }
}

/// With as many digits as the measurement is worth.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn quartiles(spread: Spread) -> String {
    format!("{} to {}", number(spread.lower), number(spread.upper))
}

fn with_quartiles(spread: Spread) -> String {
    let Spread {
        lower,
        median,
        upper,
    } = spread;
    if lower == upper {
        return format!("{median:.2}");
    }
    format!("{median:.2} ({lower:.2} to {upper:.2})")
}

fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A Markdown table whose columns line up; all but the first are right-aligned.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut lines = vec![
        head.iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    ];
    lines.extend(rows);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).enumerate();
        for (column, (cell, width)) in cells {
            let _ = if column == 0 {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if column == 0 { "-" } else { ":" };
                let _ = write!(text, "|-{}{end}", "-".repeat(*width));
            }
            text.push_str("|\n");
        }
    }
    text
}
