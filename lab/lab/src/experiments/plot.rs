//! A chart and the numbers behind it, as they go into a finding.

use crate::experiments::finding::Claim;
use crate::experiments::{ExperimentError, Finding, Row, Shape, Verdict};
use flashweir_load::report::{Chart, Hue, Point, Series};

/// Lines over one x axis.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) x_label: &'static str,
    pub(crate) y_label: &'static str,
    /// Names and points, x ascending.
    pub(crate) lines: Vec<(String, Vec<Point>)>,
    /// Onset of the crowd, where x is time.
    pub(crate) onset: Option<f64>,
}

/// Lines take these in turn; the first is what happens without control.
const HUES: [Hue; 6] = [Hue::Grey, Hue::Vermillion, Hue::Blue, Hue::Green, Hue::Purple, Hue::Amber];

impl Plot {
    /// Puts a finding together, with the verdict that its rows and shapes deserve.
    pub(crate) fn finding(
        self,
        rows: Vec<Row>,
        shapes: Vec<Shape>,
        claim: Claim,
        notes: Vec<String>,
    ) -> Result<Finding, ExperimentError> {
        let verdict = Verdict::of(&rows, &shapes, claim);
        let csv = self.csv()?;
        let mut chart = Chart::new(self.title, self.x_label, self.y_label);
        for ((name, points), hue) in self.lines.into_iter().zip(HUES.into_iter().cycle()) {
            chart = chart.series(Series::line(name, hue, points));
        }
        if let Some(onset) = self.onset {
            chart = chart.marker("crowd", onset);
        }
        Ok(Finding { rows, shapes, verdict, notes, csv, figure: chart.figure()? })
    }

    /// One line for each point: series, x, y. A point without a value has an empty y.
    fn csv(&self) -> Result<String, ExperimentError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["series", self.x_label, self.y_label])?;
        for (name, points) in &self.lines {
            for (x, y) in points {
                let y = y.map_or_else(String::new, |y| format!("{y:.4}"));
                writer.write_record([name.as_str(), &x.to_string(), &y])?;
            }
        }
        let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        // Holds because only text was written.
        Ok(String::from_utf8(bytes).expect("CSV of text is text"))
    }
}
