//! What a request takes when it is alone, learned from the traffic as it comes.
//!
//! *Between URL classes:* how costly each is relative to the others, from latencies of the same time (what slows one
//! down slows all). Completions times cost is *work*, so that a shift to costlier pages is no loss of throughput.
//!
//! *Altogether:* by Little's law, requests in flight over work done per second is the time that one unit of work takes
//! at that level; at levels so low that nobody waits for anybody, that is the inherent time. Levels are told apart by
//! how many were in flight, so no request's own latency is needed and none is censored.

use super::learner::Learner;
use super::look::LowLevel;
use super::measured::Variation;
use super::pace::Pace;
use super::sample::Sample;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;
use flashweir_measure::histogram::BUCKETS;

/// Costs of classes, and what the origin did at each level.
#[derive(Debug)]
pub(super) struct Inherent {
    /// Mean cost of each class in units of work, and how many requests it rests on.
    costs: Vec<Cost>,
    /// Costs by the pace of many samples, for the learner with a model: by that of one sample, the first dear page beside few cheap ones
    /// seems many times dearer than it is, and stays so.
    pace: Option<Pace>,
    levels: Vec<Level>,
    within: Spread,
    all: Spread,
    /// For how long nobody had to wait.
    calm_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mean: f64,
    count: f64,
}

/// Decaying sums of values and their squares, and how many.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    sum: f64,
    squares: f64,
    count: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    span_s: f64,
    in_flight_s: f64,
    work: f64,
    completed: f64,
}

impl Inherent {
    pub(super) fn new(learner: Learner) -> Self {
        Self {
            costs: vec![Cost::default(); URL_CLASSES],
            pace: (learner == Learner::Model).then(Pace::new),
            levels: vec![Level::default(); BUCKETS],
            within: Spread::default(),
            all: Spread::default(),
            calm_s: 0.0,
        }
    }

    /// Learns from a sample; how much work it completed.
    pub(super) fn observe(&mut self, sample: &Sample) -> f64 {
        let stretch = self.stretch(sample);
        let mut work = 0.0;
        let fade = libm::exp(-(sample.completed as f64) / SPREAD_MEMORY);
        self.within.fade(fade);
        self.all.fade(fade);
        for class in &sample.urls {
            let Some(cost) = self.costs.get_mut(usize::from(class.url_class)) else { continue };
            let (count, latency_s) = (f64::from(class.count), class.latency_us as f64 / 1e6);
            cost.count = (cost.count + count).min(COST_MEMORY);
            cost.mean += (latency_s / count / stretch - cost.mean) * (count / cost.count).min(1.0);
            let unit = self.pace.as_ref().map_or(cost.mean, |pace| pace.cost(class.url_class)).max(1e-9);
            work += unit * count;
            let squares = class.latency_us_squared as f64 / 1e12;
            self.within.add(latency_s / unit, squares / (unit * unit), count);
            self.all.add(latency_s, squares, count);
        }
        // What a request took tells nothing of its own cost: work would go with time.
        if let Some(pace) = &mut self.pace {
            pace.observe(sample);
        }
        self.observe_levels(sample, work);
        work
    }

    /// What a unit of work takes when it is alone, seconds; `None` until enough was seen at low levels.
    pub(super) fn low_level(&self) -> Option<LowLevel> {
        let mut known = Level::default();
        for level in self.levels.iter().skip(1).filter(|level| level.completed > 0.0) {
            if known.tells_something() && known.is_faster_than(level) {
                break;
            }
            known.add(level);
            if known.tells_something() && known.completed >= LOW_LEVEL_ENOUGH {
                break;
            }
        }
        let error = libm::sqrt(self.all.variation() / known.completed.max(1.0));
        (known.tells_something() && error < LOW_LEVEL_ERROR)
            .then(|| LowLevel { alone_s: known.unit_s(), span_s: known.span_s })
    }

    /// How uneven requests are.
    pub(super) fn variation(&self) -> Variation {
        Variation { within: self.within.variation(), all: self.all.variation() }
    }

    /// How many times longer than their cost requests took, over the classes that are known; 1 if none is.
    fn stretch(&self, sample: &Sample) -> f64 {
        let (mut latency_s, mut cost_s) = (0.0, 0.0);
        for class in &sample.urls {
            let known = self.costs.get(usize::from(class.url_class)).copied().unwrap_or_default();
            if known.count > 0.0 {
                latency_s += class.latency_us as f64 / 1e6;
                cost_s += known.mean * f64::from(class.count);
            }
        }
        if cost_s > 0.0 { (latency_s / cost_s).max(1e-6) } else { 1.0 }
    }

