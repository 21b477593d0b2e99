//! Metrics: registry, label types, encoding, counters with one writer each, and warnings that stay readable
//! under load.
//!
//! A component's metrics are one [`MetricGroup`], in one file in `groups`; a shell exports the groups that it
//! has ([`Telemetry::gateway`], [`Telemetry::router`], [`Telemetry::egress`]), and a component may
//! [`register`](Telemetry::register) its own.
//!
//! Each worker owns a [`WorkerMetrics`] that it alone writes: relaxed atomics in arrays indexed by enums, so
//! that counting takes no lock, no allocation and no look-up by string. The control thread owns
//! [`ControlMetrics`]. A scrape ([`Telemetry::open_metrics`]) sums over the workers. Labels are closed enums
//! or small indices, never client addresses or URLs.
//!
//! ```
//! use flashweir_core::Reason;
//! use flashweir_telemetry::Telemetry;
//! let telemetry = Telemetry::gateway(2, "0.1.0");
//! telemetry.worker(0).requests.offered.increment();
//! telemetry.worker(1).requests.offered.increment();
//! telemetry.worker(1).requests.shed.increment(Reason::FlashCrowd);
//! let text = telemetry.open_metrics();
//! assert!(text.contains("flashweir_requests_offered_total 2\n"));
//! assert!(text.contains("flashweir_requests_shed_total{reason=\"flash_crowd\"} 1\n"));
//! ```

mod by_class;
mod counter;
mod group;
mod groups;
mod histogram;
mod label;
mod log;
mod open_metrics;
mod prometheus_text;
pub mod reference;
#[cfg(test)]
mod tests;

pub use counter::{Counter, CounterSet};
pub use group::{CounterRow, LabelNames, MetricGroup, Row, Scrape, WorkerGroup};
pub use groups::*;
pub use histogram::Histogram;
pub use label::Label;
pub use log::{Happening, Warnings, count_dropped_lines};
pub use open_metrics::OPEN_METRICS_CONTENT_TYPE;
pub use prometheus_text::PROMETHEUS_CONTENT_TYPE;

use std::sync::Arc;

use prometheus_client::registry::Registry;

/// The metrics of one shell. A value, not a global: a test or a second gateway in the process has its own.
#[derive(Debug)]
pub struct Telemetry {
    workers: Arc<[Arc<WorkerMetrics>]>,
    control: Arc<ControlMetrics>,
    warnings: Arc<Warnings>,
    groups: Vec<Arc<dyn MetricGroup>>,
    registry: Registry,
}

impl Telemetry {
    /// Counters for this many workers, of which nothing is exported yet.
    fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            control: Arc::default(),
            warnings: Arc::default(),
            groups: Vec::new(),
            registry: Registry::with_prefix("flashweir"),
        }
    }

    /// Exports this group, too, after those before it. Names must be new.
    pub fn register(&mut self, group: Arc<dyn MetricGroup>) {
        self.registry.register_collector(Box::new(open_metrics::Exporter(Arc::clone(&group))));
        self.groups.push(group);
    }

    fn register_workers<G: WorkerGroup>(&mut self, of: fn(&WorkerMetrics) -> &G) {
        self.register(Arc::new(group::OfWorkers { workers: Arc::clone(&self.workers), of }));
    }

    pub(crate) fn groups(&self) -> &[Arc<dyn MetricGroup>] {
        &self.groups
    }

    /// The metrics that worker `index` writes.
    ///
    /// # Panics
    /// When there is no such worker: the caller starts exactly as many as it asked metrics for.
    #[must_use]
    pub fn worker(&self, index: usize) -> Arc<WorkerMetrics> {
        Arc::clone(&self.workers[index])
    }

    /// The metrics that the control thread writes.
    #[must_use]
    pub fn control(&self) -> Arc<ControlMetrics> {
        Arc::clone(&self.control)
    }

    /// Rate-limited warnings, shared by all threads and counted.
    #[must_use]
    pub fn warnings(&self) -> Arc<Warnings> {
        Arc::clone(&self.warnings)
    }

    /// One number of all workers together, for `/status`: `sum(|worker| worker.requests.admitted.value())`.
    #[must_use]
    pub fn sum(&self, value: impl Fn(&WorkerMetrics) -> u64) -> u64 {
        self.workers.iter().map(|worker| value(worker)).sum()
    }

    /// Everything registered as OpenMetrics text ([`OPEN_METRICS_CONTENT_TYPE`]). Reads every counter of
    /// every worker, without stopping them.
    #[must_use]
    pub fn open_metrics(&self) -> String {
        open_metrics::encode(&self.registry)
    }

    /// The same as Prometheus text ([`PROMETHEUS_CONTENT_TYPE`]).
    #[must_use]
    pub fn prometheus_text(&self) -> String {
        prometheus_text::from_open_metrics(&self.open_metrics())
    }
}
