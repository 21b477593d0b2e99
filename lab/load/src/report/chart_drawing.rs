//! Draws a chart: bands, grid, areas, lines, references and markers, in that order.

use crate::report::canvas::{Canvas, Pixel, draw, text_width};
use crate::report::chart::{Chart, Marker};
use crate::report::figure::{Figure, PLOT_LEFT, PLOT_RIGHT, WIDTH};
use crate::report::scale::{Scale, Spacing, nice_ceiling};
use crate::report::thinning::thin;
use crate::report::{Hue, ReportError, Style, stack};
use plotters::style::text_anchor::{HPos, VPos};

/// Height of the space the points are drawn in.
const PLOT_HEIGHT: i32 = 230;
/// Height of the y axis's label, clear of its topmost tick.
const HEADER: i32 = 26;
/// Height of one row of marker labels.
const ROW: i32 = 15;
const TICK_TEXT: f64 = 12.0;
const LABEL_TEXT: f64 = 12.0;
/// Half the width of a stack of a single moment, pixels.
const LONE_HALF: i32 = 3;

/// The measures of one drawing.
struct Plot {
    x: Scale,
    y: Scale,
    top: i32,
    bottom: i32,
}

impl Chart {
    /// The drawn chart with its legend.
    ///
    /// # Errors
    /// [`ReportError`] when the SVG backend fails, which no numbers passed in should cause.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        if self.stack.is_empty() { figure(self) } else { figure(&stack::readable(self)) }
    }
}

fn figure(chart: &Chart) -> Result<Figure, ReportError> {
    let x = x_scale(chart);
    let labels = place_labels(&chart.markers, &x);
    let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0);
    let top = HEADER + rows * ROW;
    let bottom = top + PLOT_HEIGHT;
    let height = bottom + 38;
    let edges = stack::edges(&chart.stack);
    let plot = Plot { x, y: y_scale(chart, &edges, (bottom, top)), top, bottom };

    let body = draw(&chart.title, (WIDTH, height.unsigned_abs()), |canvas| {
        bands(canvas, chart, &plot)?;
        axes(canvas, chart, &plot)?;
        layers(canvas, chart, &edges, &plot)?;
        series(canvas, chart, &plot)?;
        references(canvas, chart, &plot)?;
        markers(canvas, &labels, &plot)?;
        if is_empty(chart) { nothing_measured(canvas, (top, bottom)) } else { Ok(()) }
    })?;
    Figure::new(&chart.title, description(chart), (WIDTH, height.unsigned_abs()), body, chart.legend())
}

fn bands(canvas: &Canvas<'_>, chart: &Chart, plot: &Plot) -> Result<(), ReportError> {
    chart.bands.iter().try_for_each(|band| {
        let corners = [(plot.x.pixel(band.from), plot.top), (plot.x.pixel(band.to), plot.bottom)];
        canvas.rectangle(corners, Hue::Amber, 0.12)
    })
}

fn axes(canvas: &Canvas<'_>, chart: &Chart, plot: &Plot) -> Result<(), ReportError> {
    for (value, label) in plot.y.ticks() {
        let y = plot.y.pixel(value);
        canvas.line(vec![(PLOT_LEFT, y), (PLOT_RIGHT, y)], Hue::Grid, 1)?;
        canvas.text(&label, (PLOT_LEFT - 8, y), (HPos::Right, VPos::Center), (Hue::Quiet, TICK_TEXT))?;
    }
    canvas.text(&chart.y_label, (4, 4), (HPos::Left, VPos::Top), (Hue::Quiet, LABEL_TEXT))?;
    if plot.x.spacing() != Spacing::Linear {
        // On a bent axis the eye cannot guess what lies between two ticks.
        for (value, _) in plot.x.ticks() {
            let x = plot.x.pixel(value);
            canvas.line(vec![(x, plot.top), (x, plot.bottom)], Hue::Grid, 1)?;
        }
    }
    time_axis(canvas, &plot.x, plot.bottom, &chart.x_label)
}

/// The stack: every layer between its own edge and the one below, with a line on top that separates it from
/// the next one where colours do not.
fn layers(
    canvas: &Canvas<'_>,
    chart: &Chart,
    edges: &[Vec<(f64, f64)>],
    plot: &Plot,
) -> Result<(), ReportError> {
    let mut below: Option<Vec<Pixel>> = None;
    for (layer, edge) in chart.stack.iter().zip(edges) {
        let drawable = edge.iter().filter(|&&(x, _)| can_lie_on(plot.x.spacing(), x));
        let mut edge = thin(drawable.map(|&(x, y)| (plot.x.pixel(x), plot.y.pixel(y))).collect());
        if let [(x, y)] = edge[..] {
            // A lone moment would be an area without width.
            edge = vec![(x - LONE_HALF, y), (x + LONE_HALF, y)];
        }
        let foot: Vec<Pixel> = match &below {
            Some(below) => below.iter().rev().copied().collect(),
            None => edge.iter().rev().map(|&(x, _)| (x, plot.y.foot())).collect(),
        };
        if edge != foot.iter().rev().copied().collect::<Vec<_>>() {
            canvas.polygon([edge.clone(), foot].concat(), layer.hue, 0.6)?;
            canvas.line(edge.clone(), layer.hue, 1)?;
        }
        below = Some(edge);
    }
    Ok(())
}