    fn observe_levels(&mut self, sample: &Sample, work: f64) {
        let span_s = sample.to.saturating_since(sample.from).as_secs_f64();
        let fade = libm::exp(-span_s / LEVEL_MEMORY_S);
        self.levels.iter_mut().for_each(|level| level.fade(fade));
        // While somebody waits, and for a while after, few are in flight only when the slow ones happen to be gone.
        self.calm_s = if sample.waiting_nanos > 0 || sample.shed > 0 { 0.0 } else { self.calm_s + span_s };
        let usual_s = self.all.sum / self.all.count.max(1e-9);
        if self.calm_s < CALM * usual_s * (1.0 + self.all.variation()) {
            return;
        }
        let each = work / (sample.completed as f64).max(1.0);
        for seen in &sample.levels {
            let Some(level) = self.levels.get_mut(usize::from(seen.level)) else { continue };
            level.add(&Level {
                span_s: seen.nanos as f64 / 1e9,
                in_flight_s: seen.in_flight_nanos as f64 / 1e9,
                work: seen.completed as f64 * each,
                completed: seen.completed as f64,
            });
        }
    }
}

impl Level {
    fn add(&mut self, other: &Self) {
        self.span_s += other.span_s;
        self.in_flight_s += other.in_flight_s;
        self.work += other.work;
        self.completed += other.completed;
    }

    fn unit_s(&self) -> f64 {
        self.in_flight_s / self.work
    }

    /// Enough were completed, over a time of several generations of requests: those that began together end together.
    fn tells_something(&self) -> bool {
        let generations = self.span_s * self.completed / self.in_flight_s.max(1e-12);
        self.completed >= LOW_LEVEL_LEAST && generations >= LOW_LEVEL_GENERATIONS
    }

    /// Whether requests are in each other's way at the other level, beyond doubt.
    fn is_faster_than(&self, other: &Self) -> bool {
        let error = libm::sqrt(1.0 / self.completed + 1.0 / other.completed);
        other.unit_s() > self.unit_s() * (1.15 + 2.0 * error)
    }

    fn fade(&mut self, part: f64) {
        self.span_s *= part;
        self.in_flight_s *= part;
        self.work *= part;
        self.completed *= part;
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

/// Requests over which a class's cost is averaged.
const COST_MEMORY: f64 = 2_000.0;
const SPREAD_MEMORY: f64 = 500.0;
/// What happened at a level is forgotten over so many seconds.
const LEVEL_MEMORY_S: f64 = 60.0;
/// Completions at low levels that make an estimate (within a third), and that make a good one.
const LOW_LEVEL_LEAST: f64 = 10.0;
/// Mean latencies (times one and their variation) after which an origin is as if nobody had ever waited.
const CALM: f64 = 2.0;
const LOW_LEVEL_GENERATIONS: f64 = 5.0;
/// The relative standard error, at most, of what low levels tell.
const LOW_LEVEL_ERROR: f64 = 0.25;
const LOW_LEVEL_ENOUGH: f64 = 1_000.0;
/// Assumed until requests say otherwise, as if so many had: the slow ones are rare and come later.
const VARIATION_PRIOR: f64 = 1.5;
const VARIATION_PRIOR_COUNT: f64 = 6.0;
/// Even requests that are all alike do not complete like clockwork.
const VARIATION_LEAST: f64 = 0.1;
/// What is even more uneven is not waited for.
const VARIATION_MOST: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::sample::UrlSum;
    use flashweir_core::Instant;

    /// Goal: the first dear pages are found as dear as they are. Method: cheap requests of 10 ms whose times are uneven, and beside each
    /// dear one of 400 ms a single cheap one that happened to be quick.
    #[test]
    fn a_dear_page_beside_one_quick_request_is_as_dear_as_it_is() {
        let mut inherent = Inherent::new(Learner::Model);
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
            work[usize::from(is_dear)] = inherent.observe(&sample);
        }
        let times = work[1] / work[0] - 1.0;
        assert!((30.0..60.0).contains(&times), "{times}");
    }
}
