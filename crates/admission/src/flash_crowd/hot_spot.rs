//! Finds the hosts the crowd went to, so that bystanders pass untouched (NEWS §4.4).
//!
//! A host is a hot-spot because its demand *rose*, not because it is large: each key's rate is compared with
//! its own rate before the alarm, and keys that make up at least a quarter of the whole increase are hot, at
//! most four. If nothing qualifies (the rise is spread out), everything is limited. Each hot-spot gets the
//! ceiling less the bystanders' rate, shared in proportion to its usual rate (or equally where none had any).
//!
//! Memory: two Space-Saving tables of 64 entries; cost per tick 64·64 comparisons at most.

use super::{HostCount, HotSpotLimit, Limit};
use alloc::vec::Vec;
use flashweir_core::limits::{HOT_SPOT_ENTRIES, HOT_SPOTS_LIMITED};
use flashweir_core::{Duration, Rate};

/// A hot-spot accounts for at least this part of the increase.
const SHARE_OF_INCREASE: f64 = 0.25;
/// Memory of the rates: current ones follow within a second, usual ones within a minute.
const CURRENT_MEMORY_S: f64 = 1.0;
const USUAL_MEMORY_S: f64 = 60.0;
/// A hot-spot always gets this part of the ceiling, however much its bystanders take.
const LEAST_SHARE: f64 = 0.1;

/// Rates by host key.
#[derive(Debug, Default)]
pub(super) struct HotSpots {
    hosts: Vec<HostRate>,
}

#[derive(Clone, Copy, Debug)]
struct HostRate {
    key: u64,
    pending: u64,
    current_rps: f64,
    usual_rps: f64,
}

impl HotSpots {
    /// Adds one gate's counts.
    pub(super) fn count(&mut self, hosts: &[HostCount]) {
        for host in hosts.iter().take(HOT_SPOT_ENTRIES) {
            if let Some(known) = self.hosts.iter_mut().find(|known| known.key == host.key) {
                known.pending += host.hits;
            } else {
                self.insert(*host);
            }
        }
    }

    /// A full table replaces its quietest host; that one was no hot-spot.
    fn insert(&mut self, host: HostCount) {
        let new = HostRate { key: host.key, pending: host.hits, current_rps: 0.0, usual_rps: 0.0 };
        if self.hosts.len() < HOT_SPOT_ENTRIES {
            self.hosts.push(new);
        } else if let Some(quietest) = self
            .hosts
            .iter_mut()
            .min_by(|a, b| rank(a).total_cmp(&rank(b)))
            .filter(|q| q.pending < new.pending)
        {
            *quietest = new;
        }
    }

    /// Ends a tick of length `span`; usual rates follow only while `learning` (no alarm).
    pub(super) fn close(&mut self, span: Duration, learning: bool) {
        let span_s = span.as_secs_f64().max(1e-9);
        let (current, usual) = (libm::exp(-span_s / CURRENT_MEMORY_S), libm::exp(-span_s / USUAL_MEMORY_S));
        for host in &mut self.hosts {
            let rate_rps = host.pending as f64 / span_s;
            host.pending = 0;
            host.current_rps = current * host.current_rps + (1.0 - current) * rate_rps;
            if learning {
                host.usual_rps = usual * host.usual_rps + (1.0 - usual) * rate_rps;
            }
        }
        self.hosts.retain(|host| host.current_rps + host.usual_rps > 1e-3);
    }

    /// The hosts to which the increase went, the most first; none where it went to all.
    pub(super) fn hot(&self) -> Vec<u64> {
        self.rose().iter().map(|host| host.key).collect()
    }

    fn rose(&self) -> Vec<&HostRate> {
        let increase = |host: &HostRate| (host.current_rps - host.usual_rps).max(0.0);
        let total_increase: f64 = self.hosts.iter().map(increase).sum();
        let mut hot: Vec<&HostRate> = self
            .hosts
            .iter()
            .filter(|host| total_increase > 0.0 && increase(host) >= SHARE_OF_INCREASE * total_increase)
            .collect();
        hot.sort_by(|a, b| increase(b).total_cmp(&increase(a)).then(a.key.cmp(&b.key)));
        hot.truncate(HOT_SPOTS_LIMITED);
        if hot.len() == self.hosts.len() { Vec::new() } else { hot }
    }

    /// The ceiling, narrowed to the hot-spots where there are any.
    pub(super) fn narrow(&self, ceiling_rps: f64) -> Limit {
        let hot = self.rose();
        if hot.is_empty() {
            return Limit::All(Rate::from_per_second(ceiling_rps));
        }
        let all_rps: f64 = self.hosts.iter().map(|host| host.current_rps).sum();
        let bystanders_rps = all_rps - hot.iter().map(|host| host.current_rps).sum::<f64>();
        let for_hot_rps = (ceiling_rps - bystanders_rps).max(LEAST_SHARE * ceiling_rps);
        let usual_total: f64 = hot.iter().map(|host| host.usual_rps).sum();
        let share = |host: &HostRate| {
            if usual_total > 0.0 { host.usual_rps / usual_total } else { 1.0 / hot.len() as f64 }
        };
        Limit::HotSpots(
            hot.iter()
                .map(|host| HotSpotLimit {
                    key: host.key,
                    rate: Rate::from_per_second((for_hot_rps * share(host)).max(1.0)),
                })
                .collect(),
        )
    }
}

fn rank(host: &HostRate) -> f64 {
    host.pending as f64 + host.current_rps + host.usual_rps
}
