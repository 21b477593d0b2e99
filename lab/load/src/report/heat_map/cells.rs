//! From columns of cells, however many and however fine, to a grid that fits the plot.

use super::{Cell, HeatMap};
use crate::report::scale::Scale;

/// Columns at most: with more they would be narrower than the eye can follow.
pub(super) const COLUMNS_MOST: f64 = 240.0;
/// Rows of the grid, for any range of values.
pub(super) const ROWS: usize = 65;

/// From this count on a cell that straddles two rows is shared out between them: rows that happen to hold two
/// cells beside rows that hold one would look like stripes.
const SPREAD_FROM: u64 = 8;
/// The values shown span at least this factor: in a closer range cells would be higher than rows.
const RANGE_LEAST: f64 = 100.0;

/// Counts in equal columns and rows.
#[derive(Debug, PartialEq)]
pub(super) struct Grid {
    /// Beginning of the first column on the x axis.
    pub(super) from: f64,
    /// Maximum end of the last column.
    pub(super) to: f64,
    /// Width of every column on the x axis.
    pub(super) width: f64,
    /// Counts of every column, the lowest row first.
    pub(super) columns: Vec<[f64; ROWS]>,
}

impl Grid {
    /// Sorts every cell into its place. O(cells + columns).
    pub(super) fn new(map: &HeatMap, y: &Scale) -> Self {
        let (from, to) = x_range(map);
        let width = column_width(map, to - from);
        let count = ((to - from) / width - 1e-6).ceil().clamp(1.0, COLUMNS_MOST) as usize;
        let mut columns = vec![[0.0; ROWS]; count];
        for column in &map.columns {
            let start = (column.from - from) / width;
            let end = (column.to - from) / width;
            for (place, share) in overlaps(start, end, count) {
                column.cells.iter().for_each(|cell| add(&mut columns[place], cell, share, y));
            }
        }
        Self { from, to, width, columns }
    }

    /// The highest count of all.
    pub(super) fn highest(&self) -> f64 {
        self.columns.iter().flatten().copied().fold(0.0, f64::max)
    }
}

/// The values to show: those there are, the references to compare them with, and some room around them.
pub(super) fn shown(map: &HeatMap, range: (f64, f64)) -> (f64, f64) {
    let references = map.references.iter().map(|&(_, _, y)| y).filter(|y| *y > 0.0 && y.is_finite());
    let (low, high) = references.fold(range, |(low, high), y| (low.min(y), high.max(y)));
    let widening = (RANGE_LEAST / (high / low)).max(1.0).sqrt();
    (low / widening, high * widening)
}

/// The values from the lowest to the highest cell; `None` without cells.
pub(super) fn y_range(map: &HeatMap) -> Option<(f64, f64)> {
    let cells = || map.columns.iter().flat_map(|column| &column.cells);
    // Zero has no place on a logarithmic axis: a cell from there shows its upper half.
    let low = cells().map(|cell| if cell.low > 0.0 { cell.low } else { cell.high / 2.0 });
    let (low, high) = (low.fold(f64::INFINITY, f64::min), cells().map(|cell| cell.high).fold(0.0, f64::max));
    (low < high).then_some((low, high))
}

fn x_range(map: &HeatMap) -> (f64, f64) {
    let ends = map.columns.iter().map(|column| (column.from, column.to));
    let measured = ends.reduce(|(low, high), (from, to)| (low.min(from), high.max(to)));
    map.x_range.filter(|(from, to)| from < to).or(measured).unwrap_or((0.0, 1.0))
}

/// A whole multiple of the narrowest column, so that each drawn column adds up equally many: anything else
/// would show stripes that were not measured.
fn column_width(map: &HeatMap, range: f64) -> f64 {
    let narrowest = map.columns.iter().map(|column| column.to - column.from).fold(range, f64::min);
    narrowest * (range / narrowest / COLUMNS_MOST - 1e-6).ceil().max(1.0)
}

/// The places that `start..end` touches among `0..count`, and how much of it lies in each (0 to 1).
fn overlaps(start: f64, end: f64, count: usize) -> impl Iterator<Item = (usize, f64)> {
    // A hair of the neighbour is rounding, not time spent there.
    let first = (start + 1e-6).floor().max(0.0) as usize;
    let last = ((end - 1e-6).ceil().max(0.0) as usize).min(count);
    (first..last).map(move |place| {
        let (low, high) = (start.max(place as f64), end.min(place as f64 + 1.0));
        (place, ((high - low) / (end - start)).clamp(0.0, 1.0))
    })
}

