//! A move of the limit is an experiment: did throughput follow?

use super::look::Look;
use super::measured::Measured;

/// A move that is not judged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    pub(super) why: Why,
    pub(super) before: Measured,
    pub(super) p95_s: Option<f64>,
    pub(super) limit_before: u32,
}

/// What the limit was moved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Up, to see whether more is done.
    Raise,
    /// Down, to see whether as much is done.
    Trim,
    /// Down, because responses are late.
    Target,
}

/// What became of throughput when the limit moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It followed the limit: the knee is higher.
    Followed,
    /// It stayed: the knee is lower.
    Stayed,
    /// It went the other way: requests hinder each other.
    Opposed,
    /// It cannot be said. Whether it looks as if it followed, or too little was known before to compare with.
    Unclear(bool),
    /// It changed by more than the limit accounts for: the origin is another one now.
    Changed,
}

impl Experiment {
    /// What the measurement since the move says; `None` until it says something.
    pub(super) fn verdict(&self, look: &Look, now: &Measured) -> Option<Verdict> {
        let (own, before) = (now.error(look.variation), self.before.error(look.variation));
        let is_over = now.span_s > JUDGE_MOST_S;
        let distance = libm::log(now.in_flight().max(1e-9) / self.before.in_flight().max(1e-9));
        if own > ROUGH || now.span_s < now.latency_each_s() || distance.abs() < 0.05 {
            return is_over.then_some(Verdict::Unclear(false));
        }
        let change = libm::log(now.work_rate(look.variation) / self.before.work_rate(look.variation));
        let gain = change / distance;
        let error = libm::sqrt(own * own + before * before) / distance.abs();
        let is_clear = (gain - GAIN).abs() > CLEAR * error;
        // What was known before does not get better by waiting.
        if !is_clear && !is_over && own > 0.6 * before {
            return None;
        }
        let has_followed = gain > GAIN;
        // Where long ones had no time to be completed yet, little seems to be done.
        if distance > 0.0 && !has_followed && look.p95_s.is_some_and(|p95_s| now.span_s < p95_s) {
            return None;
        }
        let was_early = look.p95_s.is_some_and(|p95_s| self.before.span_s < 0.5 * p95_s);
        Some(if !is_clear && error > UNCLEAR || was_early && !has_followed {
            Verdict::Unclear(was_early || has_followed)
        } else if gain > 1.3 + CLEAR * error {
            Verdict::Changed
        } else if has_followed {
            Verdict::Followed
        } else if gain < -0.15 - error {
            Verdict::Opposed
        } else {
            Verdict::Stayed
        })
    }

    /// Whether the 95th percentile is now more than so many times what it was.
    pub(super) fn p95_grew(&self, look: &Look, factor: f64) -> bool {
        look.p95_s.zip(self.p95_s).is_some_and(|(now_s, before_s)| now_s > factor * before_s)
    }

    /// Whether responses became faster, though not quite in proportion to how far the limit (now `limit`) was lowered.
    pub(super) fn has_hastened(&self, look: &Look, limit: u32) -> bool {
        let share = f64::from(limit) / f64::from(self.limit_before);
        !self.p95_grew(look, libm::pow(share, HASTENED))
    }
}

/// Relative standard errors up to here give a hint.
pub(super) const ROUGH: f64 = 0.35;
/// Throughput as a power of the number in flight: 1 below the knee, 0 above, below 0 where requests hinder each other.
/// A third: what is won by going on must be worth the time that everybody loses.
const GAIN: f64 = 0.3;
/// Standard errors between gain and [`GAIN`] that make it clear on which side it is.
const CLEAR: f64 = 2.0;
/// With a larger standard error of the gain nothing is said unless it is clear.
const UNCLEAR: f64 = 0.3;
/// A 95th percentile that belongs to the service itself stays as it is (power 0); one that comes from the line at the
/// origin falls with the limit (power 1). It is known roughly only.
const HASTENED: f64 = 0.3;
/// Slow services do not get an exact answer; after so many seconds a rough one must do.
const JUDGE_MOST_S: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::super::measured::Variation;
    use super::*;
    use flashweir_core::Instant;

    const LOOK: Look = Look {
        now: Instant::ZERO,
        tick: measured(0.0, 0.0, 0.0),
        variation: Variation { within: 0.1, all: 0.1 },
        low_level: None,
        p95_s: Some(0.5),
        p95_least_s: Some(0.4),
        target_s: 1.0,
        age_s: 0.1,
        utilisation: None,
    };

    /// So many in flight and so much done per second for so long.
    const fn measured(in_flight: f64, work_rate: f64, span_s: f64) -> Measured {
        let completed = work_rate * span_s;
        let in_flight_s = in_flight * span_s;
        Measured {
            span_s,
            in_flight_s,
            work: completed,
            completed,
            latency_s: in_flight_s,
            waiting_s: span_s,
            shed: 0.0,
            failed: 0.0,
            left_late: 0.0,
        }
    }

    fn verdict(before: (f64, f64), now: (f64, f64), span_s: f64) -> Option<Verdict> {
        let experiment = Experiment {
            why: Why::Raise,
            before: measured(before.0, before.1, 5.0),
            p95_s: None,
            limit_before: before.0 as u32,
        };
        experiment.verdict(&LOOK, &measured(now.0, now.1, span_s))
    }

    #[test]
    fn throughput_that_follows_stays_or_opposes_is_told_apart() {
        assert_eq!(verdict((10.0, 100.0), (20.0, 195.0), 5.0), Some(Verdict::Followed));
        assert_eq!(verdict((10.0, 100.0), (20.0, 103.0), 5.0), Some(Verdict::Stayed));
        assert_eq!(verdict((10.0, 100.0), (20.0, 70.0), 5.0), Some(Verdict::Opposed));
        assert_eq!(verdict((20.0, 200.0), (10.0, 102.0), 5.0), Some(Verdict::Followed));
        assert_eq!(verdict((20.0, 200.0), (10.0, 198.0), 5.0), Some(Verdict::Stayed));
        assert_eq!(verdict((20.0, 200.0), (10.0, 260.0), 5.0), Some(Verdict::Opposed));
    }

    #[test]
    fn a_change_that_the_limit_does_not_account_for_is_another_origin() {
        assert_eq!(verdict((20.0, 300.0), (15.0, 100.0), 5.0), Some(Verdict::Changed));
    }

    #[test]
    fn too_little_says_nothing_and_too_long_says_so() {
        assert_eq!(verdict((10.0, 100.0), (20.0, 195.0), 0.05), None);
        assert_eq!(verdict((10.0, 100.0), (10.1, 100.0), 5.0), None);
        assert_eq!(verdict((10.0, 100.0), (10.1, 100.0), 9.0), Some(Verdict::Unclear(false)));
    }
}
