//! For which hosts the cache is in use where it is used in crowds only.
//!
//! A host is **opened** when the detector names it as a hot spot, or when the service is short because of a
//! crowd and the host has at least a quarter of the rise (its rate is at least one and a half times its usual
//! one). It is **closed** when for ten seconds its demand, what the cache answers included, was no more than
//! twice the usual (at least a tenth of the crowd's peak), and neither the detector nor a shortage spoke for
//! it.
//!
//! The demand must be counted with what the cache answers: once the cache works the origin sees no crowd, and
//! a rule that asks the origin would close, be overrun, and open again. The usual rate is remembered from
//! before the opening for the same reason.
//!
//! Memory: at most [`HOT_SPOT_ENTRIES`] hosts of 48 bytes. Cost of an evaluation: a few operations for each.

use flashweir_core::limits::{HOT_SPOT_ENTRIES, HOT_SPOTS_LIMITED};
use flashweir_core::{Duration, Instant};

/// As for hot spots: an opened host has at least this part of the rise.
const SHARE_OF_RISE: f64 = 0.25;
/// And its rate is at least this multiple of the usual one: without a rise the service is slow, and a cache
/// of seconds is no cure.
const RISE_MIN: f64 = 1.5;
/// Memory of the rates, as for hot spots.
const CURRENT_MEMORY_S: f64 = 1.0;
const USUAL_MEMORY_S: f64 = 60.0;
/// A crowd is over when the demand is down to this multiple of the usual one,
const OVER_BELOW_USUAL: f64 = 2.0;
/// or to this part of its peak, where nothing usual is known.
const OVER_BELOW_PEAK: f64 = 0.1;
/// For how long it must be so.
const CLOSES_AFTER: Duration = Duration::from_secs(10);
/// Below this rate a host is forgotten.
const RATE_MIN: f64 = 1e-3;

/// Requests for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Its hot-spot key.
    pub key: u64,
    /// Requests that arrived since the last evaluation, whether the cache or the origin answered them.
    pub requests: u64,
}

/// State of the detector and the verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pressure<'a> {
    /// Hosts to which a crowd came.
    pub hot: &'a [u64],
    /// Requests are refused, or must be, because more people came than can be served.
    pub is_crowd: bool,
}

/// A host for which the cache is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenHost {
    /// Its hot-spot key.
    pub key: u64,
    /// Since when.
    pub since: Instant,
    /// Its demand, requests per second.
    pub demand_rps: f64,
    /// Its demand before the crowd.
    pub usual_rps: f64,
    /// The highest since it was opened.
    pub peak_rps: f64,
    /// Time at which it last looked like a crowd.
    crowded_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct HostRate {
    key: u64,
    pending: u64,
    current_rps: f64,
    usual_rps: f64,
}

/// Decides for which hosts the cache is in use. Knows demand and time, and nothing of requests.
#[derive(Debug, Default)]
pub struct Opening {
    hosts: Vec<HostRate>,
    open: Vec<OpenHost>,
    evaluated_at: Option<Instant>,
}

impl Opening {
    /// Adds requests for a host. A full table replaces its quietest host.
    pub fn count(&mut self, demand: Demand) {
        let Demand { key, requests } = demand;
        if let Some(known) = self.hosts.iter_mut().find(|host| host.key == key) {
            known.pending += requests;
            return;
        }
        let new = HostRate { key, pending: requests, current_rps: 0.0, usual_rps: 0.0 };
        if self.hosts.len() < HOT_SPOT_ENTRIES {
            self.hosts.push(new);
            return;
        }
        let open = &self.open;
        let replaceable = self.hosts.iter_mut().filter(|host| open.iter().all(|open| open.key != host.key));
        let quietest = replaceable.min_by(|a, b| rank(a).total_cmp(&rank(b)));
        if let Some(quietest) = quietest.filter(|quietest| quietest.pending < requests) {
            *quietest = new;
        }
    }

    /// Ends an interval. Whether other hosts are open now than before.
    pub fn evaluate(&mut self, now: Instant, pressure: &Pressure<'_>) -> bool {
        let span = self.evaluated_at.map(|last| now.saturating_since(last));
        self.evaluated_at = Some(now);
        // The first interval has no length.
        let Some(span) = span.filter(|span| !span.is_zero()) else { return false };
        self.follow_rates(span, pressure);
        let before: Vec<u64> = self.open.iter().map(|host| host.key).collect();
        self.close(now, pressure);
        self.open_hot(now, pressure);
        !self.open.iter().map(|host| host.key).eq(before)
    }

