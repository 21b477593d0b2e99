//! One named line of a chart.

use crate::Hue;

/// An x and, where something was measured, its y.
pub type Point = (f64, Option<f64>);

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Points joined by straight lines.
    Line,
    /// Each value holds until the next point: for limits and states.
    Step,
    /// The space between the line and the axis is filled: for what is context to the lines before it.
    Area,
}

/// A named sequence of points, in order of x. Points without a (finite) y are gaps: nothing is drawn over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// How it is drawn.
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

    /// The unbroken runs of measured points, as they are drawn (steps get their corners).
    pub(crate) fn runs(&self) -> Vec<Vec<(f64, f64)>> {
        let mut runs = Vec::new();
        let mut run: Vec<(f64, f64)> = Vec::new();
        for &(x, y) in &self.points {
            let y = y.filter(|y| y.is_finite());
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
}
