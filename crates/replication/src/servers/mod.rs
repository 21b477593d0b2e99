//! The servers that may have copies: what they report, whether they are usable, and how much of the load each
//! should get.
//!
//! A [`ServerTable`] is updated slowly (a report, a failure, a refresh a few times a second) and read for
//! each request: the result is one integer for each server, its *share*, which a choice reads without
//! arithmetic on time.
//!
//! ```text
//! share = weight · slow start · learned weight      in 1/1024; 0: out (silent for three reports, or ejected)
//! ```

mod ejection;
mod learned_weight;
mod outlier;
mod slow_start;

pub use ejection::{
    Ejection, EjectionSettings, FORGIVEN_AFTER, Failure, HOLD_FIRST, OutCause, ProbeOutcome, Room,
};
pub use learned_weight::{LearnedWeight, LearningSettings, LearningSource};
pub use outlier::{Answers, OutlierEvidence};
pub use slow_start::slow_start;

use crate::SettingsError;
use alloc::vec::Vec;
use flashweir_core::limits::REPLICA_SERVERS;
use flashweir_core::{Duration, Instant};

/// A server's place in its table.
pub type ServerIndex = u16;

/// A share of one: the server takes as much as a server of weight one.
pub const SHARE_ONE: u32 = 1_024;
/// Reports that may be missing before a server counts as silent.
pub const REPORTS_MISSED_MAX: u32 = 3;

/// Settings that apply to all servers of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerSettings {
    /// Interval between a server's reports; 1 ms or more. Longer: a dead server is noticed later.
    pub report_interval: Duration,
    /// Time in which a fresh server's share grows; zero: at once.
    pub slow_start: Duration,
    /// Settings of the ejection of servers that fail.
    pub ejection: EjectionSettings,
    /// Settings of the learning of weights; none: they stay at what was configured.
    pub learning: Option<LearningSettings>,
}

impl Default for ServerSettings {
    /// A report each 10 s (Esser §4.2.4), no slow start, ejection by its defaults, nothing learned.
    fn default() -> Self {
        Self {
            report_interval: Duration::from_secs(10),
            slow_start: Duration::ZERO,
            ejection: EjectionSettings::default(),
            learning: None,
        }
    }
}

/// Report of a server on the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerReport {
    /// Requests per second that reached it, from all redirectors.
    pub load_rps: f64,
    /// Mean response time in milliseconds, where it is known.
    pub response_ms: Option<f64>,
    /// Utilisation, 0 to 1 and above, where it is known.
    pub utilisation: Option<f64>,
}

#[derive(Clone, Debug)]
struct Server {
    weight: f64,
    added_at: Instant,
    /// Beginning of the present slow start; none: it had its full share from the beginning.
    fresh_since: Option<Instant>,
    reported_at: Option<Instant>,
    report: ServerReport,
    ejection: Ejection,
    learned: LearnedWeight,
}

/// The servers, in the order in which they were added.
#[derive(Clone, Debug)]
pub struct ServerTable {
    settings: ServerSettings,
    servers: Vec<Server>,
    shares: Vec<u32>,
}

impl ServerTable {
    /// Without servers.
    ///
    /// # Errors
    /// [`SettingsError`] for a report interval below 1 ms, or numbers out of range in ejection and learning.
    pub fn new(settings: ServerSettings) -> Result<Self, SettingsError> {
        if settings.report_interval < Duration::from_millis(1) {
            return Err(SettingsError::new("report interval", "1 ms or more"));
        }
        settings.ejection.check()?;
        settings.learning.as_ref().map_or(Ok(()), LearningSettings::check)?;
        Ok(Self { settings, servers: Vec::new(), shares: Vec::new() })
    }