/// The x axis with its ticks and label, below `bottom`.
pub(crate) fn time_axis(canvas: &Canvas<'_>, x: &Scale, bottom: i32, label: &str) -> Result<(), ReportError> {
    canvas.line(vec![(PLOT_LEFT, bottom), (PLOT_RIGHT, bottom)], Hue::Quiet, 1)?;
    for (value, label) in x.ticks() {
        let at = x.pixel(value);
        canvas.line(vec![(at, bottom), (at, bottom + 4)], Hue::Quiet, 1)?;
        // A long last label would be cut off at the picture's edge.
        let middle = at.min(WIDTH.cast_signed() - text_width(&label, TICK_TEXT) / 2);
        canvas.text(&label, (middle, bottom + 7), (HPos::Center, VPos::Top), (Hue::Quiet, TICK_TEXT))?;
    }
    canvas.text(label, (PLOT_RIGHT, bottom + 23), (HPos::Right, VPos::Top), (Hue::Quiet, LABEL_TEXT))
}

fn series(canvas: &Canvas<'_>, chart: &Chart, plot: &Plot) -> Result<(), ReportError> {
    for series in &chart.series {
        for run in series.runs() {
            let drawable = run
                .into_iter()
                .filter(|&(x, y)| can_lie_on(plot.x.spacing(), x) && can_lie_on(plot.y.spacing(), y));
            let mut points = thin(drawable.map(|(x, y)| (plot.x.pixel(x), plot.y.pixel(y))).collect());
            let (Some(&first), Some(&last)) = (points.first(), points.last()) else { continue };
            if series.style == Style::Area {
                points.push((last.0, plot.y.foot()));
                points.push((first.0, plot.y.foot()));
                canvas.polygon(points, series.hue, 0.45)?;
            } else if points.len() == 1 {
                // A lone point would be an invisible line.
                canvas.line(vec![(first.0 - 1, first.1), (first.0 + 1, first.1)], series.hue, 3)?;
            } else {
                canvas.line(points, series.hue, 2)?;
            }
        }
    }
    Ok(())
}

/// Says in the middle of an empty plot why it is empty.
pub(crate) fn nothing_measured(canvas: &Canvas<'_>, (top, bottom): (i32, i32)) -> Result<(), ReportError> {
    let middle = ((PLOT_LEFT + PLOT_RIGHT) / 2, (top + bottom) / 2);
    canvas.text("nothing was measured", middle, (HPos::Center, VPos::Center), (Hue::Quiet, LABEL_TEXT + 2.0))
}

/// Returns whether no series has a point to draw.
fn is_empty(chart: &Chart) -> bool {
    let runs = |series: &crate::report::Series| series.runs().is_empty();
    chart.series.iter().chain(&chart.stack).all(runs)
}

fn references(canvas: &Canvas<'_>, chart: &Chart, plot: &Plot) -> Result<(), ReportError> {
    chart.references.iter().try_for_each(|reference| {
        let y = plot.y.pixel(reference.y);
        canvas.dashed((PLOT_LEFT, y), (PLOT_RIGHT, y), reference.hue, 2)
    })
}

fn markers(canvas: &Canvas<'_>, labels: &[Label<'_>], plot: &Plot) -> Result<(), ReportError> {
    for label in labels {
        let y = HEADER + label.row * ROW;
        canvas.dashed((label.x, y), (label.x, plot.bottom), Hue::Ink, 1)?;
        let (anchor, x) =
            if label.leftwards { (HPos::Right, label.x - 4) } else { (HPos::Left, label.x + 4) };
        canvas.text(label.text, (x, y), (anchor, VPos::Top), (Hue::Ink, LABEL_TEXT))?;
    }
    Ok(())
}

/// A marker's label in the rows above the plot.
struct Label<'a> {
    text: &'a str,
    x: i32,
    row: i32,
    leftwards: bool,
}

/// Puts each label into the first row in which it touches no other.
fn place_labels<'a>(markers: &'a [Marker], x: &Scale) -> Vec<Label<'a>> {
    let mut taken: Vec<Vec<(i32, i32)>> = Vec::new();
    markers
        .iter()
        .map(|marker| {
            let at = x.pixel(marker.x);
            let width = text_width(&marker.label, LABEL_TEXT) + 8;
            let leftwards = at + width > PLOT_RIGHT;
            let (from, to) = if leftwards { (at - width, at) } else { (at, at + width) };
            let free = |row: &Vec<(i32, i32)>| row.iter().all(|&(start, end)| to < start || end < from);
            let row = taken.iter().position(free).unwrap_or(taken.len());
            if row == taken.len() {
                taken.push(Vec::new());
            }
            taken[row].push((from, to));
            // A chart with enough markers to overflow this could not be read or held in memory anyway.
            Label { text: &marker.label, x: at, row: i32::try_from(row).unwrap_or(i32::MAX), leftwards }
        })
        .collect()
}

