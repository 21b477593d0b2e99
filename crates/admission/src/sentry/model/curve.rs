//! Knowledge of the origin: times by number in flight, and the posterior of each origin under them.

use super::change::Evidence;
use super::constants::Constants;
use super::origins::{ORIGINS, Origin, PerOrigin, SERVERS, Stretch, priors, zeros};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Levels of requests in flight, quarter octaves.
const LEVELS: usize = 66;

/// Times by level, and the distribution over origins.
#[derive(Debug)]
pub(super) struct Curve {
    k: Constants,
    levels: Box<[Level; LEVELS]>,
    /// Prior probability of each origin, before anything is measured; 0 for those that are none.
    prior: PerOrigin,
    log_prior: PerOrigin,
    /// Posterior before the origin last changed.
    before: Option<Before>,
    probability: PerOrigin,
    /// Logarithm of the time of a unit of work alone, seconds.
    log_alone_s: PerOrigin,
    /// Origins that are not negligible.
    likely: Vec<Likely>,
    misfit: f64,
    /// Numbers in flight that are looked at again and again: the limits that the rule compares.
    usual: Vec<(f64, Stretch)>,
}

/// An origin that is not negligible.
#[derive(Clone, Copy, Debug)]
struct Likely {
    origin: Origin,
    probability: f64,
    /// Of a unit of work.
    alone: Time,
}

/// Posterior of an origin before it changed.
#[derive(Debug)]
struct Before {
    probability: PerOrigin,
    log_alone_s: f64,
}

/// A duration, and its logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) s: f64,
    pub(super) log_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Request-seconds.
    time_s: f64,
    work: f64,
    /// Completions, and these over their dispersion.
    completed: f64,
    weight: f64,
    /// The most that `weight` was.
    weight_max: f64,
    /// Σ completions · ln n.
    log_level: f64,
}

/// Evidence of one level.
#[derive(Debug)]
struct Point {
    /// One over the variance of `log_s`.
    weight: f64,
    /// Logarithm of the time of a unit of work, seconds.
    log_s: f64,
    stretch: Stretch,
}

impl Curve {
    pub(super) fn new(k: Constants) -> Self {
        let (prior, mut log_prior) = (priors(), priors());
        log_prior.iter_mut().for_each(|prior| *prior = libm::log(*prior));
        let mut curve = Self {
            k,
            levels: Box::new([Level::default(); LEVELS]),
            prior,
            log_prior,
            before: None,
            probability: zeros(),
            log_alone_s: zeros(),
            likely: Vec::new(),
            misfit: 0.0,
            usual: Vec::new(),
        };
        curve.update();
        curve
    }

    /// Returns true if anything was measured.
    pub(super) fn is_informed(&self) -> bool {
        self.levels.iter().any(|level| level.completed > 1.0)
    }

    /// Completions remembered.
    pub(super) fn completed(&self) -> f64 {
        self.levels.iter().map(|level| level.completed).sum()
    }

    /// Takes evidence.
    pub(super) fn add(&mut self, evidence: &Evidence) {
        let level = self.level(evidence.in_flight);
        level.time_s += evidence.time_s;
        level.work += evidence.work;
        level.completed += evidence.completed;
        level.weight += evidence.weight;
        level.weight_max = level.weight_max.max(level.weight);
        level.log_level += evidence.completed * libm::log(evidence.in_flight.max(1.0));
    }

    fn level(&mut self, in_flight: f64) -> &mut Level {
        &mut self.levels[index(in_flight)]
    }

    /// Counts all evidence for less.
    pub(super) fn fade(&mut self, part: f64) {
        self.levels.iter_mut().for_each(|level| level.fade(part));
    }

    /// The origin changed: its times are of another one.
    pub(super) fn forget(&mut self) {
        self.before =
            Some(Before { probability: self.probability.clone(), log_alone_s: libm::log(self.alone_s()) });
        self.levels.fill(Level::default());
    }

    /// The logarithm of how likely an origin is before the evidence in `levels`, given its time alone. After
    /// a change either the number of servers is as it was, or the time alone, or neither.
    fn log_prior(&self, origin: usize, log_alone_s: f64) -> f64 {
        let Some(before) = &self.before else { return self.log_prior[origin] };
        let any = self.prior[origin] / SERVERS as f64;
        let distance = (log_alone_s - before.log_alone_s) / self.k.model_error;
        let same_alone = libm::exp(-0.5 * distance * distance) / self.k.model_error * any;
        libm::log(before.probability[origin] + same_alone + self.k.model_error * any)
    }

    /// Distance of what is remembered from what any one origin would do: minus the logarithm of the
    /// likelihood of the likeliest.
    pub(super) fn misfit(&self) -> f64 {
        self.misfit
    }

