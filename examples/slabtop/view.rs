//! The picture.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row as TableRow, Table};

use crate::args::Sort;
use crate::model::{Model, Row};

/// Columns besides the sparkline: title and width. Numbers stand right.
const COLUMNS: [(&str, u16); 10] = [
    ("POOL", 14),
    ("BYTES", 6),
    ("LIVE", 6),
    ("CACHE", 6),
    ("BARN", 5),
    ("RCU", 5),
    ("SLABS", 5),
    ("UNUSED", 6),
    ("OPS/S", 6),
    ("FAST", 5),
];

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A number in at most five characters: 999, 1.2k, 12k, 3.4M.
pub(crate) fn short(n: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut n = n;
    let mut unit = 0;
    while n >= 999.5 && unit + 1 < UNITS.len() {
        n /= 1000.0;
        unit += 1;
    }
    if unit == 0 || n >= 9.95 {
        format!("{n:.0}{}", UNITS[unit])
    } else {
        format!("{n:.1}{}", UNITS[unit])
    }
}

fn number(n: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
    let n = n as f64;
    short(n)
}

/// The last `width` points, each as high as it is of the highest.
fn sparkline(history: &[f64], width: usize) -> String {
    let shown = &history[history.len().saturating_sub(width)..];
    let highest = shown.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let part = if highest > 0.0 { value / highest } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 8"
        )]
        let height = (part * 8.0).ceil() as usize;
        BARS[height.min(8)]
    };
    shown.iter().map(bar).collect()
}

fn cells(row: &Row, spark: usize) -> Vec<Line<'static>> {
    let s = &row.pool.stats;
    let fast = row
        .fast
        .map_or_else(|| "-".to_owned(), |fast| format!("{:.0}%", fast * 100.0));
    let numbers = [
        number(s.bytes),
        number(s.live + s.prefilled),
        number(s.cached),
        number(s.barn),
        number(s.retired),
        number(s.slabs),
        format!("{}%", row.unused()),
        short(row.activity),
        fast,
    ];
    let mut cells = vec![Line::from(row.pool.name.clone())];
    cells.extend(
        numbers
            .into_iter()
            .map(|text| Line::from(text).right_aligned()),
    );
    cells.push(Line::from(sparkline(&row.history, spark)));
    cells
}

/// Draws the list on the whole frame.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, sort: Sort, paused: bool) {
    let [head, body] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(frame.area());
    draw_head(frame, head, model, sort, paused);
    let used: u16 = COLUMNS.iter().map(|(_, width)| width + 1).sum();
    let spark = body.width.saturating_sub(used);
    let widths = COLUMNS.iter().map(|(_, width)| *width).chain([spark]);
    let titles = COLUMNS.iter().enumerate().map(|(at, (title, _))| {
        let line = Line::from(*title);
        if at == 0 { line } else { line.right_aligned() }
    });
    let header = TableRow::new(titles.chain([Line::from("TREND")]))
        .style(Style::new().add_modifier(Modifier::REVERSED));
    let rows = model
        .rows
        .iter()
        .map(|row| TableRow::new(cells(row, usize::from(spark))));
    let table = Table::new(rows, widths.map(Constraint::Length)).header(header);
    frame.render_widget(table, body);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, model: &Model, sort: Sort, paused: bool) {
    let sum = |of: fn(&Row) -> u64| model.rows.iter().map(of).sum::<u64>();
    let (bytes, live) = (
        sum(|row| row.pool.stats.bytes),
        sum(|row| row.pool.stats.live),
    );
    let sort = format!("{sort:?}").to_lowercase();
    let state = if paused { ", stopped" } else { "" };
    let first = format!(
        "process {}: {} pools, {}B held, {} objects live; by {sort}{state}",
        model.pid(),
        model.rows.len(),
        number(bytes),
        number(live),
    );
    let second = if model.counts_fast_paths() {
        "keys: n b a f u sort, r reverse, space stop, q end"
    } else {
        "slow paths only: feature op-counters counts the others; q end, n b a f u sort"
    };
    let lines = vec![Line::from(first), Line::from(second)];
    frame.render_widget(Paragraph::new(lines), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [
            0.0, 7.0, 999.0, 999.6, 1234.0, 9960.0, 45_678.0, 2.5e6, 3e12,
        ]
        .map(short);
        assert_eq!(
            shown,
            [
                "0", "7", "999", "1.0k", "1.2k", "10k", "46k", "2.5M", "3.0T"
            ]
        );
    }

    #[test]
    fn sparklines_reach_up_to_their_highest() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[9.0, 0.0, 8.0], 2), " █");
        assert_eq!(sparkline(&[0.0], 5), " ");
    }
}
