//! Areas on top of one another: the parts of a whole over time.

use crate::report::{Chart, Point, Series};

/// Moments drawn at most. Beyond it the edges of neighbouring layers would run into one another.
const MOMENTS_MOST: usize = 240;

/// The same chart with no more moments than can be distinguished: means over equally many neighbours, which
/// keep what layers add up to. Lines are averaged alike, or they would not fit the stack; the y label says
/// so.
pub(crate) fn readable(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    let longest = chart.stack.iter().map(|layer| layer.points.len()).max().unwrap_or(0);
    if longest > MOMENTS_MOST {
        chart.y_label = format!("{}, means over {} points", chart.y_label, longest.div_ceil(MOMENTS_MOST));
        for series in chart.stack.iter_mut().chain(&mut chart.series) {
            let neighbours = series.points.len().div_ceil(MOMENTS_MOST).max(1);
            series.points = series.points.chunks(neighbours).map(mean).collect();
        }
    }
    chart
}

/// The mean x, and the mean y of those that were measured.
fn mean(points: &[Point]) -> Point {
    let measured = || points.iter().filter_map(|&(_, y)| y).filter(|y| y.is_finite());
    let count = measured().count();
    let y = (count > 0).then(|| measured().sum::<f64>() / count as f64);
    (points.iter().map(|&(x, _)| x).sum::<f64>() / points.len() as f64, y)
}

/// The upper edge of every layer, lowest layer first, over the same x values: those of all layers together.
/// A layer adds nothing where it has no (finite, positive) value, so that a gap never lifts what lies above.
pub(crate) fn edges(layers: &[Series]) -> Vec<Vec<(f64, f64)>> {
    let mut xs: Vec<f64> = layers
        .iter()
        .flat_map(|layer| layer.points.iter().map(|&(x, _)| x))
        .filter(|x| x.is_finite())
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut sums = vec![0.0; xs.len()];
    layers
        .iter()
        .map(|layer| {
            for &(x, y) in &layer.points {
                let thickness = y.filter(|y| y.is_finite()).unwrap_or(0.0).max(0.0);
                if let Ok(place) = xs.binary_search_by(|at| at.total_cmp(&x)) {
                    sums[place] += thickness;
                }
            }
            xs.iter().copied().zip(sums.iter().copied()).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Hue, Point};

    fn layer(points: &[Point]) -> Series {
        Series::area("layer", Hue::Blue, points.to_vec())
    }

    #[test]
    fn an_hour_of_seconds_is_averaged_and_says_so() {
        let points =
            |scale: f64| (0..3_600).map(|x| (f64::from(x), Some(scale * f64::from(x % 15)))).collect();
        let chart = Chart::new("c", "s", "requests/s")
            .stacked(Series::area("goodput", Hue::Green, points(1.0)))
            .stacked(Series::area("refused", Hue::Amber, points(2.0)))
            .series(Series::line("offered", Hue::Ink, points(3.0)));
        let readable = readable(&chart);
        assert_eq!(readable.y_label, "requests/s, means over 15 points");
        assert_eq!(readable.series[0].points.len(), 240);
        assert_eq!(
            (readable.series[0].points[1], edges(&readable.stack)[1][1]),
            ((22.0, Some(21.0)), (22.0, 21.0))
        );
    }

    #[test]
    fn a_minute_is_drawn_as_it_is() {
        let points: Vec<Point> = (0..60).map(|x| (f64::from(x), Some(1.0))).collect();
        let chart = Chart::new("c", "s", "n").stacked(Series::area("a", Hue::Green, points.clone()));
        assert_eq!((readable(&chart).y_label.as_str(), &readable(&chart).stack[0].points), ("n", &points));
        assert_eq!(mean(&[(1.0, None), (3.0, Some(f64::NAN))]), (2.0, None));
    }

    #[test]
    fn layers_add_up_over_all_their_moments() {
        let layers = [
            layer(&[(0.0, Some(1.0)), (1.0, None), (2.0, Some(3.0))]),
            layer(&[(1.0, Some(5.0)), (2.0, Some(f64::NAN)), (3.0, Some(-4.0)), (f64::NAN, Some(1.0))]),
        ];
        assert_eq!(
            edges(&layers),
            [
                vec![(0.0, 1.0), (1.0, 0.0), (2.0, 3.0), (3.0, 0.0)],
                vec![(0.0, 1.0), (1.0, 5.0), (2.0, 3.0), (3.0, 0.0)],
            ]
        );
        assert!(edges(&[]).is_empty());
    }
}