    /// The distribution under all evidence.
    pub(super) fn update(&mut self) {
        let known = self.levels.iter().filter(|level| level.is_evidence());
        let points: Vec<Point> = known.map(|level| self.point(level)).collect();
        let mut most = f64::NEG_INFINITY;
        let total: f64 = points.iter().map(|point| point.weight).sum::<f64>().max(1e-9);
        self.misfit = f64::INFINITY;
        for origin in 0..ORIGINS {
            if self.prior[origin] == 0.0 {
                self.probability[origin] = f64::NEG_INFINITY;
                continue;
            }
            let (mut sum, mut squares) = (0.0, 0.0);
            for Point { weight, log_s, stretch } in &points {
                let own = log_s - stretch.of(Origin::new(origin)).log;
                sum += weight * own;
                squares += weight * own * own;
            }
            self.log_alone_s[origin] = sum / total;
            let misfit = 0.5 * (squares - sum * sum / total);
            self.misfit = self.misfit.min(misfit);
            self.probability[origin] = self.log_prior(origin, sum / total) - misfit;
            most = most.max(self.probability[origin]);
        }
        let mut all = 0.0;
        for probability in self.probability.iter_mut() {
            *probability = libm::exp(*probability - most);
            all += *probability;
        }
        self.likely.clear();
        for (origin, probability) in self.probability.iter_mut().enumerate() {
            *probability /= all;
            if *probability > NEGLIGIBLE {
                let log_s = self.log_alone_s[origin];
                let alone = Time { s: libm::exp(log_s), log_s };
                self.likely.push(Likely { origin: Origin::new(origin), probability: *probability, alone });
            }
        }
    }

    fn point(&self, level: &Level) -> Point {
        Point {
            weight: 1.0 / (1.0 / level.weight + self.k.model_error * self.k.model_error),
            log_s: libm::log(level.time_s / level.work),
            stretch: Stretch::at(libm::exp(level.log_level / level.completed)),
        }
    }

    /// By which factor times at this level differ from those remembered there (logarithm), and its variance
    /// beyond that of the new ones; `None` where too little is remembered to compare with.
    pub(super) fn difference(&self, in_flight: f64, unit_s: f64) -> Option<(f64, f64)> {
        let level = &self.levels[index(in_flight)];
        let weight = level.weight;
        if weight < self.k.enough || level.work <= 0.0 {
            return None;
        }
        let at = libm::log(in_flight.max(1.0)) - level.log_level / level.completed;
        Some((
            libm::log(unit_s * level.work / level.time_s) - at,
            1.0 / weight + self.k.model_error * self.k.model_error,
        ))
    }

    /// The number of servers (its geometric mean) and the standard deviation of its logarithm.
    pub(super) fn servers(&self) -> (f64, f64) {
        let (mut mean, mut squares) = (0.0, 0.0);
        for one in &self.likely {
            let log = one.origin.log_servers();
            mean += one.probability * log;
            squares += one.probability * log * log;
        }
        (libm::exp(mean), libm::sqrt((squares - mean * mean).max(0.0)))
    }

    /// Time of a unit of work alone, seconds.
    pub(super) fn alone_s(&self) -> f64 {
        libm::exp(self.likely.iter().map(|one| one.probability * one.alone.log_s).sum())
    }

    /// The mean over origins of `value(time of a unit of work at this number in flight)`.
    pub(super) fn mean(&self, in_flight: f64, value: impl Fn(Time) -> f64) -> f64 {
        let [mean] = self.means(in_flight, |unit| [value(unit)]);
        mean
    }

    /// Keeps the stretches at these numbers in flight for means to come. O(numbers).
    pub(super) fn keep(&mut self, in_flight: impl Iterator<Item = f64> + Clone) {
        if in_flight.clone().ne(self.usual.iter().map(|usual| usual.0)) {
            self.usual.clear();
            self.usual.extend(in_flight.map(|in_flight| (in_flight, Stretch::at(in_flight))));
        }
    }

    /// The same of several values. O(numbers of servers + contentions + likely origins · values).
    pub(super) fn means<const N: usize>(
        &self,
        in_flight: f64,
        values: impl Fn(Time) -> [f64; N],
    ) -> [f64; N] {
        let rare;
        let stretch = match self.usual.iter().find(|usual| usual.0 == in_flight) {
            Some((_, stretch)) => stretch,
            None => {
                rare = Stretch::at(in_flight);
                &rare
            }
        };
        let mut means = [0.0; N];
        for one in &self.likely {
            let stretch = stretch.of(one.origin);
            let time = Time { s: one.alone.s * stretch.value, log_s: one.alone.log_s + stretch.log };
            for (mean, value) in means.iter_mut().zip(values(time)) {
                *mean += one.probability * value;
            }
        }
        means
    }
}