/// Returns whether an axis has a place for this number: logarithms have none for zero and below.
fn can_lie_on(spacing: Spacing, value: f64) -> bool {
    spacing != Spacing::Log || value > 0.0
}

fn x_scale(chart: &Chart) -> Scale {
    let pixels = (PLOT_LEFT, PLOT_RIGHT);
    let points = chart.series.iter().chain(&chart.stack).flat_map(|series| &series.points);
    // Shares of the whole are no end: their axis ends below them.
    let is_shown = |x: &f64| match chart.x_spacing {
        Spacing::Linear => true,
        Spacing::Log => *x > 0.0,
        Spacing::Nines => *x < 1.0,
    };
    let xs = points.map(|&(x, _)| x).filter(|x| x.is_finite() && is_shown(x));
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let measured = (low <= high).then_some((low, high));
    let (low, high) = chart.x_range.or(measured).unwrap_or((0.0, 1.0));
    match chart.x_spacing {
        Spacing::Linear => Scale::linear(low, high, pixels),
        Spacing::Log if low > 0.0 && high >= low => Scale::log_between(low, high, pixels),
        Spacing::Log => Scale::log_between(1.0, 1.0, pixels),
        Spacing::Nines => Scale::nines(high, pixels),
    }
}

fn y_scale(chart: &Chart, edges: &[Vec<(f64, f64)>], pixels: (i32, i32)) -> Scale {
    let measured = chart.series.iter().flat_map(|series| series.points.iter().filter_map(|&(_, y)| y));
    let stacked = edges.last().into_iter().flatten().map(|&(_, y)| y);
    let all = measured
        .chain(stacked)
        .chain(chart.references.iter().map(|reference| reference.y))
        .chain(chart.y_at_least);
    let shown: Vec<f64> = all.filter(|y| y.is_finite() && (!chart.log || *y > 0.0)).collect();
    let highest = shown.iter().copied().fold(0.0, f64::max).min(chart.y_at_most.unwrap_or(f64::INFINITY));
    if chart.log {
        let lowest = shown.iter().copied().fold(f64::INFINITY, f64::min);
        let (low, high) = if shown.is_empty() { (1.0, 10.0) } else { (lowest, highest) };
        return Scale::log(low, high, pixels);
    }
    let lowest = shown.iter().copied().fold(0.0, f64::min);
    Scale::linear(lowest, if highest > 0.0 { nice_ceiling(highest) } else { lowest + 1.0 }, pixels)
}

/// Description of the plot for readers who cannot see it.
fn description(chart: &Chart) -> String {
    let peak = |points: &[crate::report::Point]| {
        points
            .iter()
            .filter_map(|&(_, y)| y)
            .filter(|y| y.is_finite())
            .fold(None, |peak: Option<f64>, y| Some(peak.map_or(y, |peak| peak.max(y))))
    };
    let mut parts = vec![format!("{} over {}.", chart.y_label, chart.x_label)];
    for series in chart.series.iter().chain(&chart.stack) {
        parts.push(match peak(&series.points) {
            Some(peak) => format!("{}: highest {peak:.1}.", series.name),
            None => format!("{}: not measured.", series.name),
        });
    }
    parts.extend(chart.references.iter().map(|r| format!("{} at {:.1}.", r.name, r.y)));
    parts.extend(
        chart.bands.iter().map(|band| format!("{} from {:.1} to {:.1}.", band.name, band.from, band.to)),
    );
    parts.extend(chart.markers.iter().map(|marker| format!("{} at {:.1}.", marker.label, marker.x)));
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Series;

    #[test]
    fn labels_that_would_overlap_get_rows_of_their_own() {
        let markers = [("crowd begins", 10.0), ("alarm", 10.5), ("released", 40.0), ("end", 99.9)]
            .map(|(label, x)| Marker { label: label.to_owned(), x });
        let labels = place_labels(&markers, &Scale::linear(0.0, 100.0, (PLOT_LEFT, PLOT_RIGHT)));
        assert_eq!(labels.iter().map(|label| label.row).collect::<Vec<_>>(), [0, 1, 0, 0]);
        assert!(labels[3].leftwards && !labels[0].leftwards);
    }

    #[test]
    fn the_axis_ends_where_it_is_told_to() {
        let points = vec![(0.0, Some(3.0)), (1.0, Some(5_000.0))];
        let chart = Chart::new("c", "x", "y").series(Series::line("l", Hue::Blue, points)).y_at_most(400.0);
        let top = |chart: &Chart| y_scale(chart, &[], (400, 0)).ticks().last().map(|(value, _)| *value);
        assert_eq!(top(&chart), Some(400.0));
        assert_eq!(top(&chart.y_at_least(10_000.0)), Some(400.0));
    }

    #[test]
    fn a_chart_without_points_still_draws() {
        for chart in [Chart::new("e", "x", "y"), Chart::new("e", "x", "y").log_scale()] {
            let gap = Series::line("none", Hue::Blue, vec![(f64::NAN, None)]);
            assert!(chart.series(gap).figure().is_ok());
        }
    }
}