    /// A server of `weight` (1: the server for which watermarks are stated). `is_fresh`: its share grows over
    /// the slow start.
    ///
    /// # Errors
    /// [`SettingsError`] for a weight outside 0.01 to 100, and beyond [`REPLICA_SERVERS`].
    pub fn add(&mut self, now: Instant, weight: f64, is_fresh: bool) -> Result<ServerIndex, SettingsError> {
        if !(0.01..=100.0).contains(&weight) {
            return Err(SettingsError::new("weight of a server", "0.01 to 100"));
        }
        if self.servers.len() >= REPLICA_SERVERS {
            return Err(SettingsError::new("number of servers", "at most 256"));
        }
        self.servers.push(Server {
            weight,
            added_at: now,
            fresh_since: is_fresh.then_some(now),
            reported_at: None,
            report: ServerReport::default(),
            ejection: Ejection::default(),
            learned: LearnedWeight::default(),
        });
        self.shares.push(0);
        self.refresh(now);
        Ok((self.servers.len() - 1) as ServerIndex)
    }

    /// Number of servers, usable or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Takes a report; one from an unknown server, or with a load that is no rate, is ignored. A server that
    /// was silent starts slowly.
    pub fn report(&mut self, now: Instant, server: ServerIndex, report: ServerReport) {
        if !(report.load_rps.is_finite() && report.load_rps >= 0.0) {
            return;
        }
        let was_silent = self.is_silent(now, server);
        if let Some(known) = self.servers.get_mut(usize::from(server)) {
            if was_silent {
                known.fresh_since = Some(now);
                known.learned = LearnedWeight::default();
            }
            known.reported_at = Some(now);
            known.report = report;
        }
        self.refresh(now);
    }

    /// A placement moved load between two reports: the table says what the next report is expected to say.
    pub fn correct_load(&mut self, server: ServerIndex, by_rps: f64) {
        if let Some(known) = self.servers.get_mut(usize::from(server)) {
            known.report.load_rps = (known.report.load_rps + by_rps).max(0.0);
        }
    }

    /// Takes the result of a request to the server. Failures in a row eject it.
    pub fn finished(&mut self, now: Instant, server: ServerIndex, succeeded: bool) {
        let others = self.servers.iter().enumerate().filter(|(other, _)| *other != usize::from(server));
        let judged = others.filter(|(_, it)| it.ejection.is_ejected(now)).count();
        let servers = self.servers.len();
        let room = Room { servers, judged, usable: servers.saturating_sub(judged + 1) };
        let Some(known) = self.servers.get_mut(usize::from(server)) else { return };
        if succeeded {
            known.ejection.succeeded(now);
        } else if known.ejection.failed(now, Failure::Reset, None, &self.settings.ejection, room).is_some() {
            self.refresh(now);
        }
    }

    /// Learns weights from the last reports of all usable servers; call it once for each round of reports.
    /// O(servers).
    pub fn learn(&mut self, now: Instant) {
        let Some(settings) = self.settings.learning else { return };
        let usable: Vec<usize> = (0..self.len()).filter(|&index| self.is_usable(now, index as u16)).collect();
        let pressure = |it: &Server| settings.pressure(&it.report, it.weight);
        let pressures = usable.iter().filter_map(|&index| pressure(&self.servers[index]));
        let (sum, count) = pressures.fold((0.0, 0u32), |(sum, count), it| (sum + it, count + 1));
        let mean = sum / f64::from(count.max(1));
        if mean < settings.mean_min() {
            return;
        }
        for index in usable {
            let server = &mut self.servers[index];
            if let Some(pressure) = pressure(server) {
                server.learned.update(pressure, mean, &settings);
            }
        }
        self.refresh(now);
    }

