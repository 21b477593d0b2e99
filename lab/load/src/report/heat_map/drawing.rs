//! Draws a heat map: the grid of cells, axes and references, and the colour scale above them.

use super::HeatMap;
use super::cells::{Grid, ROWS, shown, y_range};
use super::colours::{LEVELS, level, light};
use crate::report::canvas::{Canvas, Pixel, draw, text_width};
use crate::report::chart_drawing::{nothing_measured, time_axis};
use crate::report::figure::{Figure, LegendEntry, PLOT_LEFT, PLOT_RIGHT, Swatch, WIDTH};
use crate::report::scale::{Scale, number};
use crate::report::{Hue, ReportError};
use core::fmt::Write;
use plotters::style::text_anchor::{HPos, VPos};

/// Height of a row of cells, pixels.
const ROW: i32 = 4;
/// Height of the y axis's label and the colour scale, clear of the topmost tick.
const TOP: i32 = 42;
const BOTTOM: i32 = TOP + ROWS as i32 * ROW;
const SIZE: (u32, u32) = (WIDTH, (BOTTOM + 38).unsigned_abs());
const TEXT: f64 = 12.0;
/// One colour of the scale, pixels.
const SAMPLE: Pixel = (24, 10);

pub(super) fn figure(map: &HeatMap) -> Result<Figure, ReportError> {
    let range = y_range(map);
    let (low, high) = range.map_or((1.0, 1_000.0), |range| shown(map, range));
    let y = Scale::log_between(low, high, (BOTTOM, TOP));
    let grid = Grid::new(map, &y);
    let x = Scale::linear(grid.from, grid.to, (PLOT_LEFT, PLOT_RIGHT));
    let highest = grid.highest();

    let over = draw(&map.title, SIZE, |canvas| {
        for (value, label) in y.ticks() {
            let at = y.pixel(value);
            canvas.line(vec![(PLOT_LEFT - 4, at), (PLOT_LEFT, at)], Hue::Quiet, 1)?;
            canvas.text(&label, (PLOT_LEFT - 8, at), (HPos::Right, VPos::Center), (Hue::Quiet, TEXT))?;
        }
        canvas.text(&map.y_label, (4, 4), (HPos::Left, VPos::Top), (Hue::Quiet, TEXT))?;
        time_axis(canvas, &x, BOTTOM, &map.x_label)?;
        for (_, hue, value) in &map.references {
            let at = y.pixel(*value);
            canvas.dashed((PLOT_LEFT, at), (PLOT_RIGHT, at), *hue, 2)?;
        }
        match range {
            Some(_) => scale_labels(canvas, &map.counted, highest),
            None => nothing_measured(canvas, (TOP, BOTTOM)),
        }
    })?;
    let samples = if range.is_some() { scale_samples(highest) } else { String::new() };
    let body = format!("{}{samples}{over}", cells(&grid, &x, highest));
    let references = map.references.iter().map(|(name, hue, _)| LegendEntry::new(name, *hue, Swatch::Dashes));
    Figure::new(&map.title, description(map, range, highest), SIZE, body, references.collect())
}

/// One path for each colour: a cell takes some fifteen bytes, where its own element would take eighty.
fn cells(grid: &Grid, x: &Scale, highest: f64) -> String {
    let mut paths: [String; LEVELS] = Default::default();
    for (place, column) in grid.columns.iter().enumerate() {
        let from = grid.from + place as f64 * grid.width;
        let left = x.pixel(from);
        let width = (x.pixel(from + grid.width) - left).max(1);
        let mut bottom = BOTTOM;
        let colour = |count: &f64| (*count > 0.0).then(|| level(*count, highest));
        for run in column.chunk_by(|a, b| colour(a) == colour(b)) {
            // At most ROWS cells.
            let height = run.len() as i32 * ROW;
            bottom -= height;
            if let Some(level) = run.first().and_then(colour) {
                rectangle(&mut paths[level], (left, bottom), (width, height));
            }
        }
    }
    paths.iter().enumerate().map(|(level, cells)| path(level, cells)).collect()
}

/// The colour scale, at the right of the header.
fn scale_samples(highest: f64) -> String {
    let path_of = |level: usize| {
        let mut sample = String::new();
        rectangle(&mut sample, (scale_left() + level as i32 * SAMPLE.0, 6), SAMPLE);
        path(level, &sample)
    };
    // Where all counts are alike there is one colour and no scale.
    if highest <= 1.0 { path_of(LEVELS - 1) } else { (0..LEVELS).map(path_of).collect() }
}

