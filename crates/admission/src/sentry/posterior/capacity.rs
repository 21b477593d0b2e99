//! How likely each origin is, and what follows.

use super::change::{Changes, FACTORS, Suspicion};
use super::evidence::{Evidence, Seen, Window};
use super::origins::{ORIGINS, PerOrigin, log_prior, log_speedups, servers, zeros};

/// The distribution over origins.
#[derive(Debug)]
pub(super) struct Capacity {
    all: Evidence,
    /// Since a change is suspected.
    suspect: Evidence,
    changes: Changes,
    window: Window,
    /// The variance of counts over their mean, as known now. All evidence is weighed by it: the first requests to be completed
    /// are the short ones, and what they say must not weigh more because it was not known yet how uneven requests are.
    dispersion: f64,
    probability: PerOrigin,
    /// What each would complete with one in flight, a second.
    rate: PerOrigin,
}

impl Capacity {
    pub(super) fn new() -> Self {
        let mut capacity = Self {
            all: Evidence::new(),
            suspect: Evidence::new(),
            changes: Changes::default(),
            window: Window::new(),
            dispersion: 1.0,
            probability: zeros(),
            rate: zeros(),
        };
        capacity.update();
        capacity
    }

    /// Adds to the open window.
    pub(super) fn see(&mut self, seen: &Seen) {
        self.window.see(seen);
    }

    /// Forgets the open window.
    pub(super) fn discard(&mut self) {
        self.window.clear();
    }

    /// Work to be expected in the open window.
    pub(super) fn expected(&self) -> f64 {
        self.likely()
            .map(|origin| self.probability[origin] * self.rate[origin] * self.window.exposure_s()[origin])
            .sum()
    }

    /// Enough is known to expect something.
    pub(super) fn is_informed(&self) -> bool {
        self.all.work > INFORMED_WORK * self.dispersion
    }

    /// Closes a window in which the number in flight went up and down by itself. `dispersion` is the variance of counts over
    /// their mean.
    pub(super) fn close_free(&mut self, dispersion: f64) {
        self.dispersion = dispersion;
        let evidence = self.window.by_level().clone();
        let part = self.part(evidence.work);
        self.remember(&evidence, part);
        self.suspect.clear();
        self.changes.clear();
        self.window.clear();
        self.update();
    }

    /// Closes a window in which a limit pinned the number in flight; whether it shows that the origin has changed.
    pub(super) fn close_pinned(&mut self, work: f64, dispersion: f64) -> bool {
        self.dispersion = dispersion;
        let part = self.part(work);
        let suspicion = if self.is_informed() {
            let weight = part / dispersion;
            let same = self.log_likelihood(work, weight, 1.0);
            let changed = FACTORS.map(|factor| self.log_likelihood(work, weight, factor));
            self.changes.judge(same, changed)
        } else {
            Suspicion::Nothing
        };
        let evidence = self.window.as_a_whole(work);
        self.remember(&evidence, part);
        self.suspect.add(&evidence, part);
        match suspicion {
            Suspicion::Since => {}
            Suspicion::Nothing => self.suspect.clear(),
            Suspicion::Changed => {
                // A little of what was known is kept: most changes leave the number of servers as it was.
                self.all.fade((KEPT_WORK * dispersion / self.all.work).min(1.0));
                self.all.add(&self.suspect, 1.0);
                self.suspect.clear();
            }
        }
        self.window.clear();
        self.update();
        suspicion == Suspicion::Changed
    }

    /// The number of servers (its geometric mean) and the standard deviation of its logarithm.
    pub(super) fn servers(&self) -> (f64, f64) {
        let (mut mean, mut squares) = (0.0, 0.0);
        for origin in self.likely() {
            let log = libm::log(servers(origin));
            mean += self.probability[origin] * log;
            squares += self.probability[origin] * log * log;
        }
        (libm::exp(mean), libm::sqrt((squares - mean * mean).max(0.0)))
    }

    /// What a request takes when it is alone, seconds.
    pub(super) fn alone_s(&self) -> f64 {
        self.likely().map(|origin| self.probability[origin] / self.rate[origin]).sum()
    }

    /// What a limit is worth: departures a second, of which those that are late count for `late_worth`; a little less the
    /// longer the line at the origin, where a request can no longer be refused or overtaken.
    pub(super) fn worth(&self, limit: u32, quantile_over_mean: f64, target_s: f64, late_worth: f64) -> f64 {
        let in_flight = f64::from(limit);
        let logs = log_speedups(in_flight);
        let departures = |origin: usize| {
            let rate = self.rate[origin] * libm::exp(logs[origin]);
            let lateness = quantile_over_mean * in_flight / rate / (LATE * target_s);
            let steep = lateness * lateness * lateness;
            self.probability[origin] * rate * (late_worth + (1.0 - late_worth) / (1.0 + steep * steep))
        };
        self.likely().map(departures).sum::<f64>() * (1.0 - LINE_COST * libm::log(in_flight))
    }

    /// For how much of itself a window's work counts.
    fn part(&self, work: f64) -> f64 {
        (WINDOW_WORK_MOST * self.dispersion / work.max(1e-9)).min(1.0)
    }

