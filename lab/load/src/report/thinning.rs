//! Fewer points for the same picture: an hour of seconds has more points than a plot has pixels.

use crate::report::canvas::Pixel;

/// Keeps, of neighbours in the same pixel column, the first, the highest, the lowest and the last: the line
/// through them covers the same pixels, with at most four points a column. In order of x; O(points).
pub(crate) fn thin(points: Vec<Pixel>) -> Vec<Pixel> {
    points.chunk_by(|a, b| a.0 == b.0).flat_map(column).collect()
}

fn column(points: &[Pixel]) -> Vec<Pixel> {
    if points.len() <= 4 {
        return points.to_vec();
    }
    let at = |place: usize| points[place].1;
    let places = 0..points.len();
    let highest = places.clone().min_by_key(|&place| at(place)).unwrap_or(0);
    let lowest = places.max_by_key(|&place| at(place)).unwrap_or(0);
    let mut kept = vec![0, highest.min(lowest), highest.max(lowest), points.len() - 1];
    kept.dedup();
    kept.into_iter().map(|place| points[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_column_keeps_its_ends_and_extremes() {
        let points = vec![(1, 5), (2, 4), (2, 9), (2, 3), (2, 6), (2, 1), (2, 7), (3, 5)];
        assert_eq!(thin(points), [(1, 5), (2, 4), (2, 9), (2, 1), (2, 7), (3, 5)]);
    }

    #[test]
    fn what_is_sparse_or_flat_stays_right() {
        assert_eq!(thin(vec![(1, 5), (1, 6), (4, 2)]), [(1, 5), (1, 6), (4, 2)]);
        assert_eq!(thin(vec![(1, 5); 900]), [(1, 5), (1, 5)]);
        assert_eq!(thin(Vec::new()), []);
    }
}
