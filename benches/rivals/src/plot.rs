//! Plots, as SVG.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::prelude::*;

use crate::heap::Kind;
use crate::latency::Latency;
use crate::report::Report;
use crate::stats::Measured;

type Outcome = Result<(), Box<dyn Error>>;

/// Two colours a kind of contender would be too few: lines take them in turn.
const LINES: [RGBColor; 10] = [
    RGBColor(0x1b, 0x6c, 0xa8),
    RGBColor(0xd9, 0x5f, 0x02),
    RGBColor(0x2c, 0x8c, 0x4a),
    RGBColor(0x9b, 0x2d, 0x86),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0xc2, 0x3b, 0x3b),
    RGBColor(0x5a, 0x4f, 0xcf),
    RGBColor(0x8c, 0x6d, 0x1f),
    RGBColor(0x00, 0x8b, 0x8b),
    RGBColor(0xe0, 0x6c, 0x9f),
];

/// Bars longer than this many times the pool's end with a number instead.
const LONGEST: f64 = 12.0;
const BAR: u32 = 24;
const NAMES: u32 = 270;

pub fn all(report: &Report, folder: &Path) -> Outcome {
    fs::create_dir_all(folder)?;
    for one in report.workloads.iter().filter(|one| one.x.is_none()) {
        bars(one, &folder.join(format!("{}-{}.svg", one.key, one.size)))?;
    }
    let labels = [
        ("bulk", "bulk curve", "objects at a time", "ns an object"),
        (
            "threads",
            "threads",
            "threads",
            "ns of one processor a pair",
        ),
    ];
    for (key, title, x, y) in labels {
        let points: Vec<_> = report
            .workloads
            .iter()
            .filter(|one| one.key == key)
            .collect();
        if !points.is_empty() {
            curve(&points, [title, x, y], &folder.join(format!("{key}.svg")))?;
        }
    }
    for operation in ["alloc", "free"] {
        let rows: Vec<_> = report
            .latencies
            .iter()
            .filter(|row| row.operation == operation)
            .collect();
        if !rows.is_empty() {
            let file = format!("latency-{operation}.svg");
            latency(&rows, operation, &folder.join(file))?;
        }
    }
    Ok(())
}

/// Horizontal bars with the quartiles as whiskers.
fn bars(one: &Measured, file: &Path) -> Outcome {
    let mut rows: Vec<_> = one
        .rows
        .iter()
        .filter(|row| row.kind != Kind::Harness)
        .collect();
    let median = |row: &&crate::stats::Row| row.nanos.map_or(0.0, |spread| spread.median);
    rows.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let own = one.row("PoolBox").map_or(1.0, |row| median(&row)).max(0.1);
    let most = rows
        .iter()
        .map(median)
        .fold(own, f64::max)
        .min(own * LONGEST);
    let height = u32::try_from(rows.len())? * BAR + 60;
    let root = SVGBackend::new(file, (860, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("{}: ns, less the harness", one.title);
    root.draw(&Text::new(title, (12, 10), ("sans-serif", 16)))?;
    let scale = 400.0 / most;
    let left = i32::try_from(NAMES)?;
    for (number, row) in rows.iter().enumerate() {
        let Some(spread) = row.nanos else { continue };
        let y = 44 + i32::try_from(number * BAR as usize)?;
        let at = |value: f64| left + (value.clamp(0.0, most) * scale) as i32;
        let colour = match row.kind {
            Kind::Ours => LINES[0],
            Kind::Malloc => LINES[1],
            _ => LINES[4],
        };
        root.draw(&Text::new(row.name, (12, y + 1), ("sans-serif", 13)))?;
        let bar = [(left, y), (at(spread.median), y + 15)];
        root.draw(&Rectangle::new(bar, colour.mix(0.75).filled()))?;
        let whisker = vec![(at(spread.lower), y + 7), (at(spread.upper), y + 7)];
        root.draw(&PathElement::new(whisker, BLACK.stroke_width(1)))?;
        let number = format!("{:.2}", spread.median);
        let end = at(spread.median.max(spread.upper)) + 6;
        root.draw(&Text::new(number, (end, y + 1), ("sans-serif", 13)))?;
    }
    root.present()?;
    Ok(())
}

struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

/// Lines on two logarithmic axes.
fn lines(
    lines: &[Line],
    labels: [&str; 3],
    x_label: &dyn Fn(&f64) -> String,
    file: &Path,
) -> Outcome {
    let all = || lines.iter().flat_map(|line| &line.points);
    let range = |part: fn(&(f64, f64)) -> f64| {
        let (low, high) = all()
            .map(part)
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        (low, high * 1.05)
    };
    let (x, y) = (range(|point| point.0), range(|point| point.1));
    let root = SVGBackend::new(file, (860, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let (plot, legend) = root.split_horizontally(620);
    let mut chart = ChartBuilder::on(&plot)
        .caption(labels[0], ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d((x.0..x.1).log_scale(), (y.0..y.1).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(labels[1])
        .y_desc(labels[2])
        .x_label_formatter(x_label)
        .y_label_formatter(&|y| format!("{y}"))
        .draw()?;
    for (number, line) in lines.iter().enumerate() {
        let colour = LINES[number % LINES.len()];
        let width = if number < LINES.len() { 2 } else { 1 };
        let path = PathElement::new(line.points.clone(), colour.stroke_width(width));
        chart.draw_series([path])?;
        let y = 30 + i32::try_from(number)? * 22;
        let sample = vec![(4, y + 7), (24, y + 7)];
        legend.draw(&PathElement::new(sample, colour.stroke_width(width)))?;
        legend.draw(&Text::new(line.name, (30, y), ("sans-serif", 12)))?;
    }
    root.present()?;
    Ok(())
}

/// Differences of times may be zero or less; a logarithmic axis has no place for these.
const LEAST: f64 = 0.1;

fn curve(points: &[&Measured], labels: [&str; 3], file: &Path) -> Outcome {
    let names = points[0]
        .rows
        .iter()
        .filter(|row| row.kind != Kind::Harness);
    let line = |name: &'static str| {
        let at = |one: &&Measured| {
            let nanos = one.row(name)?.nanos?.median;
            Some((one.x? as f64, nanos.max(LEAST)))
        };
        Line {
            name,
            points: points.iter().filter_map(at).collect(),
        }
    };
    let all: Vec<_> = names.map(|row| line(row.name)).collect();
    lines(&all, labels, &|x| format!("{x:.0}"), file)
}

/// The part of the operations that took longer, from right to left.
fn latency(rows: &[&Latency], operation: &str, file: &Path) -> Outcome {
    let line = |row: &&Latency| Line {
        name: row.name,
        points: row
            .curve
            .iter()
            .map(|(part, nanos)| (100.0 / (100.0 - part), nanos.max(1.0)))
            .collect(),
    };
    let all: Vec<_> = rows.iter().map(line).collect();
    let title = format!("{operation}: how long the slowest of so many operations takes");
    lines(
        &all,
        [
            &title,
            "one operation in",
            "ns, two looks at the clock included",
        ],
        &|x| format!("{x:.0}"),
        file,
    )
}
