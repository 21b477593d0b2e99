//! Demand of one application: rates over several windows, service times, variation, and how much goes unmet.
//!
//! Rates are of requests *offered*, refused ones included: an autoscaler that sees admitted load finds a calm
//! system exactly while requests are refused. **Cost** O([`DEMAND_INTERVALS`]) for each rate, 10 kB an
//! application.

use crate::sample::{ApplicationSample, Moments};
use alloc::collections::VecDeque;
use flashweir_core::limits::{CLASSES, DEMAND_INTERVALS};
use flashweir_core::{Duration, Instant};

/// Requests a second by class.
pub(crate) type ClassRates = [f64; CLASSES];

/// Intervals are kept at least this long: with [`DEMAND_INTERVALS`] of them the longest window fits.
const BUCKET_MIN: Duration = Duration::from_secs(5);
/// Service times, gaps and the ratio of quantile and mean have this memory: short against a change of the
/// mix, long against the noise of an interval.
const MEMORY_S: f64 = 60.0;

/// Measured demand of one application.
#[derive(Debug)]
pub(crate) struct Demand {
    /// Classes that the application has; what is counted of others is left out.
    classes: usize,
    buckets: VecDeque<Bucket>,
    open: Bucket,
    service: [DecayingMoments; CLASSES],
    gaps: DecayingMoments,
    quantile_factor: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    from: Instant,
    to: Instant,
    offered: [u64; CLASSES],
    admitted: u64,
    refused: u64,
}

impl Demand {
    /// Of an application with this many classes, [`CLASSES`] at most.
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            classes: classes.min(CLASSES),
            buckets: VecDeque::new(),
            open: Bucket::default(),
            service: Default::default(),
            gaps: DecayingMoments::default(),
            quantile_factor: None,
        }
    }

    pub(crate) fn observe(&mut self, sample: &ApplicationSample) {
        for (class, counts) in sample.classes.iter().enumerate().take(self.classes) {
            self.open.offered[class] += counts.offered;
            self.open.admitted += counts.admitted;
            self.open.refused += counts.refused;
            self.service[class].push(&counts.service);
        }
        self.gaps.push(&sample.gaps);
        if let Some(factor) = sample.quantile_factor.filter(|factor| factor.is_finite()) {
            self.quantile_factor = Some(factor);
        }
    }

    /// Ends the interval that began with the last call. Returns the requests offered in it and its length.
    pub(crate) fn close(&mut self, now: Instant) -> (f64, Duration) {
        let span = now.saturating_since(self.open.to);
        let memory = libm::exp(-span.as_secs_f64() / MEMORY_S);
        self.service.iter_mut().chain([&mut self.gaps]).for_each(|moments| moments.decay(memory));
        let offered: u64 = self.open.offered.iter().sum();
        let ended = Bucket { from: self.open.to, to: now, ..self.open };
        match self.buckets.back_mut().filter(|last| last.to.saturating_since(last.from) < BUCKET_MIN) {
            Some(last) => last.add(&ended),
            None => self.buckets.push_back(ended),
        }
        if self.buckets.len() > DEMAND_INTERVALS {
            self.buckets.pop_front();
        }
        self.open = Bucket { from: now, to: now, ..Bucket::default() };
        (offered as f64, span)
    }

    /// Rates of the classes from `oldest` to `newest` before the last [`close`](Self::close), whole
    /// intervals.
    pub(crate) fn class_rates(&self, now: Instant, oldest: Duration, newest: Duration) -> ClassRates {
        let mut rates = [0.0; CLASSES];
        let mut seconds = 0.0;
        for bucket in self.within(now, oldest, newest) {
            seconds += bucket.to.saturating_since(bucket.from).as_secs_f64();
            let offered = &bucket.offered[..self.classes];
            rates.iter_mut().zip(offered).for_each(|(rate, &offered)| *rate += offered as f64);
        }
        rates.map(|count| if seconds > 0.0 { count / seconds } else { 0.0 })
    }

    pub(crate) fn rate_rps(&self, now: Instant, oldest: Duration, newest: Duration) -> f64 {
        self.class_rates(now, oldest, newest).iter().sum()
    }

    /// The part of the requests of this last time that was refused.
    pub(crate) fn refused_share(&self, now: Instant, window: Duration) -> f64 {
        let of = |count: fn(&Bucket) -> u64| self.within(now, window, Duration::ZERO).map(count).sum::<u64>();
        let (refused, admitted) = (of(|bucket| bucket.refused), of(|bucket| bucket.admitted));
        if refused == 0 { 0.0 } else { refused as f64 / (refused + admitted) as f64 }
    }

    /// Time that the counts cover.
    pub(crate) fn covers(&self, now: Instant) -> Duration {
        self.buckets.front().map_or(Duration::ZERO, |oldest| now.saturating_since(oldest.from))
    }

    /// Mean and squared variation of a class's service time; of a class without completions, those of all
    /// classes together.
    pub(crate) fn service(&self, class: usize) -> Option<(f64, f64)> {
        self.service[class].mean_and_variation().or_else(|| {
            let mut all = DecayingMoments::default();
            self.service.iter().for_each(|moments| all.add(moments));
            all.mean_and_variation()
        })
    }

    /// Squared coefficient of variation of the gaps between arrivals; that of Poisson arrivals until it is
    /// measured.
    pub(crate) fn gap_variation(&self) -> f64 {
        self.gaps.mean_and_variation().map_or(1.0, |(_, variation)| variation)
    }

    /// 95th percentile of response times over their mean (repair C-5), that of exponential times until it is
    /// measured.
    pub(crate) fn quantile_factor(&self) -> f64 {
        const OF_EXPONENTIAL: f64 = 3.0;
        self.quantile_factor.unwrap_or(OF_EXPONENTIAL).clamp(1.0, 6.0)
    }

    fn within(&self, now: Instant, oldest: Duration, newest: Duration) -> impl Iterator<Item = &Bucket> {
        let newest_to = now - newest;
        let newest_first = self.buckets.iter().rev().skip_while(move |bucket| bucket.to > newest_to);
        newest_first.take_while(move |bucket| now.saturating_since(bucket.to) < oldest)
    }
}

