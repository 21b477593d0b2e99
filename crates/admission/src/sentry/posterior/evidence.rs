//! What was seen of an origin, as far as any of the models needs it.

use super::origins::{ORIGINS, PerOrigin, log_speedups, zeros};

/// Work done at one number in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::sentry) struct Seen {
    /// How many.
    pub(in crate::sentry) in_flight: f64,
    /// For how long, seconds.
    pub(in crate::sentry) span_s: f64,
    /// Completions times their costs over the usual cost.
    pub(in crate::sentry) work: f64,
}

/// Sums that are sufficient for the likelihood of every origin: `Σ k ln f(n) − (a + Σ k) ln Σ t f(n)`.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Σ k ln f(n).
    pub(super) log: PerOrigin,
    /// Σ t f(n), seconds of one server.
    pub(super) exposure_s: PerOrigin,
    /// Σ k.
    pub(super) work: f64,
}

/// Traffic since the last window was closed.
#[derive(Clone, Debug)]
pub(super) struct Window {
    sums: Evidence,
}

impl Evidence {
    pub(super) fn new() -> Self {
        Self { log: zeros(), exposure_s: zeros(), work: 0.0 }
    }

    pub(super) fn clear(&mut self) {
        self.log.fill(0.0);
        self.exposure_s.fill(0.0);
        self.work = 0.0;
    }

    /// Counts all of it for less.
    pub(super) fn fade(&mut self, part: f64) {
        self.log.iter_mut().chain(self.exposure_s.iter_mut()).for_each(|sum| *sum *= part);
        self.work *= part;
    }

    pub(super) fn add(&mut self, other: &Self, part: f64) {
        for origin in 0..ORIGINS {
            self.log[origin] += part * other.log[origin];
            self.exposure_s[origin] += part * other.exposure_s[origin];
        }
        self.work += part * other.work;
    }
}

impl Window {
    pub(super) fn new() -> Self {
        Self { sums: Evidence::new() }
    }

    pub(super) fn clear(&mut self) {
        self.sums.clear();
    }

    /// Adds time and work at one number in flight.
    pub(super) fn see(&mut self, seen: &Seen) {
        if seen.in_flight < 0.5 {
            return;
        }
        let logs = log_speedups(seen.in_flight);
        for (origin, log) in logs.iter().enumerate() {
            self.sums.exposure_s[origin] += seen.span_s * libm::exp(*log);
            self.sums.log[origin] += seen.work * log;
        }
        self.sums.work += seen.work;
    }

    /// Seconds of one server, by origin.
    pub(super) fn exposure_s(&self) -> &PerOrigin {
        &self.sums.exposure_s
    }

    /// Work by number in flight: unbiased where that number goes up and down by itself, whatever the
    /// distribution of service times, because as many go from n to n + 1 as come back.
    pub(super) fn by_level(&self) -> &Evidence {
        &self.sums
    }

    /// The work as a whole, `work`: right where the number in flight is pinned to a limit. Several that end at the same
    /// moment would otherwise seem to end while fewer were in flight.
    pub(super) fn as_a_whole(&self, work: f64) -> Evidence {
        let mut evidence = Evidence { log: zeros(), exposure_s: self.sums.exposure_s.clone(), work };
        for (log, exposure_s) in evidence.log.iter_mut().zip(self.sums.exposure_s.iter()) {
            *log = work * libm::log(exposure_s.max(EXPOSURE_LEAST_S));
        }
        evidence
    }
}

/// Keeps logarithms finite.
const EXPOSURE_LEAST_S: f64 = 1e-12;