fn scale_labels(canvas: &Canvas<'_>, counted: &str, highest: f64) -> Result<(), ReportError> {
    let right = PLOT_RIGHT;
    let first = if highest <= 1.0 { right - SAMPLE.0 } else { scale_left() };
    let name = format!("{counted} in one cell");
    canvas.text(&name, (first - 8, 11), (HPos::Right, VPos::Center), (Hue::Quiet, TEXT))?;
    let label = |text: &str, at: i32| {
        canvas.text(text, (at, 19), (HPos::Center, VPos::Top), (Hue::Quiet, TEXT - 1.0))
    };
    if highest <= 1.0 {
        return label("1", right - SAMPLE.0 / 2);
    }
    let end = number(highest, 0);
    canvas.text(&end, (right, 19), (HPos::Right, VPos::Top), (Hue::Quiet, TEXT - 1.0))?;
    let length = f64::from(right - first);
    let mut free_from = first - 8;
    for decade in 0..=18 {
        let value = 10f64.powi(decade);
        let text = number(value, 0);
        let at = first + (value.ln() / highest.ln() * length).min(length) as i32;
        let half = text_width(&text, TEXT - 1.0) / 2;
        if at - half >= free_from && at + half < right - text_width(&end, TEXT - 1.0) - 4 {
            label(&text, at)?;
            free_from = at + half + 6;
        }
    }
    Ok(())
}

fn scale_left() -> i32 {
    PLOT_RIGHT - LEVELS as i32 * SAMPLE.0
}

fn rectangle(path: &mut String, (left, top): Pixel, (width, height): Pixel) {
    write!(path, "M{left} {top}h{width}v{height}h-{width}z").expect("writing to a String cannot fail");
}

fn path(level: usize, rectangles: &str) -> String {
    if rectangles.is_empty() {
        return String::new();
    }
    // Crisp edges: smoothed ones would leave hairlines between cells when the page scales the plot.
    format!("<path fill=\"{}\" shape-rendering=\"crispEdges\" d=\"{rectangles}\"/>\n", light(level))
}

/// Description of the plot for readers who cannot see it.
fn description(map: &HeatMap, range: Option<(f64, f64)>, highest: f64) -> String {
    let mut parts = vec![format!("{} over {}.", map.y_label, map.x_label)];
    parts.push(match range {
        Some((low, high)) => format!(
            "{} from {low:.1} to {high:.1} {}, at most {} in one cell.",
            map.counted,
            map.y_label,
            number(highest, 0)
        ),
        None => "Not measured.".to_owned(),
    });
    parts.extend(map.references.iter().map(|(name, _, y)| format!("{name} at {y:.1}.")));
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_counts_draws() {
        for counts in [vec![], vec![1], vec![1, 1, 1], vec![2], vec![7, 7], vec![1, u64::MAX]] {
            let columns = counts.iter().enumerate();
            let map = columns.fold(HeatMap::new("m <b>", "s", "ms", "<i>"), |map, (place, &count)| {
                map.column(place as f64, place as f64 + 1.0, [(1.0, 1.06, count)])
            });
            let figure = map.figure().expect("draws");
            assert_eq!(figure.svg().contains("nothing was measured"), counts.is_empty(), "{counts:?}");
            assert!(!figure.svg().contains("<b>") && !figure.svg().contains("<i>"), "unescaped");
        }
    }

    #[test]
    fn a_full_map_stays_small() {
        // An hour of seconds with every bucket of a histogram in use and no two neighbours alike.
        let cells = |second: u32| {
            (0..160u32).map(move |step| {
                let low = 10f64.powf(f64::from(step) / 40.0);
                (low, low * 1.06, 1 + u64::from(second * 7_919 + step * 104_729) % 5_000)
            })
        };
        let map = (0..3_600u32).fold(HeatMap::new("m", "s", "ms", "requests"), |map, second| {
            map.column(f64::from(second), f64::from(second) + 1.0, cells(second))
        });
        let size = map.figure().expect("draws").svg().len();
        assert!(size < 400_000, "{size} bytes");
    }
}
