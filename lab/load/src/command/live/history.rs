//! The last minutes of a run, as far as the view shows them.

use crate::Progress;

/// Length of the view's history, seconds.
const WINDOW_S: f64 = 120.0;
/// A run that has just begun is shown as if it were this long, seconds.
const WINDOW_LEAST_S: f64 = 10.0;
/// Moments kept at most: more than five a second come only from a caller that ignores its own pace.
const MOMENTS: usize = 1_200;

/// Points of lines, oldest first: seconds since the start and the value.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) offered: Vec<(f64, f64)>,
    pub(super) goodput: Vec<(f64, f64)>,
    pub(super) refused: Vec<(f64, f64)>,
    pub(super) p50_ms: Vec<(f64, f64)>,
    pub(super) p99_ms: Vec<(f64, f64)>,
    now_s: f64,
    length_s: f64,
}

impl History {
    /// Takes a moment, and forgets those that have left the window.
    pub(super) fn gather(&mut self, progress: &Progress) {
        self.now_s = progress.elapsed.as_secs_f64();
        self.length_s = progress.length.as_secs_f64();
        let (now_s, last) = (self.now_s, &progress.last_second);
        self.offered.push((now_s, last.offered as f64));
        self.goodput.push((now_s, last.goodput as f64));
        self.refused.push((now_s, last.refused as f64));
        self.p50_ms.extend(progress.last_second_p50_ms.map(|ms| (now_s, ms)));
        self.p99_ms.extend(progress.last_second_p99_ms.map(|ms| (now_s, ms)));
        let (from, _) = self.window();
        for line in
            [&mut self.offered, &mut self.goodput, &mut self.refused, &mut self.p50_ms, &mut self.p99_ms]
        {
            let beyond = line.len().saturating_sub(MOMENTS);
            let left = line.iter().take_while(|(at, _)| *at < from).count();
            line.drain(..left.max(beyond));
        }
    }

    /// The seconds shown: the whole of a short run, the last of a long one.
    pub(super) fn window(&self) -> (f64, f64) {
        let whole = self.length_s.clamp(WINDOW_LEAST_S, WINDOW_S);
        let to = self.now_s.max(whole);
        (to - whole, to)
    }

    /// The highest value of some lines, at least `least`, rounded up to a number that is easy to read.
    pub(super) fn top(lines: &[&[(f64, f64)]], least: f64) -> f64 {
        let highest =
            lines.iter().flat_map(|line| line.iter()).map(|(_, value)| *value).fold(least, f64::max);
        let magnitude = 10f64.powf(highest.log10().floor());
        let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
        steps.map(|step| step * magnitude).into_iter().find(|top| *top >= highest).unwrap_or(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;
    use std::time::Duration;

    #[test]
    fn an_hour_keeps_two_minutes() {
        let mut history = History::default();
        for second in 0..3_600 {
            let progress = Progress { length: Duration::from_secs(3_600), ..sample::progress(second) };
            history.gather(&progress);
        }
        assert_eq!(history.window(), (3_479.0, 3_599.0));
        assert_eq!((history.offered.len(), history.p99_ms.len()), (121, 121));
        (0..5_000).for_each(|_| history.gather(&sample::progress(3_600)));
        assert_eq!(history.offered.len(), MOMENTS);
    }

    #[test]
    fn the_top_of_an_axis_is_easy_to_read() {
        let top = |value| History::top(&[&[(0.0, value)], &[]], 1.0);
        assert_eq!(
            [top(0.0), top(1.0), top(101.0), top(740.0), top(99_000.0)],
            [1.0, 1.0, 150.0, 800.0, 100_000.0]
        );
    }

    #[test]
    fn a_short_run_is_shown_whole() {
        let mut history = History::default();
        history.gather(&sample::progress(3));
        assert_eq!(history.window(), (0.0, 40.0));
    }
}