    /// The hosts for which the cache is in use, at most [`HOT_SPOTS_LIMITED`].
    #[must_use]
    pub fn open_hosts(&self) -> &[OpenHost] {
        &self.open
    }

    fn follow_rates(&mut self, span: Duration, pressure: &Pressure<'_>) {
        let span_s = span.as_secs_f64();
        let (current, usual) = ((-span_s / CURRENT_MEMORY_S).exp(), (-span_s / USUAL_MEMORY_S).exp());
        let open = &self.open;
        for host in &mut self.hosts {
            let rate_rps = host.pending as f64 / span_s;
            host.pending = 0;
            host.current_rps = current * host.current_rps + (1.0 - current) * rate_rps;
            // The rate in a crowd does not count as usual.
            let is_usual = !pressure.is_crowd
                && !pressure.hot.contains(&host.key)
                && open.iter().all(|open| open.key != host.key);
            if is_usual {
                host.usual_rps = usual * host.usual_rps + (1.0 - usual) * rate_rps;
            }
        }
        self.hosts.retain(|host| {
            host.current_rps + host.usual_rps > RATE_MIN || open.iter().any(|open| open.key == host.key)
        });
    }

    fn close(&mut self, now: Instant, pressure: &Pressure<'_>) {
        let hosts = &self.hosts;
        let has_risen = |key: u64| hosts.iter().any(|host| host.key == key && has_risen(host));
        for open in &mut self.open {
            open.demand_rps =
                hosts.iter().find(|host| host.key == open.key).map_or(0.0, |host| host.current_rps);
            open.peak_rps = open.peak_rps.max(open.demand_rps);
            let over_below = (OVER_BELOW_USUAL * open.usual_rps).max(OVER_BELOW_PEAK * open.peak_rps);
            let is_pressed = pressure.hot.contains(&open.key) || (pressure.is_crowd && has_risen(open.key));
            if open.demand_rps > over_below || is_pressed {
                open.crowded_at = now;
            }
        }
        self.open.retain(|open| now.saturating_since(open.crowded_at) < CLOSES_AFTER);
    }

    fn open_hot(&mut self, now: Instant, pressure: &Pressure<'_>) {
        let rise = |host: &HostRate| (host.current_rps - host.usual_rps).max(0.0);
        let total: f64 = self.hosts.iter().map(rise).sum();
        let is_hot = |host: &HostRate| {
            pressure.hot.contains(&host.key)
                || (pressure.is_crowd && has_risen(host) && rise(host) >= SHARE_OF_RISE * total)
        };
        let mut hot: Vec<&HostRate> = self.hosts.iter().filter(|host| is_hot(host)).collect();
        hot.sort_by(|a, b| rise(b).total_cmp(&rise(a)).then(a.key.cmp(&b.key)));
        for host in hot {
            if self.open.len() >= HOT_SPOTS_LIMITED || self.open.iter().any(|open| open.key == host.key) {
                continue;
            }
            let &HostRate { key, current_rps, usual_rps, .. } = host;
            self.open.push(OpenHost {
                key,
                since: now,
                demand_rps: current_rps,
                usual_rps,
                peak_rps: current_rps,
                crowded_at: now,
            });
        }
    }
}

fn has_risen(host: &HostRate) -> bool {
    host.current_rps > 0.0 && host.current_rps >= RISE_MIN * host.usual_rps
}