impl Bucket {
    fn add(&mut self, later: &Self) {
        self.to = later.to;
        self.offered.iter_mut().zip(later.offered).for_each(|(sum, offered)| *sum += offered);
        self.admitted += later.admitted;
        self.refused += later.refused;
    }
}

/// Sums over values that lose weight with time.
#[derive(Clone, Copy, Debug, Default)]
struct DecayingMoments {
    count: f64,
    sum_s: f64,
    squares_s2: f64,
}

impl DecayingMoments {
    /// Sums that are no numbers are left out.
    fn push(&mut self, moments: &Moments) {
        let Moments { count, sum_s, squares_s2 } = *moments;
        if (sum_s + squares_s2).is_finite() && sum_s >= 0.0 && squares_s2 >= 0.0 {
            self.add(&Self { count: count as f64, sum_s, squares_s2 });
        }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.squares_s2 += other.squares_s2;
    }

    fn decay(&mut self, memory: f64) {
        *self = Self {
            count: self.count * memory,
            sum_s: self.sum_s * memory,
            squares_s2: self.squares_s2 * memory,
        };
    }

    fn mean_and_variation(&self) -> Option<(f64, f64)> {
        let mean = self.sum_s / self.count;
        let variation = self.squares_s2 / self.count / (mean * mean) - 1.0;
        (mean > 0.0 && variation.is_finite()).then_some((mean, variation.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::ClassCounts;
    use alloc::vec;

    fn sample(offered: u64, refused: u64) -> ApplicationSample {
        let service = Moments { count: 10, sum_s: 0.1, squares_s2: 0.002 };
        let class = ClassCounts { offered, admitted: offered - refused, refused, service };
        ApplicationSample { classes: vec![ClassCounts::default(), class], ..ApplicationSample::default() }
    }

    /// Goal: rates are those of whole intervals in the window, for any length of an interval.
    #[test]
    fn rates_are_of_the_window_asked_for() {
        for step_s in [1, 5, 10] {
            let mut demand = Demand::new(2);
            let seconds = Duration::from_secs;
            for at_s in (step_s..=100).step_by(step_s as usize) {
                demand.observe(&sample(
                    if at_s > 60 { 30 } else { 10 } * step_s,
                    if at_s > 90 { step_s } else { 0 },
                ));
                demand.close(Instant::from_secs(at_s));
            }
            let now = Instant::from_secs(100);
            let rate = |oldest, newest| demand.rate_rps(now, seconds(oldest), seconds(newest));
            assert_eq!((rate(10, 0), rate(40, 0), rate(80, 40)), (30.0, 30.0, 10.0), "{step_s}");
            assert_eq!(demand.class_rates(now, seconds(10), Duration::ZERO)[..3], [0.0, 30.0, 0.0]);
            assert!((demand.refused_share(now, seconds(10)) - 1.0 / 30.0).abs() < 1e-9);
            assert_eq!(demand.refused_share(now - seconds(10), seconds(10)), 0.0);
            assert_eq!(rate(10, 200), 0.0);
            // A class that completed nothing is like the others.
            let (mean_s, variation) = demand.service(0).unwrap();
            assert!((mean_s - 0.01).abs() < 1e-9 && (variation - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn nothing_and_nonsense_are_survived() {
        let mut demand = Demand::new(2);
        assert_eq!(demand.rate_rps(Instant::ZERO, Duration::MAX, Duration::ZERO), 0.0);
        let odd = Moments { count: 1, sum_s: f64::NAN, squares_s2: f64::INFINITY };
        let class = ClassCounts { service: odd, ..ClassCounts::default() };
        demand.observe(&ApplicationSample {
            classes: vec![class; 40],
            gaps: odd,
            ..ApplicationSample::default()
        });
        demand.close(Instant::ZERO);
        demand.close(Instant::ZERO);
        assert_eq!((demand.service(0), demand.gap_variation()), (None, 1.0));
        assert_eq!(demand.rate_rps(Instant::ZERO, Duration::MAX, Duration::ZERO), 0.0);
    }

    /// Goal: a variation is never negative, also where a sample's sums belong to no set of times. Method:
    /// two times with a sum of one second, whose squares are given as zero.
    #[test]
    fn a_variation_is_never_negative() {
        let mut demand = Demand::new(1);
        let impossible = Moments { count: 2, sum_s: 1.0, squares_s2: 0.0 };
        let class = ClassCounts { service: impossible, ..ClassCounts::default() };
        demand.observe(&ApplicationSample {
            classes: vec![class],
            gaps: impossible,
            ..ApplicationSample::default()
        });
        assert_eq!((demand.service(0), demand.gap_variation()), (Some((0.5, 0.0)), 0.0));
    }
}