    /// Computes the shares; call it a few times a second, so that silence, ejection and slow start take
    /// effect. O(servers).
    pub fn refresh(&mut self, now: Instant) {
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            let start = server
                .fresh_since
                .map_or(1.0, |since| slow_start(now.saturating_since(since), self.settings.slow_start));
            let share = server.weight * start * server.learned.factor() * f64::from(SHARE_ONE);
            // A usable server has a share of one thousandth at least: zero means out.
            self.shares[index] =
                if self.is_usable(now, index as u16) { (share + 0.5).max(1.0) as u32 } else { 0 };
        }
    }

    /// The shares, as of the last refresh.
    #[must_use]
    pub fn shares(&self) -> &[u32] {
        &self.shares
    }

    /// Requests per second of the last report, corrected by what was placed since. Zero for an unknown
    /// server.
    #[must_use]
    pub fn load_rps(&self, server: ServerIndex) -> f64 {
        self.servers.get(usize::from(server)).map_or(0.0, |it| it.report.load_rps)
    }

    /// The configured weight. Zero for an unknown server.
    #[must_use]
    pub fn weight(&self, server: ServerIndex) -> f64 {
        self.servers.get(usize::from(server)).map_or(0.0, |it| it.weight)
    }

    /// Time of the server's last report.
    #[must_use]
    pub fn reported_at(&self, server: ServerIndex) -> Option<Instant> {
        self.servers.get(usize::from(server)).and_then(|it| it.reported_at)
    }

    /// Returns whether the server may get requests: neither silent nor ejected.
    #[must_use]
    pub fn is_usable(&self, now: Instant, server: ServerIndex) -> bool {
        let known = self.servers.get(usize::from(server));
        known.is_some_and(|it| !it.ejection.is_ejected(now)) && !self.is_silent(now, server)
    }

    /// Silent for more than three report intervals, counted from when it was added where it never reported.
    fn is_silent(&self, now: Instant, server: ServerIndex) -> bool {
        let limit = self.settings.report_interval * REPORTS_MISSED_MAX;
        let Some(known) = self.servers.get(usize::from(server)) else { return true };
        now.saturating_since(known.reported_at.unwrap_or(known.added_at)) > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: shares follow slow start, ejection and silence.
    #[test]
    fn shares_say_who_gets_how_much() {
        let settings = ServerSettings { slow_start: Duration::from_secs(10), ..ServerSettings::default() };
        let mut table = ServerTable::new(settings).unwrap();
        for (weight, is_fresh) in [(1.0, false), (2.0, false), (1.0, true)] {
            table.add(Instant::ZERO, weight, is_fresh).unwrap();
        }
        assert_eq!(table.shares(), [1_024, 2_048, 102]);
        table.refresh(Instant::from_secs(5));
        assert_eq!(table.shares(), [1_024, 2_048, 512]);
        (0..5).for_each(|_| table.finished(Instant::from_secs(5), 1, false));
        assert_eq!(table.shares(), [1_024, 0, 512]);
        table.refresh(Instant::from_secs(15));
        assert_eq!(table.shares(), [1_024, 2_048, 1_024]);
        let report = ServerReport { load_rps: 100.0, response_ms: None, utilisation: None };
        (0..2).for_each(|server| table.report(Instant::from_secs(20), server, report));
        table.refresh(Instant::from_secs(31));
        assert_eq!(table.shares(), [1_024, 2_048, 0]);
        table.report(Instant::from_secs(40), 2, report);
        assert_eq!(table.shares(), [1_024, 2_048, 102]);
    }

    #[test]
    fn reports_that_are_no_rates_and_unknown_servers_are_ignored() {
        let mut table = ServerTable::new(ServerSettings::default()).unwrap();
        let server = table.add(Instant::ZERO, 1.0, false).unwrap();
        for load_rps in [f64::NAN, -1.0, f64::INFINITY] {
            table.report(
                Instant::ZERO,
                server,
                ServerReport { load_rps, response_ms: None, utilisation: None },
            );
        }
        table.report(Instant::ZERO, 9, ServerReport { load_rps: 5.0, response_ms: None, utilisation: None });
        assert_eq!((table.load_rps(server), table.reported_at(server)), (0.0, None));
        assert!(table.add(Instant::ZERO, f64::NAN, false).is_err());
    }
}
