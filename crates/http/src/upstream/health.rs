//! Whether an upstream should be given requests. Pure: time is an argument.
//!
//! Two witnesses. *Passive*: so many failures in a row (connect failures, connections reset before a response)
//! eject the upstream for a while which doubles with each ejection in a row; when it is over, the first requests
//! are the trial. *Active*: probes that fail so many times in a row take it out until so many succeed. Neither
//! says the upstream is overloaded; that is the admission gate's business. When all are out, all are used
//! (the balancer's rule): a wrong health check must not turn slow into down.

use flashweir_core::{Duration, Instant};

/// When an upstream counts as unhealthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthSettings {
    /// Failures in a row that eject; 0 never ejects.
    pub failures_to_eject: u32,
    /// The first ejection's length.
    pub ejection_first: Duration,
    /// No ejection is longer.
    pub ejection_longest: Duration,
    /// Failed probes in a row that take an upstream out.
    pub probes_to_fail: u32,
    /// Successful probes in a row that bring it back.
    pub probes_to_pass: u32,
}

/// One upstream's health. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    settings: HealthSettings,
    failures: u32,
    ejections: u32,
    ejected_until: Instant,
    /// Probes in a row that disagree with `is_probed_down`.
    disagreeing_probes: u32,
    is_probed_down: bool,
}

impl Default for HealthSettings {
    /// Five failures: one bad worker process of many does not eject a server; 1 s is about a restart.
    fn default() -> Self {
        Self {
            failures_to_eject: 5,
            ejection_first: Duration::from_secs(1),
            ejection_longest: Duration::from_secs(30),
            probes_to_fail: 3,
            probes_to_pass: 2,
        }
    }
}

impl Health {
    /// Healthy until shown otherwise.
    #[must_use]
    pub fn new(settings: HealthSettings) -> Self {
        Self {
            settings,
            failures: 0,
            ejections: 0,
            ejected_until: Instant::ZERO,
            disagreeing_probes: 0,
            is_probed_down: false,
        }
    }

    /// A connection failed or was reset before its response. Failures while ejected change nothing: requests
    /// sent before the ejection still come in.
    pub fn failed(&mut self, now: Instant) {
        if now < self.ejected_until {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        // After an ejection the first failure is enough: the trial failed.
        let needed = if self.ejections > 0 { 1 } else { self.settings.failures_to_eject };
        if self.settings.failures_to_eject > 0 && self.failures >= needed {
            let doubled = self.settings.ejection_first.saturating_mul(1 << self.ejections.min(20));
            self.ejected_until = now + doubled.min(self.settings.ejection_longest);
            self.ejections = self.ejections.saturating_add(1);
            self.failures = 0;
        }
    }

    /// A response came. While ejected it changes nothing (it was asked for before).
    pub fn succeeded(&mut self, now: Instant) {
        if now >= self.ejected_until {
            self.failures = 0;
            self.ejections = 0;
        }
    }

    /// A probe ended.
    pub fn probed(&mut self, passed: bool) {
        if passed != self.is_probed_down {
            self.disagreeing_probes = 0;
            return;
        }
        self.disagreeing_probes += 1;
        let needed = if passed { self.settings.probes_to_pass } else { self.settings.probes_to_fail };
        if self.disagreeing_probes >= needed {
            self.is_probed_down = !passed;
            self.disagreeing_probes = 0;
        }
    }

    /// The time from which requests may be sent: [`Instant::MAX`] while probes say it is down.
    #[must_use]
    pub fn available_at(&self) -> Instant {
        if self.is_probed_down { Instant::MAX } else { self.ejected_until }
    }

    /// Whether a response would change anything: lets the common case skip the lock.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.failures > 0 || self.ejections > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: HealthSettings = HealthSettings {
        failures_to_eject: 3,
        ejection_first: Duration::from_secs(1),
        ejection_longest: Duration::from_secs(5),
        probes_to_fail: 2,
        probes_to_pass: 3,
    };

    #[test]
    fn failures_in_a_row_eject_for_doubling_times() {
        let mut health = Health::new(SETTINGS);
        let mut now = Instant::from_secs(10);
        health.failed(now);
        health.failed(now);
        health.succeeded(now);
        health.failed(now);
        health.failed(now);
        assert_eq!(health.available_at(), Instant::ZERO, "a success broke the row");
        health.failed(now);
        for expected_s in [1, 2, 4, 5, 5] {
            assert_eq!(health.available_at().saturating_since(now), Duration::from_secs(expected_s));
            // Stragglers sent before the ejection change nothing.
            health.failed(now);
            health.succeeded(now);
            now = health.available_at();
            health.failed(now);
        }
        now = health.available_at();
        health.succeeded(now);
        assert!(!health.is_suspect());
        health.failed(now);
        assert!(health.available_at() <= now, "forgiven");
    }

    #[test]
    fn probes_take_out_and_bring_back() {
        let mut health = Health::new(SETTINGS);
        for passed in [false, true, false] {
            health.probed(passed);
            assert_eq!(health.available_at(), Instant::ZERO);
        }
        health.probed(false);
        assert_eq!(health.available_at(), Instant::MAX);
        for passed in [true, true, false, true, true] {
            health.probed(passed);
            assert_eq!(health.available_at(), Instant::MAX);
        }
        health.probed(true);
        assert_eq!(health.available_at(), Instant::ZERO);
    }

    #[test]
    fn ejection_can_be_switched_off() {
        let mut health = Health::new(HealthSettings { failures_to_eject: 0, ..SETTINGS });
        (0..100).for_each(|_| health.failed(Instant::from_secs(1)));
        assert_eq!(health.available_at(), Instant::ZERO);
    }
}
