//! The metric catalogue: every counter, gauge and histogram Flashweir exports, by name.
//!
//! Each worker owns a [`WorkerMetrics`] that it alone writes: relaxed atomics in arrays indexed by enums, so
//! that counting takes no lock, no allocation and no look-up by string. The control thread owns
//! [`ControlMetrics`]. A scrape ([`Telemetry::open_metrics`]) sums over the workers. Labels are closed enums
//! or small indices, never client addresses or URLs.
//!
//! ```
//! use flashweir_core::Reason;
//! use flashweir_telemetry::Telemetry;
//! let telemetry = Telemetry::new(2, "0.1.0");
//! telemetry.worker(0).requests.offered.increment();
//! telemetry.worker(1).requests.offered.increment();
//! telemetry.worker(1).requests.shed.increment(Reason::FlashCrowd);
//! let text = telemetry.open_metrics();
//! assert!(text.contains("flashweir_requests_offered_total 2\n"));
//! assert!(text.contains("flashweir_requests_shed_total{reason=\"flash_crowd\"} 1\n"));
//! ```

mod candidates;
mod catalogue;
mod classes;
mod control;
mod counter;
mod histogram;
mod kernel;
mod label;
mod log;
mod open_metrics;
pub mod reference;
mod worker;

pub use candidates::{CandidateNews, CandidateSlot};
pub use classes::{ClassMetrics, ClassNews, ClassSlot, ClassTable};
pub use control::{ControlMetrics, UpstreamHealth};
pub use counter::{Counter, CounterSet};
pub use histogram::Histogram;
pub use kernel::{KernelCounts, KernelFigures, KernelFlows, KernelQueue, KernelService, KernelTier};
pub use label::{
    BadRequest, Bound, ConnectionFailure, HttpVersion, Label, LoadReportOutcome, Outcome, StatusClass,
    Unmeasured, UpstreamFailure,
};
pub use log::{Happening, Warnings};
pub use open_metrics::OPEN_METRICS_CONTENT_TYPE;
pub use worker::{
    ConnectionMetrics, MeasurementMetrics, RequestMetrics, ResponseMetrics, UpstreamMetrics, WorkerMetrics,
};

use std::sync::Arc;

use prometheus_client::registry::Registry;

/// All metrics of one gateway. A value, not a global: a test or a second gateway in the process has its own.
#[derive(Debug)]
pub struct Telemetry {
    catalogue: Arc<catalogue::Catalogue>,
    registry: Registry,
}

impl Telemetry {
    /// Metrics for this many workers; `version` is what `flashweir_build_info` tells.
    #[must_use]
    pub fn new(workers: usize, version: &'static str) -> Self {
        let catalogue = Arc::new(catalogue::Catalogue::new(workers, version));
        let mut registry = Registry::with_prefix("flashweir");
        registry.register_collector(Box::new(open_metrics::Exporter(Arc::clone(&catalogue))));
        Self { catalogue, registry }
    }

    /// What worker `index` writes.
    ///
    /// # Panics
    /// When there is no such worker: the caller starts exactly as many as it asked metrics for.
    #[must_use]
    pub fn worker(&self, index: usize) -> Arc<WorkerMetrics> {
        Arc::clone(&self.catalogue.workers[index])
    }

    /// What the control thread writes.
    #[must_use]
    pub fn control(&self) -> Arc<ControlMetrics> {
        Arc::clone(&self.catalogue.control)
    }

    /// Rate-limited warnings, shared by all threads and counted.
    #[must_use]
    pub fn warnings(&self) -> Arc<Warnings> {
        Arc::clone(&self.catalogue.warnings)
    }

    /// One number of all workers together, for `/status`: `sum(|worker| worker.requests.admitted.value())`.
    #[must_use]
    pub fn sum(&self, value: impl Fn(&WorkerMetrics) -> u64) -> u64 {
        self.catalogue.sum(value)
    }

    /// Requests admitted and not finished yet.
    #[must_use]
    pub fn requests_in_flight(&self) -> u64 {
        self.catalogue.requests_in_flight()
    }

    /// Connections from clients that are open.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.catalogue.connections_open()
    }

    /// The whole catalogue as OpenMetrics text ([`OPEN_METRICS_CONTENT_TYPE`]). Reads every counter of
    /// every worker, without stopping them.
    #[must_use]
    pub fn open_metrics(&self) -> String {
        open_metrics::encode(&self.registry)
    }
}