    fn remember(&mut self, evidence: &Evidence, part: f64) {
        self.all.fade(libm::exp(-evidence.work * part / (MEMORY_WORK * self.dispersion)));
        self.all.add(evidence, part);
    }

    /// Of the open window, given its work and a factor by which departures have changed.
    fn log_likelihood(&self, work: f64, weight: f64, factor: f64) -> f64 {
        let log_of = |origin: usize| {
            let expected = (self.rate[origin] * self.window.exposure_s()[origin] * factor).max(1e-9);
            (work * libm::log(expected / work.max(1e-9)) - expected + work) * weight
                + libm::log(self.probability[origin])
        };
        let most = self.likely().map(log_of).fold(f64::NEG_INFINITY, f64::max);
        most + libm::log(self.likely().map(|origin| libm::exp(log_of(origin) - most)).sum::<f64>())
    }

    fn likely(&self) -> impl Iterator<Item = usize> + '_ {
        (0..ORIGINS).filter(|&origin| self.probability[origin] > NEGLIGIBLE)
    }

    fn update(&mut self) {
        let mut most = f64::NEG_INFINITY;
        let work = PRIOR_WORK + self.all.work;
        for origin in 0..ORIGINS {
            let exposure_s = self.all.exposure_s[origin] + PRIOR_EXPOSURE_S;
            self.rate[origin] = work / exposure_s;
            self.probability[origin] =
                log_prior(origin) + self.all.log[origin] - work * libm::log(exposure_s);
            most = most.max(self.probability[origin]);
        }
        let likelihood = |log: f64| libm::exp(log - most);
        let sum: f64 = self.probability.iter().map(|log| likelihood(*log)).sum();
        self.probability.iter_mut().for_each(|log| *log = likelihood(*log) / sum);
    }
}

/// The model is right to a tenth at best: no window is believed as if it were better (1/√100).
const WINDOW_WORK_MOST: f64 = 100.0;
/// As much is remembered (in units of even counts, like all that follow), so that a slow drift is followed.
const MEMORY_WORK: f64 = 4_000.0;
/// After so much, what is expected means something.
const INFORMED_WORK: f64 = 8.0;
/// What was known before a change counts as this much work afterwards.
const KEPT_WORK: f64 = 4.0;
/// A rate of which nothing is known may be anything.
const PRIOR_WORK: f64 = 0.5;
const PRIOR_EXPOSURE_S: f64 = 1e-9;
/// Less likely origins are left out of sums.
const NEGLIGIBLE: f64 = 1e-6;
/// The 95th percentile over the target at which half of the answers are counted as late.
const LATE: f64 = 1.4;
/// What a limit loses with each factor e: enough to choose the smallest of those that do the same.
const LINE_COST: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of an origin with four servers of 100 completions a second each.
    fn learned(levels: &[f64]) -> Capacity {
        let mut capacity = Capacity::new();
        for &in_flight in levels {
            pin(&mut capacity, in_flight, 100.0 * f64::min(in_flight, 4.0));
        }
        capacity
    }

    fn pin(capacity: &mut Capacity, in_flight: f64, work: f64) -> bool {
        capacity.see(&Seen { in_flight, span_s: 1.0, work });
        capacity.close_pinned(work, 1.0)
    }

    #[test]
    fn servers_and_service_time_are_found_from_a_few_levels() {
        let capacity = learned(&[1.0, 2.0, 8.0, 8.0]);
        let (servers, spread) = capacity.servers();
        assert!((3.4..4.7).contains(&servers) && spread < 0.3, "{servers} ± {spread}");
        assert!((0.009..0.011).contains(&capacity.alone_s()), "{}", capacity.alone_s());
    }

    #[test]
    fn one_level_alone_does_not_tell_how_many_servers_there_are() {
        assert!(learned(&[8.0, 8.0, 8.0]).servers().1 > 1.0);
    }

    #[test]
    fn a_limit_is_worth_most_at_the_knee_and_less_where_all_are_late() {
        let capacity = learned(&[1.0, 2.0, 8.0, 16.0]);
        let worth = |limit| capacity.worth(limit, 3.0, 1.0, 0.0);
        assert!(worth(5) > worth(3) && worth(5) > worth(20), "{} {} {}", worth(3), worth(5), worth(20));
        assert!(worth(400) < 0.1 * worth(5));
    }

    #[test]
    fn a_loss_of_two_thirds_is_found_in_one_window_and_an_unlucky_window_is_no_loss() {
        let mut capacity = learned(&[1.0, 2.0, 8.0, 8.0]);
        assert!(!pin(&mut capacity, 8.0, 370.0));
        assert!(pin(&mut capacity, 8.0, 133.0));
        assert!((capacity.expected()).abs() < 1e-9, "the window is closed");
    }

    /// A higher limit that does not help is no change of the origin.
    #[test]
    fn a_knee_that_is_reached_is_no_change() {
        let mut capacity = learned(&[1.0, 2.0, 3.0]);
        assert!(!pin(&mut capacity, 8.0, 400.0));
        assert!(!pin(&mut capacity, 16.0, 400.0));
    }
}
