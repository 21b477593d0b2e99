//! Whether an upstream should be given requests. Pure: time is an argument.
//!
//! Two witnesses. *Passive*: so many failures in a row (connect failures, connections reset before a response)
//! eject the upstream for a while which doubles with each ejection in a row; when it is over, the first requests
//! are the trial. Resets that follow requests of one client count once a second: whatever that client sends, it takes another
//! one's failures, or a second for each, to say that it is the upstream. *Active*: probes that fail so many times in a row take it out until so many succeed. Neither
//! says the upstream is overloaded; that is the admission gate's business. When all are out, all are used
//! (the balancer's rule): a wrong health check must not turn slow into down.

use flashweir_core::{Duration, Instant};

/// For so long, further failures of one client's requests say nothing new: a client that is served by an upstream which
/// resets everything meets some a second, too.
const SAME_CLIENT_INTERVAL: Duration = Duration::from_secs(1);

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
    /// Whose request the last failure that counted was, and when that was.
    last_failed: Option<(u64, Instant)>,
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
            last_failed: None,
            disagreeing_probes: 0,
            is_probed_down: false,
        }
    }

    /// A connection failed (no `client`: no request had part in it), or was reset before the response to a request of this
    /// client. Failures while ejected change nothing: requests sent before the ejection still come in.
    pub fn failed(&mut self, now: Instant, client: Option<u64>) {
        if now < self.ejected_until {
            return;
        }
        let before = self.last_failed.filter(|(other, _)| Some(*other) == client);
        if before.is_some_and(|(_, at)| now.saturating_since(at) < SAME_CLIENT_INTERVAL) {
            return;
        }
        self.last_failed = client.map(|client| (client, now));
        self.failures = self.failures.saturating_add(1);
        // After an ejection the first failure is enough: the trial failed. Not if the same client made the trial.
        let is_trial = self.ejections > 0 && before.is_none();
        let needed = if is_trial { 1 } else { self.settings.failures_to_eject };
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
        health.failed(now, None);
        health.failed(now, None);
        health.succeeded(now);
        health.failed(now, None);
        health.failed(now, None);
        assert_eq!(health.available_at(), Instant::ZERO, "a success broke the row");
        health.failed(now, None);
        for expected_s in [1, 2, 4, 5, 5] {
            assert_eq!(health.available_at().saturating_since(now), Duration::from_secs(expected_s));
            // Stragglers sent before the ejection change nothing.
            health.failed(now, None);
            health.succeeded(now);
            now = health.available_at();
            health.failed(now, None);
        }
        now = health.available_at();
        health.succeeded(now);
        assert!(!health.is_suspect());
        health.failed(now, None);
        assert!(health.available_at() <= now, "forgiven");
    }

    #[test]
    fn one_client_alone_ejects_nothing_at_once() {
        let mut health = Health::new(SETTINGS);
        let start = Instant::from_secs(10);
        (0..900).for_each(|ms| health.failed(start + Duration::from_millis(ms), Some(7)));
        assert_eq!(health.available_at(), Instant::ZERO, "one client's requests, however many");
        let mut of_two = health;
        of_two.failed(start + Duration::from_millis(900), Some(8));
        of_two.failed(start + Duration::from_millis(901), Some(7));
        assert!(of_two.available_at() > start, "two clients: it is the upstream");
        // An upstream with one client that resets everything is noticed all the same.
        health.failed(start + Duration::from_secs(1), Some(7));
        health.failed(start + Duration::from_secs(2), Some(7));
        assert!(health.available_at() > start);
        let trial = health.available_at();
        health.failed(trial, Some(7));
        assert_eq!(health.available_at(), trial, "the same client's trial is none");
        health.failed(trial, Some(8));
        assert!(health.available_at() > trial);
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
        (0..100).for_each(|_| health.failed(Instant::from_secs(1), None));
        assert_eq!(health.available_at(), Instant::ZERO);
    }
}
