//! Heat map: a distribution over time, time across, values up, counts as colour.

mod cells;
mod colours;
mod drawing;

pub(crate) use colours::dark_rules;

use crate::report::{Figure, Hue, ReportError};

/// Counts over time and a logarithmic range of values (latencies), coloured on a logarithmic scale: a slow
/// minority of one in a thousand is as visible as the crowd.
///
/// At most 240 columns and 65 rows are drawn: neighbours in time are added up, and cells finer than a row
/// share it.
///
/// ```
/// use flashweir_load::report::HeatMap;
/// let map = HeatMap::new("Latency", "seconds", "ms", "requests")
///     .column(0.0, 1.0, [(1.0, 1.06, 900), (8.0, 8.5, 3)])
///     .column(1.0, 2.0, [(1.0, 1.06, 850)]);
/// assert!(map.figure()?.svg().contains("1.0 to 8.5 ms"));
/// # Ok::<(), flashweir_load::report::ReportError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeatMap {
    title: String,
    x_label: String,
    y_label: String,
    counted: String,
    x_range: Option<(f64, f64)>,
    columns: Vec<Column>,
    references: Vec<(String, Hue, f64)>,
}

/// Counts of one stretch of the x axis.
#[derive(Clone, Debug)]
struct Column {
    from: f64,
    to: f64,
    cells: Vec<Cell>,
}

/// Number of values from `low` to below `high`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    low: f64,
    high: f64,
    count: u64,
}

impl HeatMap {
    /// An empty map. Labels name the quantity and its unit; `counted` says what the counts are of
    /// ("requests").
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
        counted: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            counted: counted.into(),
            x_range: None,
            columns: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Fixes the x axis, so that it lines up with the charts around it; otherwise it spans the columns.
    #[must_use]
    pub fn x_range(mut self, from: f64, to: f64) -> Self {
        self.x_range = Some((from, to));
        self
    }

    /// Adds what was counted from `from` to `to` on the x axis: cells of (low, high, count), where a cell
    /// counts values from `low` to below `high`. Cells that are empty, inverted or not finite are left out,
    /// columns likewise; several columns over the same stretch add up.
    #[must_use]
    pub fn column(mut self, from: f64, to: f64, cells: impl IntoIterator<Item = (f64, f64, u64)>) -> Self {
        if from < to && (to - from).is_finite() {
            let sound = |&(low, high, count): &(f64, f64, u64)| {
                low >= 0.0 && low < high && high.is_finite() && count > 0
            };
            let cells = cells.into_iter().filter(sound).map(|(low, high, count)| Cell { low, high, count });
            self.columns.push(Column { from, to, cells: cells.collect() });
        }
        self
    }

    /// Adds a dashed horizontal line, such as a target.
    #[must_use]
    pub fn reference(mut self, name: impl Into<String>, hue: Hue, y: f64) -> Self {
        self.references.push((name.into(), hue, y));
        self
    }

    /// The drawn map with its colour scale and legend.
    ///
    /// # Errors
    /// [`ReportError`] when the SVG backend fails, which no numbers passed in should cause.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        drawing::figure(self)
    }
}
