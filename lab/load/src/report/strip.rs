//! Named states over time: one row for each thing that has a state.

use crate::report::canvas::{draw, text_width};
use crate::report::chart_drawing::time_axis;
use crate::report::figure::{Figure, LegendEntry, PLOT_LEFT, PLOT_RIGHT, Swatch, WIDTH};
use crate::report::scale::Scale;
use crate::report::{Hue, ReportError};
use plotters::style::text_anchor::{HPos, VPos};

const ROW: i32 = 30;
const BAR: i32 = 22;
const TEXT: f64 = 12.0;

/// A stretch of time in one state.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Beginning on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
    /// The state's name, for the legend and the description.
    pub state: String,
    /// Its colour; the same state should always have the same one.
    pub hue: Hue,
}

/// Rows of coloured spans over one x axis.
#[derive(Clone, Debug)]
pub struct Strip {
    title: String,
    x_label: String,
    x_range: (f64, f64),
    rows: Vec<(String, Vec<Span>)>,
}

impl Strip {
    /// A strip without rows. The x range is given, so that it lines up with the charts around it.
    #[must_use]
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, x_range: (f64, f64)) -> Self {
        Self { title: title.into(), x_label: x_label.into(), x_range, rows: Vec::new() }
    }

    /// Adds a row.
    #[must_use]
    pub fn row(mut self, name: impl Into<String>, spans: Vec<Span>) -> Self {
        self.rows.push((name.into(), spans));
        self
    }

    /// The drawn strip with its legend.
    ///
    /// # Errors
    /// [`ReportError`] when the SVG backend fails, which no numbers passed in should cause.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        let bottom = ROW * i32::try_from(self.rows.len()).unwrap_or(i32::MAX / ROW - 2) + 4;
        let size = (WIDTH, (bottom + 38).unsigned_abs());
        let x = Scale::linear(self.x_range.0, self.x_range.1, (PLOT_LEFT, PLOT_RIGHT));
        let body = draw(&self.title, size, |canvas| {
            for (top, (name, spans)) in (4..).step_by(ROW as usize).zip(&self.rows) {
                let middle = top + BAR / 2;
                let name_at = (PLOT_LEFT - 8, middle);
                canvas.text(name, name_at, (HPos::Right, VPos::Center), (Hue::Quiet, TEXT))?;
                for span in spans {
                    let (from, to) = (x.pixel(span.from), x.pixel(span.to));
                    canvas.rectangle([(from, top), (to.max(from + 1), top + BAR)], span.hue, 0.55)?;
                    if text_width(&span.state, TEXT) + 8 <= to - from {
                        let at = ((from + to) / 2, middle);
                        canvas.text(&span.state, at, (HPos::Center, VPos::Center), (Hue::Ink, TEXT))?;
                    }
                }
            }
            time_axis(canvas, &x, bottom, &self.x_label)
        })?;
        Figure::new(&self.title, self.description(), size, body, self.legend())
    }

    fn description(&self) -> String {
        let describe = |(name, spans): &(String, Vec<Span>)| {
            let states = spans.iter().map(|span| format!("{} {:.1}–{:.1}", span.state, span.from, span.to));
            format!("{name}: {}.", states.collect::<Vec<_>>().join(", "))
        };
        self.rows.iter().map(describe).collect::<Vec<_>>().join(" ")
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let mut legend: Vec<LegendEntry> = Vec::new();
        for span in self.rows.iter().flat_map(|(_, spans)| spans) {
            if legend.iter().all(|entry| entry.name() != span.state) {
                legend.push(LegendEntry::new(&span.state, span.hue, Swatch::Block));
            }
        }
        legend
    }
}
