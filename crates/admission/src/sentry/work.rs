//! The work that requests are, learned from the traffic as it comes.
//!
//! How costly each URL class is relative to the others is learned by the pace of many samples
//! ([`pace`](super::pace)): the time of one request says nothing of that request's cost, or work would go
//! with time. Completions times cost is *work*, so that a shift to costlier pages is no loss of throughput.
//! How uneven requests are is counted by class: within one, it cannot be known beforehand.

use super::measured::Variation;
use super::pace::Pace;
use super::sample::Sample;

/// Costs of URL classes, and how uneven requests are.
#[derive(Debug)]
pub(super) struct WorkMeter {
    pace: Pace,
    within: Spread,
    all: Spread,
}

/// Decaying sums of values and their squares, and how many.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    sum: f64,
    squares: f64,
    count: f64,
}

impl WorkMeter {
    pub(super) fn new() -> Self {
        Self { pace: Pace::new(), within: Spread::default(), all: Spread::default() }
    }

    /// Learns from a sample; how much work it completed.
    pub(super) fn observe(&mut self, sample: &Sample) -> f64 {
        let mut work = 0.0;
        let fade = libm::exp(-(sample.completed as f64) / SPREAD_MEMORY);
        self.within.fade(fade);
        self.all.fade(fade);
        for class in &sample.urls {
            let (count, latency_s) = (f64::from(class.count), class.latency_us as f64 / 1e6);
            let unit = self.pace.cost(class.url_class).max(1e-9);
            work += unit * count;
            let squares = class.latency_us_squared as f64 / 1e12;
            self.within.add(latency_s / unit, squares / (unit * unit), count);
            self.all.add(latency_s, squares, count);
        }
        self.pace.observe(sample);
        work
    }

    /// Variation of the work of requests.
    pub(super) fn variation(&self) -> Variation {
        Variation { within: self.within.variation(), all: self.all.variation() }
    }
}

impl Spread {
    fn add(&mut self, sum: f64, squares: f64, count: f64) {
        self.sum += sum;
        self.squares += squares;
        self.count += count;
    }

    fn fade(&mut self, part: f64) {
        self.sum *= part;
        self.squares *= part;
        self.count *= part;
    }

    /// The squared coefficient of variation.
    fn variation(&self) -> f64 {
        if self.count < 2.0 || self.sum <= 0.0 {
            return VARIATION_PRIOR;
        }
        let seen = self.squares * self.count / (self.sum * self.sum) - 1.0;
        let prior = VARIATION_PRIOR * VARIATION_PRIOR_COUNT;
        ((seen * self.count + prior) / (self.count + VARIATION_PRIOR_COUNT))
            .clamp(VARIATION_LEAST, VARIATION_MOST)
    }
}

/// Completions over which it is forgotten how uneven they were.
const SPREAD_MEMORY: f64 = 500.0;
/// Assumed until requests say otherwise, as if this number of requests had: the slow ones are rare and come
/// later.
const VARIATION_PRIOR: f64 = 1.5;
const VARIATION_PRIOR_COUNT: f64 = 6.0;
/// Even requests that are all alike do not complete like clockwork.
const VARIATION_LEAST: f64 = 0.1;
/// Upper bound: more uneven requests are not waited for.
const VARIATION_MOST: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::sample::UrlSum;
    use alloc::vec;
    use flashweir_core::Instant;

    /// Goal: the first dear pages are found as dear as they are. Method: cheap requests of 10 ms whose
    /// times are uneven, and beside each dear one of 400 ms a single cheap one that happened to be quick.
    #[test]
    fn a_dear_page_beside_one_quick_request_is_as_dear_as_it_is() {
        let mut meter = WorkMeter::new();
        let mut work = [0.0; 2];
        for tick in 0..200_u64 {
            let latency_us = if tick % 10 == 9 { 500 } else { 10_500 };
            let sum = |url_class, latency_us| UrlSum { url_class, count: 1, latency_us, ..UrlSum::default() };
            let mut urls = vec![sum(1, latency_us)];
            urls.extend((tick >= 100 && tick % 10 == 9).then(|| sum(2, 400_000)));
            let is_dear = urls.len() > 1;
            let sample = Sample {
                from: Instant::from_millis(20 * tick),
                to: Instant::from_millis(20 * (tick + 1)),
                completed: urls.len() as u64,
                urls,
                ..Sample::default()
            };
            work[usize::from(is_dear)] = meter.observe(&sample);
        }
        let times = work[1] / work[0] - 1.0;
        assert!((30.0..60.0).contains(&times), "{times}");
    }
}
