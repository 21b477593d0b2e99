//! The time axis that all charts share, and the values on it.

use crate::report::{Chart, Point};
use crate::{LoadResult, Second};

/// The label of every time axis.
pub(super) const SECONDS: &str = "seconds since the first moment of the schedule";

/// Position of the seconds of a run on the axis.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// End of the axis.
    end_s: f64,
    /// Width of a bin when its count becomes a rate.
    bin_width_s: f64,
    bin_s: u64,
    /// There is one bin and no more.
    is_only: bool,
    /// Bins from this second on are not drawn as points.
    drawn_before: u64,
    crowd: Option<(f64, f64)>,
    /// Moments worth a mark on every chart.
    moments: Vec<(String, f64)>,
}

impl Timeline {
    /// The axis of a run: its schedule, and what came after it (further tries) or was cut off it (Ctrl-C).
    pub(super) fn of(result: &LoadResult) -> Self {
        let run = &result.run;
        let bin_s = result.series_bin_s.max(1);
        let bins_end = result.totals.series.last().map(|last| last.second.saturating_add(bin_s));
        let bins_end_s = bins_end.map_or(0.0, |end| end as f64);
        let last_begins_s = bins_end_s - bin_s as f64;
        let has_tries_after = bins_end.is_some() && last_begins_s >= run.length_s;
        let end_s = match bins_end {
            Some(_) if has_tries_after => bins_end_s,
            Some(_) if run.interrupted => bins_end_s.min(run.length_s),
            _ => run.length_s,
        };
        let is_filled = has_tries_after || !run.interrupted && bins_end_s <= run.length_s;
        let is_only = bins_end == Some(bin_s);
        let mut moments = Vec::new();
        if has_tries_after {
            moments.push(("the last people come".to_owned(), run.length_s));
        }
        if let (Some(crowd), Some(recovery)) = (result.crowd, result.recovery)
            && let Some(after_s) = recovery.seconds
        {
            moments.push((format!("recovered {after_s:.0} s after the crowd"), crowd.to_s + after_s));
        }
        Self {
            end_s,
            // Half a second of people is half of a bin, and the only one that there is to show.
            bin_width_s: if is_only { end_s.clamp(1e-3, bin_s as f64) } else { bin_s as f64 },
            bin_s,
            is_only,
            drawn_before: match bins_end {
                Some(end) if !is_filled && !is_only => end - bin_s,
                _ => u64::MAX,
            },
            crowd: result.crowd.map(|crowd| (crowd.from_s, crowd.to_s)),
            moments,
        }
    }

    /// Both ends of the axis.
    pub(super) fn range(&self) -> (f64, f64) {
        (0.0, self.end_s)
    }

    /// From where to where a bin lies.
    pub(super) fn bin(&self, second: &Second) -> (f64, f64) {
        let from = second.second as f64;
        (from, from + self.bin_s as f64)
    }

    /// An empty chart over this axis, the crowd shaded.
    pub(super) fn chart(&self, title: impl Into<String>, y_label: &str) -> Chart {
        let chart = Chart::new(title, SECONDS, y_label).x_range(0.0, self.end_s);
        let chart = match self.crowd {
            Some((from_s, to_s)) => chart.band("the crowd", from_s, to_s),
            None => chart,
        };
        self.moments.iter().fold(chart, |chart, (label, at_s)| chart.marker(label, *at_s))
    }

    /// A value for each bin, drawn at its middle; an only one is drawn from its beginning to its end, or it
    /// would be a dot.
    pub(super) fn points(&self, series: &[Second], value: impl Fn(&Second) -> Option<f64>) -> Vec<Point> {
        if self.is_only {
            let ends = |second| [(0.0, value(second)), (self.bin_width_s, value(second))];
            return series.iter().flat_map(ends).collect();
        }
        let drawn = series.iter().filter(|second| second.second < self.drawn_before);
        drawn.map(|second| (second.second as f64 + self.bin_width_s / 2.0, value(second))).collect()
    }

    /// A count of each bin as a rate per second.
    pub(super) fn rates(&self, series: &[Second], count: impl Fn(&Second) -> u64) -> Vec<Point> {
        self.points(series, |second| Some(count(second) as f64 / self.bin_width_s))
    }

    /// Remarks that a reader of the charts needs about their points.
    pub(super) fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if self.bin_s > 1 {
            notes.push(format!("Each point stands for {} seconds.", self.bin_s));
        }
        if self.drawn_before < u64::MAX {
            notes.push(
                "The last point is left out of the lines: people came in only a part of its time, and it would \
                 look like a fall."
                    .to_owned(),
            );
        }
        (!notes.is_empty()).then(|| notes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;

    fn offered(result: &LoadResult) -> Vec<Point> {
        Timeline::of(result).rates(&result.totals.series, |second| second.offered)
    }

    #[test]
    fn a_last_second_that_is_not_filled_is_no_fall() {
        let mut result = sample::quiet(3, 100);
        assert_eq!(offered(&result).len(), 3);
        result.run.length_s = 2.25;
        let time = Timeline::of(&result);
        assert_eq!(offered(&result), [(0.5, Some(100.0)), (1.5, Some(100.0))]);
        assert!(time.note().is_some_and(|note| note.contains("left out")));
        assert_eq!(time.range(), (0.0, 2.25));
    }

    #[test]
    fn half_a_second_is_a_rate_of_its_own() {
        let mut result = sample::quiet(1, 100);
        result.run.length_s = 0.5;
        assert_eq!(offered(&result), [(0.0, Some(200.0)), (0.5, Some(200.0))]);
    }

    #[test]
    fn wide_bins_are_still_rates() {
        let mut result = sample::quiet(2, 100);
        result.series_bin_s = 4;
        result.totals.series[1].second = 4;
        result.run.length_s = 8.0;
        assert_eq!(offered(&result), [(2.0, Some(25.0)), (6.0, Some(25.0))]);
        assert_eq!(Timeline::of(&result).note().as_deref(), Some("Each point stands for 4 seconds."));
    }

    #[test]
    fn the_axis_follows_retries_after_the_schedule_and_ends_where_it_was_cut() {
        let mut result = sample::quiet(10, 100);
        result.run.length_s = 8.0;
        assert_eq!((Timeline::of(&result).range().1, offered(&result).len()), (10.0, 10));
        result.run.length_s = 3_600.0;
        result.run.interrupted = true;
        assert_eq!((Timeline::of(&result).range().1, offered(&result).len()), (10.0, 9));
    }

    #[test]
    fn nobody_is_an_axis_too() {
        let result = sample::quiet(0, 0);
        assert!(offered(&result).is_empty());
        assert!(Timeline::of(&result).note().is_none());
    }
}