fn add(rows: &mut [f64; ROWS], cell: &Cell, share: f64, y: &Scale) {
    let row = |value: f64| (y.share(value) * ROWS as f64).clamp(0.0, ROWS as f64);
    let (low, high) = (row(cell.low), row(cell.high));
    let count = cell.count as f64 * share;
    if high - low <= 1.0 && cell.count < SPREAD_FROM {
        // A few values must stay one dot, and not become two halves.
        rows[((low + high) / 2.0).min(ROWS as f64 - 1.0) as usize] += count;
    } else {
        overlaps(low, high, ROWS).for_each(|(place, part)| rows[place] += count * part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Hue;

    fn map(seconds: usize, width: f64) -> HeatMap {
        (0..seconds).fold(HeatMap::new("m", "s", "ms", "requests"), |map, second| {
            let from = second as f64 * width;
            map.column(from, from + width, [(1.0, 1.0625, 10), (80.0, 85.0, 2), (0.0, 0.001, 1)])
        })
    }

    fn grid(map: &HeatMap) -> Grid {
        let (low, high) = shown(map, y_range(map).expect("there are cells"));
        Grid::new(map, &Scale::log_between(low, high, (260, 0)))
    }

    #[test]
    fn nothing_is_lost_or_counted_twice() {
        for (seconds, width) in [(1, 1.0), (7, 0.1), (240, 1.0), (241, 1.0), (3_599, 1.0), (90, 10.0)] {
            let grid = grid(&map(seconds, width));
            let total: f64 = grid.columns.iter().flatten().sum();
            assert!((total - 13.0 * seconds as f64).abs() < 1e-6, "{seconds} columns: {total}");
            assert!(grid.columns.len() <= 240, "{seconds} columns: {}", grid.columns.len());
        }
    }

    #[test]
    fn neighbours_are_added_up_evenly() {
        // 600 seconds in 200 columns of exactly three, not in 240 of two or three.
        let grid = grid(&map(600, 1.0));
        assert_eq!((grid.columns.len(), grid.width), (200, 3.0));
        let sums: Vec<f64> = grid.columns.iter().map(|column| column.iter().sum()).collect();
        assert!(sums.iter().all(|sum| (sum - 39.0).abs() < 1e-6), "{sums:?}");
    }

    #[test]
    fn equal_values_are_one_dot_wherever_they_lie() {
        for low in [16.0, 17.0, 24.0, 31.0, 1_024.0, 3e6] {
            let high = low + (low / 16.0f64).log2().floor().exp2();
            let map = HeatMap::new("m", "s", "µs", "requests").column(0.0, 1.0, [(low, high, 7)]);
            assert_eq!(grid(&map).highest(), 7.0, "from {low} to {high}");
        }
    }

    #[test]
    fn a_narrow_cell_is_one_dot_and_a_wide_one_is_spread() {
        let one =
            HeatMap::new("m", "s", "ms", "requests").column(0.0, 1.0, [(1.0, 1.06, 3), (10.0, 10_000.0, 30)]);
        let column = grid(&one).columns[0];
        assert_eq!(column.iter().filter(|&&count| count >= 3.0).count(), 1);
        assert!(column.iter().filter(|&&count| count > 0.0 && count < 1.0).count() > 40);
    }

    #[test]
    fn a_reference_is_never_off_the_axis() {
        let map = map(1, 1.0).reference("target", Hue::Blue, 5_000.0).reference("none", Hue::Blue, f64::NAN);
        assert_eq!(shown(&map, (1.0, 85.0)), (1.0, 5_000.0));
        assert_eq!(shown(&map, (1.0, 1e6)), (1.0, 1e6));
        let close = shown(&HeatMap::new("m", "s", "ms", "requests"), (5.0, 5.0));
        assert!((close.0 - 0.5).abs() < 1e-9 && (close.1 - 50.0).abs() < 1e-9, "{close:?}");
    }

    #[test]
    fn a_wide_column_is_spread_over_those_it_covers() {
        let mixed = HeatMap::new("m", "s", "ms", "requests").column(0.0, 1.0, [(1.0, 1.06, 5)]).column(
            1.0,
            5.0,
            [(1.0, 1.06, 40)],
        );
        let sums: Vec<f64> = grid(&mixed).columns.iter().map(|column| column.iter().sum()).collect();
        assert_eq!(sums, [5.0, 10.0, 10.0, 10.0, 10.0]);
    }

    #[test]
    fn columns_outside_the_axis_are_not_drawn() {
        let grid = grid(&map(10, 1.0).x_range(3.5, 6.0));
        assert_eq!(grid.columns.len(), 3);
        assert!(grid.columns[0].iter().sum::<f64>() > 12.9);
    }

    #[test]
    fn unsound_cells_are_left_out() {
        let nan = f64::NAN;
        let cells = [(1.0, nan, 1), (nan, 2.0, 1), (2.0, 1.0, 1), (1.0, 2.0, 0), (-1.0, 2.0, 1)];
        let map = HeatMap::new("m", "s", "ms", "requests").column(0.0, 1.0, cells).column(2.0, 2.0, cells);
        assert_eq!((y_range(&map), map.columns.len()), (None, 1));
    }
}
