//! Completion rate of the origin when it has work all the time.
//!
//! The sentry's estimate supposes that its limit is where throughput ends. Feedback keeps requests below that
//! limit, and there the estimate is too high by as much as the limit is. But while work waits, what is
//! completed *is* the capacity.
//!
//! | | capacity |
//! |---|---|
//! | nothing is asked of senders | the sentry's estimate |
//! | nothing is known yet, and work waits | mean of what is completed since then |
//! | work waits | mean of what is completed, over the last 10 s of this state at most |
//! | no work waits, and senders use all that they may | grows by 20 % a second, to 1.2 times what is completed at most |
//!
//! The last row is what gives up an estimate that is too low. Its bound is needed because the level is
//! measured by the estimate: one that grows finds ever less work waiting.

use flashweir_core::Duration;

/// The time over which the capacity is averaged, at most: at 200 requests a second of exponential work it
/// then varies by 2 %, which moves the level by 0.03 s. A capacity that really changes is followed by the
/// level meanwhile.
const AVERAGED_OVER_S: f64 = 10.0;
/// Weight of the sentry's estimate, and of one that has grown: seconds of measurement. In calm times the
/// sentry's may be several times too high.
const GUESS_COUNTS_S: f64 = 0.3;
/// The backlog is gone for moments by chance, for this long only if the estimate is too low.
const IDLE_FOR: Duration = Duration::from_millis(500);
/// By how much an estimate grows in a second: an origin that is a quarter faster than estimated is used again
/// after a second.
const GROWTH_PER_S: f64 = 0.2;
/// An estimate does not grow beyond this many times what is completed.
const BEYOND: f64 = 1.2;
/// The time over which completions are averaged for that.
const COMPLETED_OVER_S: f64 = 1.0;

/// The estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    rps: f64,
    /// For how much measured time it counts.
    seen_s: f64,
    completed_rps: f64,
    /// For how long no work has waited although senders use all that they may.
    idle_s: f64,
    was_busy: bool,
}

/// Measurements of one interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalCounts {
    pub(super) span_s: f64,
    /// Requests per second that the origin completed.
    pub(super) completed_rps: f64,
    /// True if work waits at its end.
    pub(super) is_busy: bool,
    /// True if senders use what they were given.
    pub(super) binds: bool,
}

impl Capacity {
    pub(super) const UNKNOWN: Self =
        Self { rps: 0.0, seen_s: GUESS_COUNTS_S, completed_rps: 0.0, idle_s: 0.0, was_busy: false };

    /// Requests per second; 0 while unknown.
    pub(super) fn rps(&self) -> f64 {
        self.rps
    }

    /// Takes the sentry's estimate, if it has one.
    pub(super) fn guess(&mut self, rps: f64) {
        if rps > 0.0 {
            (self.rps, self.seen_s) = (rps, GUESS_COUNTS_S);
        }
    }

    /// Learns from an interval in which something was asked of senders.
    pub(super) fn observe(&mut self, counts: &IntervalCounts) {
        let &IntervalCounts { span_s, completed_rps, is_busy, binds } = counts;
        self.completed_rps +=
            (completed_rps - self.completed_rps) * (1.0 - libm::exp(-span_s / COMPLETED_OVER_S));
        if is_busy && self.rps <= 0.0 {
            // Nothing was known before.
            (self.rps, self.seen_s) = (completed_rps, span_s);
        } else if is_busy && self.was_busy {
            self.seen_s = (self.seen_s + span_s).min(AVERAGED_OVER_S);
            self.rps += (completed_rps - self.rps) * (span_s / self.seen_s).min(1.0);
        }
        self.idle_s = if is_busy || !binds { 0.0 } else { self.idle_s + span_s };
        if self.idle_s >= IDLE_FOR.as_secs_f64() {
            let grown_rps = (self.rps * libm::exp(span_s * GROWTH_PER_S)).min(BEYOND * self.completed_rps);
            if grown_rps > self.rps {
                (self.rps, self.seen_s) = (grown_rps, GUESS_COUNTS_S);
            }
        }
        self.was_busy = is_busy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(completed_rps: f64, is_busy: bool, binds: bool) -> IntervalCounts {
        IntervalCounts { span_s: 0.1, completed_rps, is_busy, binds }
    }

    #[test]
    fn what_is_completed_while_work_waits_is_the_capacity() {
        let mut capacity = Capacity::UNKNOWN;
        capacity.guess(500.0);
        (0..31).for_each(|_| capacity.observe(&counts(200.0, true, true)));
        assert!((capacity.rps() - 200.0).abs() < 30.0, "{}", capacity.rps());
        (0..400).for_each(|_| capacity.observe(&counts(200.0, true, true)));
        assert!((capacity.rps() - 200.0).abs() < 1.0, "{}", capacity.rps());
        // Nothing is learned from an origin that had nothing to do.
        (0..200).for_each(|_| capacity.observe(&counts(50.0, false, false)));
        assert!((capacity.rps() - 200.0).abs() < 1.0, "{}", capacity.rps());
    }

    #[test]
    fn an_estimate_that_is_too_low_grows_with_what_is_completed() {
        let mut capacity = Capacity::UNKNOWN;
        capacity.guess(100.0);
        (0..60).for_each(|_| {
            let completed_rps = capacity.rps().min(200.0);
            capacity.observe(&counts(completed_rps, capacity.rps() > 200.0, true));
        });
        assert!((capacity.rps() - 200.0).abs() < 20.0, "{}", capacity.rps());
        let mut fixed = Capacity::UNKNOWN;
        fixed.guess(100.0);
        (0..600).for_each(|_| fixed.observe(&counts(100.0, false, true)));
        assert!(fixed.rps() <= 120.0 + 1e-9, "{}", fixed.rps());
    }
}
