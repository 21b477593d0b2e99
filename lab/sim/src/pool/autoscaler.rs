//! An autoscaler on processor utilisation, with the rules of Kubernetes' HorizontalPodAutoscaler
//! (autoscaling/v2) and their defaults.
//!
//! desired = ⌈servers · utilisation / target⌉, unless the ratio is within the tolerance. A server that starts
//! counts as idle when the ratio asks for more, and if that turns the answer round nothing is done. Growth is
//! bounded by the larger of two policies; servers are given back only as far as every answer of the
//! stabilisation window allows. Its input is the *admitted* work: while requests are refused every processor
//! is busy, and the ratio never exceeds 1/target, however many times the demand is.

use flashweir_core::{Duration, Instant};
use std::collections::VecDeque;

/// Settings, by default those of Kubernetes with a target of 70 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoscalerSettings {
    /// Wanted utilisation of processors, 0 to 1.
    pub target: f64,
    /// Time between decisions.
    pub interval: Duration,
    /// Time over which utilisation is measured.
    pub window: Duration,
    /// Ratios this near to 1 change nothing.
    pub tolerance: f64,
    /// Growth in one interval: the larger of as many servers again and this number.
    pub growth_servers: u32,
    /// The largest answer of this time counts when servers are given back.
    pub stabilisation: Duration,
}

impl Default for AutoscalerSettings {
    fn default() -> Self {
        Self {
            target: 0.7,
            interval: Duration::from_secs(15),
            window: Duration::from_secs(30),
            tolerance: 0.1,
            growth_servers: 4,
            stabilisation: Duration::from_secs(300),
        }
    }
}

/// The autoscaler of one application.
#[derive(Debug)]
pub(super) struct Autoscaler {
    settings: AutoscalerSettings,
    /// Work done and ready server-seconds of the last ticks.
    ticks: VecDeque<(Instant, f64, f64)>,
    answers: VecDeque<(Instant, u32)>,
}

impl Autoscaler {
    pub(super) fn new(settings: AutoscalerSettings) -> Self {
        Self { settings, ticks: VecDeque::new(), answers: VecDeque::new() }
    }

    pub(super) fn observe(&mut self, now: Instant, worked_s: f64, ready_s: f64) {
        self.ticks.push_back((now, worked_s, ready_s));
        while self.ticks.front().is_some_and(|&(at, ..)| now.saturating_since(at) >= self.settings.window) {
            self.ticks.pop_front();
        }
    }

    /// Servers wanted now.
    pub(super) fn decide(&mut self, now: Instant, ready: u32, starting: u32) -> u32 {
        let total = ready + starting;
        // The policy that allows more: as many again, or a fixed number more.
        let growth_max = (total * 2).max(total + self.settings.growth_servers);
        let answer = self.answer(ready, total).min(growth_max);
        self.answers.push_back((now, answer));
        while self
            .answers
            .front()
            .is_some_and(|&(at, _)| now.saturating_since(at) > self.settings.stabilisation)
        {
            self.answers.pop_front();
        }
        if answer >= total {
            return answer;
        }
        let largest = self.answers.iter().map(|&(_, answer)| answer).max().unwrap_or(total);
        largest.min(total)
    }

    fn answer(&self, ready: u32, total: u32) -> u32 {
        let (worked_s, ready_s) = self
            .ticks
            .iter()
            .fold((0.0, 0.0), |sum, &(_, worked_s, ready_s)| (sum.0 + worked_s, sum.1 + ready_s));
        if ready_s <= 0.0 {
            return total;
        }
        let ratio_of = |servers: u32| {
            worked_s / ready_s * f64::from(ready) / f64::from(servers.max(1)) / self.settings.target
        };
        let is_near = |ratio: f64| (ratio - 1.0).abs() <= self.settings.tolerance;
        let ratio = ratio_of(ready);
        if is_near(ratio) {
            return total;
        }
        if ratio < 1.0 {
            return libm::ceil(ratio * f64::from(ready)) as u32;
        }
        let with_starting = ratio_of(total);
        if is_near(with_starting) || with_starting < 1.0 {
            return total;
        }
        libm::ceil(with_starting * f64::from(total)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(busy: f64, ready: u32, starting: u32) -> u32 {
        let mut autoscaler = Autoscaler::new(AutoscalerSettings::default());
        autoscaler.observe(Instant::ZERO, busy * f64::from(ready), f64::from(ready));
        autoscaler.decide(Instant::ZERO, ready, starting)
    }

    #[test]
    fn it_answers_as_its_documentation_says() {
        assert_eq!(decided(1.0, 10, 0), 15);
        assert_eq!((decided(0.75, 10, 0), decided(0.65, 10, 0)), (10, 10), "within the tolerance");
        assert_eq!(decided(1.0, 10, 5), 15, "those that start are enough by its reckoning");
        assert_eq!(decided(1.0, 10, 2), 15);
        assert_eq!(decided(0.35, 10, 0), 5);
    }

    #[test]
    fn it_gives_back_only_what_no_answer_of_five_minutes_wanted() {
        let mut autoscaler = Autoscaler::new(AutoscalerSettings::default());
        let mut at = |second, busy: f64| {
            autoscaler.observe(Instant::from_secs(second), busy * 10.0, 10.0);
            autoscaler.decide(Instant::from_secs(second), 10, 0)
        };
        assert_eq!((at(0, 0.7), at(60, 0.35), at(300, 0.35), at(301, 0.35)), (10, 10, 10, 5));
    }
}
