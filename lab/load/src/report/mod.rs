//! Self-contained HTML reports: charts as inline SVG, tables, a light and a dark look, no script.
//!
//! A [`Page`] is built from [`Section`]s of [`KeyFigure`]s, [`Table`]s and [`Figure`]s; a figure comes from a
//! [`Chart`] (lines, steps, areas and stacks over one x axis, linear, logarithmic or of percentiles), a
//! [`HeatMap`] (how a distribution moves over time) or a [`Strip`] (named states over time). Everything a
//! caller passes in is escaped. Nothing here reads a file, a clock or the network, so a report of the same
//! numbers is the same text.
//!
//! ```
//! use flashweir_load::report::{Chart, Hue, Page, Section, Series};
//! let chart = Chart::new("Requests", "seconds", "requests/s")
//!     .series(Series::line("offered", Hue::Blue, vec![(0.0, Some(1.0)), (1.0, Some(4.0))]));
//! let page = Page::new("A run", "Four requests.").section(Section::new("Rates").figure(chart.figure()?));
//! assert!(page.html()?.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), flashweir_load::report::ReportError>(())
//! ```

mod canvas;
mod chart;
mod chart_drawing;
mod error;
mod figure;
mod heat_map;
mod key_figure;
mod page;
mod palette;
mod scale;
mod series;
mod stack;
mod strip;
mod table;
#[cfg(test)]
mod tests;
mod thinning;

pub use chart::Chart;
pub use error::ReportError;
pub use figure::{Figure, LegendEntry, Swatch};
pub use heat_map::HeatMap;
pub use key_figure::{KeyFigure, Tone};
pub use page::{Page, Section};
pub use palette::Hue;
pub use scale::number;
pub use series::{Point, Series, Style};
pub use strip::{Span, Strip};
pub use table::Table;
