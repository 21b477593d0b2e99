//! Content of a chart; `chart_drawing` draws it.

use crate::report::figure::{LegendEntry, Swatch};
use crate::report::scale::Spacing;
use crate::report::series::Style;
use crate::report::{Hue, Series};

/// Series over one x axis, with what helps to read them: reference lines, shaded stretches and marked
/// moments.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) log: bool,
    pub(crate) x_spacing: Spacing,
    pub(crate) x_range: Option<(f64, f64)>,
    pub(crate) y_at_least: Option<f64>,
    pub(crate) y_at_most: Option<f64>,
    pub(crate) stack: Vec<Series>,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<Reference>,
    pub(crate) bands: Vec<Band>,
    pub(crate) markers: Vec<Marker>,
}

/// A horizontal line to compare with.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) hue: Hue,
    pub(crate) y: f64,
}

/// A shaded stretch of the x axis.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub(crate) name: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// A moment with a label.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub(crate) label: String,
    pub(crate) x: f64,
}

impl Chart {
    /// An empty chart; labels name the quantity and its unit.
    #[must_use]
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            log: false,
            x_spacing: Spacing::Linear,
            x_range: None,
            y_at_least: None,
            y_at_most: None,
            stack: Vec::new(),
            series: Vec::new(),
            references: Vec::new(),
            bands: Vec::new(),
            markers: Vec::new(),
        }
    }

    /// Makes the y axis logarithmic; values at or below zero are then left out.
    #[must_use]
    pub fn log_scale(mut self) -> Self {
        self.log = true;
        self
    }

    /// Makes the x axis logarithmic, for sizes and times from small to large; points at or below zero are
    /// then left out.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.x_spacing = Spacing::Log;
        self
    }

    /// Makes the x axis one of percentiles: x is a share from 0 to 1, and p90, p99, p99.9 … are equally far
    /// from each other, so that the slowest few are not squeezed into the edge. It ends at the last nine that
    /// the points reach; 1 is drawn there.
    #[must_use]
    pub fn nines_x(mut self) -> Self {
        self.x_spacing = Spacing::Nines;
        self
    }

    /// Fixes the x axis, so that several charts line up; otherwise it spans the points.
    #[must_use]
    pub fn x_range(mut self, from: f64, to: f64) -> Self {
        self.x_range = Some((from, to));
        self
    }

    /// Makes the y axis reach at least this far, so that several charts share a scale.
    #[must_use]
    pub fn y_at_least(mut self, y: f64) -> Self {
        self.y_at_least = Some(y);
        self
    }

    /// Ends the y axis here at the latest; what lies beyond is drawn along the edge.
    #[must_use]
    pub fn y_at_most(mut self, y: f64) -> Self {
        self.y_at_most = Some(y);
        self
    }

    /// Puts a series as one layer on top of those stacked before it, in every style: for the parts of a
    /// whole. Gaps and negative values are layers without thickness. Stacks are drawn below all series.
    /// Layers of more than 240 points are drawn as means over neighbours, the series with them, and the y
    /// label says so.
    #[must_use]
    pub fn stacked(mut self, layer: Series) -> Self {
        self.stack.push(layer);
        self
    }

    /// Adds a series; later ones are drawn over earlier ones.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a dashed horizontal line.
    #[must_use]
    pub fn reference(mut self, name: impl Into<String>, hue: Hue, y: f64) -> Self {
        self.references.push(Reference { name: name.into(), hue, y });
        self
    }

    /// Shades a stretch of the x axis.
    #[must_use]
    pub fn band(mut self, name: impl Into<String>, from: f64, to: f64) -> Self {
        self.bands.push(Band { name: name.into(), from, to });
        self
    }

    /// Marks a moment with a labelled vertical line.
    #[must_use]
    pub fn marker(mut self, label: impl Into<String>, x: f64) -> Self {
        self.markers.push(Marker { label: label.into(), x });
        self
    }

    pub(crate) fn legend(&self) -> Vec<LegendEntry> {
        let series = self.series.iter().map(|series| {
            let swatch = if series.style == Style::Area { Swatch::Block } else { Swatch::Line };
            LegendEntry::new(&series.name, series.hue, swatch)
        });
        // Topmost first, as they lie in the plot.
        let stack = self.stack.iter().rev().map(|l| LegendEntry::new(&l.name, l.hue, Swatch::Block));
        let references = self.references.iter().map(|r| LegendEntry::new(&r.name, r.hue, Swatch::Dashes));
        let bands = self.bands.iter().map(|band| LegendEntry::new(&band.name, Hue::Amber, Swatch::Tint));
        series.chain(stack).chain(references).chain(bands).collect()
    }
}