impl Level {
    /// One request that was quick by chance says nothing: the logarithm of its time may be anything below the
    /// usual one.
    fn is_evidence(&self) -> bool {
        self.weight > FADED && self.weight_max > 1.0 && self.time_s > 0.0 && self.work > 0.0
    }

    fn fade(&mut self, part: f64) {
        self.time_s *= part;
        self.work *= part;
        self.completed *= part;
        self.weight *= part;
        self.log_level *= part;
    }
}

fn index(in_flight: f64) -> usize {
    ((4.0 * libm::log2(in_flight.max(1.0)) + 0.5) as usize).min(LEVELS - 1)
}

/// A level that weighed more than one request is forgotten once it fades to this weight.
const FADED: f64 = 0.02;
/// Less likely origins are left out of sums.
const NEGLIGIBLE: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of an origin with four servers, where a unit of work takes 10 ms alone.
    fn learned(levels: &[f64]) -> Curve {
        let mut curve = Curve::new(Constants::SHIPPED);
        levels
            .iter()
            .for_each(|&in_flight| see(&mut curve, in_flight, 0.01 * f64::max(in_flight / 4.0, 1.0)));
        curve
    }

    fn see(curve: &mut Curve, in_flight: f64, unit_s: f64) {
        let work = 100.0;
        curve.add(&Evidence { in_flight, time_s: unit_s * work, work, completed: work, weight: work });
        curve.update();
    }

    #[test]
    fn servers_and_time_alone_are_found_from_a_few_levels() {
        let curve = learned(&[1.0, 2.0, 8.0, 16.0]);
        let (servers, spread) = curve.servers();
        assert!((3.4..4.8).contains(&servers) && spread < 0.3, "{servers} ± {spread}");
        assert!((0.009..0.011).contains(&curve.alone_s()), "{}", curve.alone_s());
        let unit_s = curve.mean(8.0, |unit| unit.s);
        assert!((0.018..0.022).contains(&unit_s), "{unit_s}");
    }

    #[test]
    fn one_level_does_not_tell_how_many_servers_there_are() {
        assert!(learned(&[8.0, 8.0, 8.0]).servers().1 > 1.0);
        assert!(!Curve::new(Constants::SHIPPED).is_informed() && learned(&[8.0]).is_informed());
    }

    #[test]
    fn times_are_compared_at_one_level_only() {
        let curve = learned(&[1.0, 8.0, 8.0]);
        let (difference, variance) = curve.difference(8.0, 0.06).expect("something to compare with");
        assert!((difference - libm::log(3.0)).abs() < 0.01 && variance < 0.02, "{difference} ± {variance}");
        assert_eq!(curve.difference(20.0, 0.05), None);
    }

    /// Three times as long at the same limit: a third of the servers, or a third of the speed. Fewer in
    /// flight tell.
    #[test]
    fn after_a_change_the_servers_or_the_time_alone_are_as_before() {
        let changed = || {
            let mut curve = learned(&[1.0, 2.0, 8.0, 16.0]);
            curve.forget();
            see(&mut curve, 8.0, 0.06);
            curve
        };
        let (mut fewer, mut slower) = (changed(), changed());
        assert!(fewer.servers().1 > 0.3, "{:?}", fewer.servers());
        see(&mut fewer, 2.0, 0.015);
        see(&mut slower, 2.0, 0.03);
        assert!(
            fewer.servers().0 < 1.8 && slower.servers().0 > 3.0,
            "{:?} {:?}",
            fewer.servers(),
            slower.servers()
        );
    }

    /// Three times as long with a quarter fewer in flight: no one origin does both, and two of one origin
    /// that are a little off do.
    #[test]
    fn times_of_two_origins_are_a_misfit() {
        let mut curve = learned(&[8.0, 16.0, 16.0]);
        assert!(curve.misfit() < 0.5, "{}", curve.misfit());
        see(&mut curve, 12.0, 0.0345);
        assert!(curve.misfit() < 1.0, "{}", curve.misfit());
        see(&mut curve, 12.0, 0.12);
        assert!(curve.misfit() > 5.0, "{}", curve.misfit());
    }

    #[test]
    fn where_requests_hinder_each_other_fewer_do_more() {
        let mut curve = Curve::new(Constants::SHIPPED);
        for in_flight in [1.0, 4.0, 16.0, 64.0, 128.0] {
            let stretch = f64::max(in_flight / 16.0, 1.0) * (1.0 + 0.02 * (in_flight - 1.0));
            see(&mut curve, in_flight, 0.01 * stretch);
        }
        let done = |in_flight: f64| curve.mean(in_flight, |unit| in_flight / unit.s);
        assert!(done(16.0) > 1.5 * done(128.0), "{} {}", done(16.0), done(128.0));
    }
}
