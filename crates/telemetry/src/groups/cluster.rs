//! This gateway as one of several before the same services.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ControlMetrics;
use crate::group::{MetricGroup, Row, Scrape};
use crate::label::labels;

/// One service whose limit is shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFigures {
    /// Its name.
    pub service: String,
    /// The limit of all gateways together, requests in flight.
    pub limit: f64,
    /// The part of it that this gateway may use.
    pub share: f64,
    /// Requests of other gateways at the origin.
    pub elsewhere: u32,
    /// Gateways that have shares.
    pub gateways: usize,
    /// Age of the last share that was heard of, seconds; none before the first.
    pub silence_s: Option<f64>,
    /// By which plan this gateway acts.
    pub standing: &'static str,
}

/// All services.
#[derive(Debug, Default)]
pub(crate) struct ClusterMetrics {
    is_leader: AtomicBool,
    /// None but in Kubernetes.
    lease_writes: Mutex<Option<u64>>,
    services: Mutex<Vec<ClusterFigures>>,
}

/// The group.
#[derive(Debug)]
pub(crate) struct ClusterGroup(pub(crate) Arc<ControlMetrics>);

impl ControlMetrics {
    /// Publishes the figures of all services, and whether this gateway leads.
    pub fn publish_cluster(&self, is_leader: bool, services: Vec<ClusterFigures>) {
        self.cluster.is_leader.store(is_leader, Ordering::Relaxed);
        // Replaced whole: a writer that panicked leaves what was known before.
        *self.cluster.services.lock().unwrap_or_else(PoisonError::into_inner) = services;
    }

    /// Writes of the Lease in Kubernetes that this gateway has asked for since its start.
    pub fn publish_lease_writes(&self, writes: u64) {
        *self.cluster.lease_writes.lock().unwrap_or_else(PoisonError::into_inner) = Some(writes);
    }
}

impl MetricGroup for ClusterGroup {
    fn title(&self) -> &'static str {
        "Several gateways"
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.0.cluster.services.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for &(name, help, value) in GAUGES {
            let series = known.iter().filter_map(|known| Some((vec![known.service.clone()], value(known)?)));
            scrape.gauge_series(name, help, &["service"], series);
        }
        let standing =
            known.iter().map(|known| (vec![known.service.clone(), known.standing.to_owned()], 1.0));
        let help = "By which plan this gateway acts: joining, sharing, holding, equal or alone.";
        scrape.gauge_series("cluster_standing", help, &["service", "standing"], standing);
        let is_leader = self.0.cluster.is_leader.load(Ordering::Relaxed);
        scrape.flag("cluster_is_leader", "1 while this gateway divides the limits.", is_leader);
        let help = "Writes of the Lease that this gateway asked the API server of Kubernetes for; it writes nothing else there.";
        let writes = *self.0.cluster.lease_writes.lock().unwrap_or_else(PoisonError::into_inner);
        scrape.counter("cluster_lease_writes", help, writes);
        let help = "Reports of gateways to this one as their leader.";
        scrape.counter_set("cluster_reports", help, &[&*self.0], |control| &control.cluster_reports);
        let help = "Shares that this gateway heard of, by how they were taken.";
        scrape.counter_set("cluster_broadcasts", help, &[&*self.0], |control| &control.cluster_broadcasts);
    }
}

const GAUGES: &[Row<ClusterFigures, Option<f64>>] = &[
    ("cluster_limit_requests", "Requests at the origin that all gateways together may have.", |f| {
        Some(f.limit)
    }),
    ("cluster_share_requests", "The part of the limit that this gateway may use.", |f| Some(f.share)),
    ("cluster_elsewhere_requests", "Requests of other gateways at the origin.", |f| {
        Some(f64::from(f.elsewhere))
    }),
    ("cluster_gateways", "Gateways that have shares.", |f| Some(f.gateways as f64)),
    ("cluster_silence_seconds", "How long ago this gateway last heard of a share.", |f| f.silence_s),
];

labels! {
    /// Outcome of a report.
    ReportOutcome, "outcome" {
        /// It was counted.
        Counted => "counted",
        /// It was counted before, or is older than one that was.
        Stale => "stale",
        /// It is of no gateway of this cluster.
        Forged => "forged",
        /// It is no message, or of another version.
        Malformed => "malformed",
        /// It makes no sense here: another policy, a share that was never sent, or too many gateways.
        Refused => "refused",
    }
}

labels! {
    /// Outcome of a broadcast.
    BroadcastOutcome, "outcome" {
        /// It was put in force.
        New => "new",
        /// It was in force already.
        Repeated => "repeated",
        /// It is of a leader that another one has followed.
        Stale => "stale",
        /// It is of no gateway of this cluster, or no message.
        Forged => "forged",
        /// There was none.
        Missing => "missing",
    }
}