fn rank(host: &HostRate) -> f64 {
    host.pending as f64 + host.current_rps + host.usual_rps
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Pressure<'static> = Pressure { hot: &[], is_crowd: false };
    const CROWD: Pressure<'static> = Pressure { hot: &[], is_crowd: true };

    /// Ten evaluations a second for `seconds`, with these rates of hosts 1, 2, …; the number of the last
    /// tenth.
    fn run(opening: &mut Opening, from: u64, seconds: u64, rates: &[u64], pressure: &Pressure<'_>) -> u64 {
        for tenth in from + 1..=from + 10 * seconds {
            for (index, rate) in rates.iter().enumerate() {
                opening.count(Demand { key: index as u64 + 1, requests: rate / 10 });
            }
            opening.evaluate(Instant::from_millis(100 * tenth), pressure);
        }
        from + 10 * seconds
    }

    fn open(opening: &Opening) -> Vec<u64> {
        opening.open_hosts().iter().map(|host| host.key).collect()
    }

    #[test]
    fn nothing_is_open_in_calm_nor_when_the_service_is_only_slow() {
        let mut opening = Opening::default();
        let at = run(&mut opening, 0, 120, &[100, 100], &CALM);
        assert!(open(&opening).is_empty());
        let at = run(&mut opening, at, 20, &[100, 110], &CROWD);
        assert!(open(&opening).is_empty(), "no host has risen");
        run(&mut opening, at, 20, &[1_000, 1_000], &CALM);
        assert!(open(&opening).is_empty(), "a surge that the service carries");
    }

    #[test]
    fn the_host_that_has_the_rise_is_opened_at_once_and_its_neighbour_is_not() {
        let mut opening = Opening::default();
        let at = run(&mut opening, 0, 120, &[100, 500], &CALM);
        for tenth in at + 1..=at + 5 {
            opening.count(Demand { key: 1, requests: 500 });
            opening.count(Demand { key: 2, requests: 50 });
            opening.evaluate(Instant::from_millis(100 * tenth), &CROWD);
        }
        assert_eq!(open(&opening), [1]);
        let usual = opening.open_hosts()[0].usual_rps;
        assert!((80.0..=120.0).contains(&usual), "{usual}");
    }

    #[test]
    fn a_host_that_the_detector_names_is_opened_whatever_else() {
        let mut opening = Opening::default();
        let at = run(&mut opening, 0, 10, &[100, 100], &CALM);
        run(&mut opening, at, 1, &[110, 100], &Pressure { hot: &[1], is_crowd: false });
        assert_eq!(open(&opening), [1]);
    }

    #[test]
    fn it_stays_open_while_the_cache_answers_the_crowd_and_closes_when_that_goes() {
        let mut opening = Opening::default();
        let at = run(&mut opening, 0, 120, &[100], &CALM);
        let at = run(&mut opening, at, 2, &[5_000], &CROWD);
        assert_eq!(open(&opening), [1]);
        // The cache answers: no pressure any more, for ten minutes.
        let at = run(&mut opening, at, 600, &[5_000], &CALM);
        assert_eq!(open(&opening), [1], "the demand is what counts");
        let at = run(&mut opening, at, 9, &[150], &CALM);
        assert_eq!(open(&opening), [1], "a lull is no end");
        run(&mut opening, at, 10, &[150], &CALM);
        assert!(open(&opening).is_empty());
    }

    #[test]
    fn a_crowd_that_comes_at_the_start_opens_without_anything_usual() {
        let mut opening = Opening::default();
        let at = run(&mut opening, 0, 1, &[5_000], &CROWD);
        assert_eq!(open(&opening), [1]);
        let at = run(&mut opening, at, 60, &[1_000], &CALM);
        assert_eq!(open(&opening), [1]);
        run(&mut opening, at, 20, &[300], &CALM);
        assert!(open(&opening).is_empty());
    }

    #[test]
    fn no_more_hosts_than_can_be_hot_and_no_time_is_no_evaluation() {
        let mut opening = Opening::default();
        let keys: Vec<u64> = (1..=10).collect();
        run(&mut opening, 0, 1, &[100; 10], &Pressure { hot: &keys, is_crowd: true });
        assert_eq!(open(&opening).len(), HOT_SPOTS_LIMITED);
        assert!(!opening.evaluate(Instant::from_millis(1_000), &CALM), "no time has passed");
    }

    #[test]
    fn the_table_is_bounded_and_keeps_open_hosts() {
        let mut opening = Opening::default();
        run(&mut opening, 0, 1, &[1_000], &CROWD);
        for key in 100..100 + 3 * HOT_SPOT_ENTRIES as u64 {
            opening.count(Demand { key, requests: 1_000_000 });
        }
        assert_eq!(opening.hosts.len(), HOT_SPOT_ENTRIES);
        opening.evaluate(Instant::from_secs(2), &CALM);
        assert_eq!(open(&opening), [1]);
    }
}
