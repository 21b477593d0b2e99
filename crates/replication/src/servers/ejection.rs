//! Leaving out a server whose requests fail.

use crate::SettingsError;
use flashweir_core::{Duration, Instant};

/// When a server is left out, and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EjectionSettings {
    /// Failures in a row that eject; 1 or more, default 5. Lower: one burst of errors costs a server.
    pub failures: u32,
    /// How long the first ejection lasts, default 10 s; each further one twice as long.
    pub first: Duration,
    /// The longest ejection, default 300 s.
    pub longest: Duration,
    /// The part of all servers that may be ejected at once, 0 to 1, default 0.5: where most of them fail, the fault is elsewhere.
    pub part_max: f64,
}

impl Default for EjectionSettings {
    fn default() -> Self {
        Self { failures: 5, first: Duration::from_secs(10), longest: Duration::from_secs(300), part_max: 0.5 }
    }
}

impl EjectionSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.failures == 0 {
            return Err(SettingsError::new("failures that eject a server", "1 or more"));
        }
        if !(0.0..=1.0).contains(&self.part_max) {
            return Err(SettingsError::new("part of the servers that may be ejected", "0 to 1"));
        }
        Ok(())
    }
}

/// A server's failures in a row, and until when it is left out.
///
/// A fast error makes a server look idle, and a policy that prefers idle servers sends it everything; this is the guard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ejection {
    failures: u32,
    ejections: u32,
    until: Instant,
}

impl Ejection {
    /// Records how a request ended; `ejected` of the `servers` are left out at present.
    pub fn finished(
        &mut self,
        now: Instant,
        succeeded: bool,
        settings: &EjectionSettings,
        ejected: usize,
        servers: usize,
    ) {
        if succeeded {
            self.failures = 0;
            if !self.is_ejected(now) {
                self.ejections = 0;
            }
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let has_room = (ejected + 1) as f64 <= settings.part_max * servers as f64;
        if self.failures >= settings.failures && !self.is_ejected(now) && has_room {
            let length = settings.first.saturating_mul(1 << self.ejections.min(16)).min(settings.longest);
            self.until = now + length;
            self.ejections = self.ejections.saturating_add(1);
            self.failures = 0;
        }
    }

    /// Whether the server is left out.
    #[must_use]
    pub fn is_ejected(&self, now: Instant) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: EjectionSettings = EjectionSettings {
        failures: 3,
        first: Duration::from_secs(10),
        longest: Duration::from_secs(30),
        part_max: 0.5,
    };

    fn fail(ejection: &mut Ejection, now: Instant, times: u32, ejected: usize) {
        (0..times).for_each(|_| ejection.finished(now, false, &SETTINGS, ejected, 4));
    }

    #[test]
    fn failures_in_a_row_eject_for_longer_each_time() {
        let mut ejection = Ejection::default();
        fail(&mut ejection, Instant::ZERO, 2, 0);
        ejection.finished(Instant::ZERO, true, &SETTINGS, 0, 4);
        fail(&mut ejection, Instant::ZERO, 2, 0);
        assert!(!ejection.is_ejected(Instant::ZERO));
        let mut now = Instant::ZERO;
        for expected_s in [10, 20, 30, 30] {
            fail(&mut ejection, now, 3, 0);
            let end = now + Duration::from_secs(expected_s);
            assert!(ejection.is_ejected(end - Duration::from_nanos(1)) && !ejection.is_ejected(end));
            now = end;
        }
    }

    #[test]
    fn most_servers_stay() {
        let mut ejection = Ejection::default();
        fail(&mut ejection, Instant::ZERO, 9, 2);
        assert!(!ejection.is_ejected(Instant::ZERO));
    }
}
