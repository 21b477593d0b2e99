//! One named line of a chart.

use crate::report::Hue;

/// An x and, where something was measured, its y.
pub type Point = (f64, Option<f64>);

/// Style in which a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Points joined by straight lines.
    Line,
    /// Each value holds until the next point: for limits and states.
    Step,
    /// The space between the line and the axis is filled: for what is context to the lines before it.
    Area,
}

/// A named sequence of points, in order of x. Points without a (finite) y are gaps: nothing is drawn over
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Text of the legend.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// Style in which it is drawn.
    pub style: Style,
    /// The points, in order of x.
    pub points: Vec<Point>,
}

impl Series {
    /// A line.
    #[must_use]
    pub fn line(name: impl Into<String>, hue: Hue, points: Vec<Point>) -> Self {
        Self { name: name.into(), hue, style: Style::Line, points }
    }

    /// A step line.
    #[must_use]
    pub fn step(name: impl Into<String>, hue: Hue, points: Vec<Point>) -> Self {
        Self { name: name.into(), hue, style: Style::Step, points }
    }

    /// A filled area.
    #[must_use]
    pub fn area(name: impl Into<String>, hue: Hue, points: Vec<Point>) -> Self {
        Self { name: name.into(), hue, style: Style::Area, points }
    }

    /// Cumulative distribution of values: for each value the percentage of all that do not exceed it. For a
    /// chart with [`log_x`](crate::report::Chart::log_x); `counts` are values and how often they occurred,
    /// in order of value.
    #[must_use]
    pub fn cumulative(
        name: impl Into<String>,
        hue: Hue,
        counts: impl IntoIterator<Item = (f64, u64)>,
    ) -> Self {
        let steps = shares(counts);
        let start = steps.first().map(|&(value, _)| (value, Some(0.0)));
        let rises = steps.iter().map(|&(value, share)| (value, Some(share * 100.0)));
        Self::step(name, hue, start.into_iter().chain(rises).collect())
    }

    /// The value of every percentile: for a chart with [`nines_x`](crate::report::Chart::nines_x); `counts`
    /// as for [`cumulative`](Self::cumulative).
    #[must_use]
    pub fn percentiles(
        name: impl Into<String>,
        hue: Hue,
        counts: impl IntoIterator<Item = (f64, u64)>,
    ) -> Self {
        let steps = shares(counts);
        let before = std::iter::once(0.0).chain(steps.iter().map(|&(_, share)| share));
        let mut points: Vec<Point> =
            before.zip(&steps).map(|(share, &(value, _))| (share, Some(value))).collect();
        points.extend(steps.last().map(|&(value, share)| (share, Some(value))));
        Self::step(name, hue, points)
    }

    /// The unbroken runs of measured points, as they are drawn (steps get their corners).
    pub(crate) fn runs(&self) -> Vec<Vec<(f64, f64)>> {
        let mut runs = Vec::new();
        let mut run: Vec<(f64, f64)> = Vec::new();
        for &(x, y) in &self.points {
            let y = y.filter(|y| x.is_finite() && y.is_finite());
            if let (Style::Step, Some(&(_, held))) = (self.style, run.last()) {
                run.push((x, held));
            }
            match y {
                Some(y) => run.push((x, y)),
                None if !run.is_empty() => runs.push(core::mem::take(&mut run)),
                None => {}
            }
        }
        if !run.is_empty() {
            runs.push(run);
        }
        runs
    }
}

/// Each value that occurred, with the share (0 to 1) of all occurrences up to and with it.
fn shares(counts: impl IntoIterator<Item = (f64, u64)>) -> Vec<(f64, f64)> {
    let counts: Vec<(f64, u64)> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
    let sum = |total: &mut u64, count: u64| {
        *total = total.saturating_add(count);
        Some(*total)
    };
    let totals: Vec<u64> =
        counts.iter().map(|&(_, count)| count).scan(0, |total, count| sum(total, count)).collect();
    let all = totals.last().copied().unwrap_or(0) as f64;
    counts.iter().zip(totals).map(|(&(value, _), total)| (value, total as f64 / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_break_a_line() {
        let points = vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(f64::NAN)), (3.0, Some(2.0))];
        let line = Series::line("l", Hue::Blue, points);
        assert_eq!(line.runs(), [vec![(0.0, 1.0)], vec![(3.0, 2.0)]]);
    }

    #[test]
    fn a_step_holds_its_value_until_the_next_point_even_if_that_is_a_gap() {
        let step = Series::step("s", Hue::Blue, vec![(0.0, Some(1.0)), (2.0, Some(3.0)), (5.0, None)]);
        assert_eq!(step.runs(), [vec![(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (5.0, 3.0)]]);
    }

    #[test]
    fn a_distribution_rises_from_nothing_to_all() {
        let counts = [(1.0, 1), (2.0, 0), (4.0, 3)];
        let rises = [(1.0, Some(0.0)), (1.0, Some(25.0)), (4.0, Some(100.0))];
        assert_eq!(Series::cumulative("c", Hue::Blue, counts).points, rises);
        let percentiles = [(0.0, Some(1.0)), (0.25, Some(4.0)), (1.0, Some(4.0))];
        assert_eq!(Series::percentiles("p", Hue::Blue, counts).points, percentiles);
        assert!(Series::cumulative("none", Hue::Blue, []).points.is_empty());
        assert!(Series::percentiles("none", Hue::Blue, [(3.0, 0)]).points.is_empty());
    }
}
