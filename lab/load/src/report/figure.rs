//! A drawn plot: an SVG that can be read aloud, and its legend.

mod standalone;

use crate::report::{Hue, ReportError};
use askama::Template;

/// Width of every figure, and the x positions between which its points lie: the same for all, so that their
/// time axes line up on a page.
pub(crate) const WIDTH: u32 = 920;
pub(crate) const PLOT_LEFT: i32 = 76;
pub(crate) const PLOT_RIGHT: i32 = 900;

/// A plot ready for a page or its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    title: String,
    svg: String,
    height: u32,
    legend: Vec<LegendEntry>,
}

impl Figure {
    pub(crate) fn new(
        title: &str,
        description: String,
        (width, height): (u32, u32),
        body: String,
        legend: Vec<LegendEntry>,
    ) -> Result<Self, ReportError> {
        let svg = Svg { title, description: &description, width, height, body: &body }.render()?;
        Ok(Self { title: title.to_owned(), svg, height, legend })
    }

    /// The title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The plot for its own file: an SVG document with title and legend, on white.
    ///
    /// # Errors
    /// [`ReportError`] when the template fails, which no figure should cause.
    pub fn standalone(&self) -> Result<String, ReportError> {
        standalone::svg(self, self.height)
    }

    /// The plot alone, a whole SVG document without its legend.
    #[must_use]
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Meaning of the colours.
    #[must_use]
    pub fn legend(&self) -> &[LegendEntry] {
        &self.legend
    }
}

/// Meaning of one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    name: String,
    hue: Hue,
    swatch: Swatch,
}

/// The shape of a legend's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A line.
    Line,
    /// A dashed line.
    Dashes,
    /// A filled block.
    Block,
    /// A lightly tinted block.
    Tint,
}

impl LegendEntry {
    pub(crate) fn new(name: &str, hue: Hue, swatch: Swatch) -> Self {
        Self { name: name.to_owned(), hue, swatch }
    }

    /// The series that it stands for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its colour as in the SVG.
    pub(crate) fn colour(&self) -> String {
        self.hue.hex()
    }

    /// The shape of its sample.
    pub(crate) fn swatch(&self) -> Swatch {
        self.swatch
    }
}

#[derive(Template)]
#[template(path = "figure.svg")]
struct Svg<'a> {
    title: &'a str,
    description: &'a str,
    width: u32,
    height: u32,
    body: &'a str,
}
