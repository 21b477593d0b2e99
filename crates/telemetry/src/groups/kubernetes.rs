//! Readings, plans and orders of the controller of a Kubernetes cluster.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Outcome;
use crate::Telemetry;
use crate::counter::CounterSet;
use crate::group::{MetricGroup, Scrape, flag};

/// Written by the controller alone, read by scrapes.
#[derive(Debug, Default)]
pub struct KubernetesMetrics {
    /// Readings of the cluster, all policies together.
    pub readings: CounterSet<Outcome>,
    /// Writes of replicas.
    pub orders: CounterSet<Outcome>,
    /// Writes of policies' status.
    pub status_writes: CounterSet<Outcome>,
    /// Events published.
    pub events: CounterSet<Outcome>,
    is_leading: AtomicBool,
    policies: Mutex<Vec<PolicyFigures>>,
}

/// The numbers of one policy; none where nothing is known, or another leads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFigures {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub policy: String,
    /// Replicas that it wants.
    pub desired: Option<u32>,
    /// Pods that are ready.
    pub ready: Option<u32>,
    /// True if it sets replicas.
    pub is_active: bool,
    /// Gateways that answered.
    pub gateways: Option<usize>,
    /// Unique offered requests a second.
    pub offered_rps: Option<f64>,
    /// Offered requests a second that are refused for want of capacity.
    pub unmet_rps: Option<f64>,
    /// The rate that replicas are planned for.
    pub forecast_rps: Option<f64>,
}

impl KubernetesMetrics {
    /// Sets whether this copy leads.
    pub fn set_leading(&self, is_leading: bool) {
        self.is_leading.store(is_leading, Ordering::Relaxed);
    }

    /// Returns whether the cluster was read at least once.
    #[must_use]
    pub fn has_read(&self) -> bool {
        self.readings.value(Outcome::Ok) > 0
    }

    /// Replaces the numbers of all policies.
    pub fn replace(&self, policies: Vec<PolicyFigures>) {
        *self.policies.lock().unwrap_or_else(PoisonError::into_inner) = policies;
    }
}

impl Telemetry {
    /// Metrics of the controller of a Kubernetes cluster, which has no workers.
    #[must_use]
    pub fn kubernetes(metrics: Arc<KubernetesMetrics>, version: &'static str) -> Self {
        let mut all = Self::new(0);
        all.register(metrics);
        all.register_build(version);
        all
    }
}

const POLICY: &[&str] = &["namespace", "policy"];

type Figure = (&'static str, &'static str, fn(&PolicyFigures) -> Option<f64>);

const FIGURES: &[Figure] = &[
    ("policy_replicas_desired", "Replicas that the demand needs, within the policy's bounds.", |it| {
        it.desired.map(f64::from)
    }),
    ("policy_replicas_ready", "Pods that are ready.", |it| it.ready.map(f64::from)),
    (
        "policy_active",
        "1 where the policy sets replicas, 0 where it only publishes them or cannot be followed.",
        |it| Some(flag(it.is_active)),
    ),
    ("policy_gateways_read", "Gateways that answered at the last plan.", |it| {
        it.gateways.map(|count| count as f64)
    }),
    ("policy_demand_offered_requests_per_second", "Unique offered, as planned with.", |it| it.offered_rps),
    (
        "policy_demand_unmet_requests_per_second",
        "Those of the last seconds that were refused for want of capacity.",
        |it| it.unmet_rps,
    ),
    ("policy_demand_forecast_requests_per_second", "The rate replicas are planned for.", |it| {
        it.forecast_rps
    }),
];

impl MetricGroup for KubernetesMetrics {
    fn title(&self) -> &'static str {
        "Policies in Kubernetes"
    }

    fn export(&self, scrape: &mut Scrape) {
        let policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for &(name, help, value) in FIGURES {
            let labels = |it: &PolicyFigures| vec![it.namespace.clone(), it.policy.clone()];
            let series = policies.iter().filter_map(|it| Some((labels(it), value(it)?)));
            scrape.gauge_series(name, help, POLICY, series);
        }
        let help = "Whether this copy of the controller leads.";
        scrape.flag("kubernetes_leading", help, self.is_leading.load(Ordering::Relaxed));
        let help = "Readings of the cluster; without one replicas stay as they are.";
        scrape.counter_set("kubernetes_readings", help, &[self], |it| &it.readings);
        let help = "Writes of replicas; failed ones are given again.";
        scrape.counter_set("kubernetes_orders", help, &[self], |it| &it.orders);
        scrape.counter_set("kubernetes_status_writes", "Writes of policies' status.", &[self], |it| {
            &it.status_writes
        });
        scrape.counter_set("kubernetes_events", "Events published.", &[self], |it| &it.events);
    }
}
