//! State that the threads of a node share.

use super::counts::Sample;
use super::station::Station;
use crate::cache::PurgeQuery;
use arc_swap::ArcSwap;
use flashweir_config::{Replication, ReplicationRole};
use flashweir_core::{Instant, limits};
use flashweir_replication::RoutingPlan;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The shared state.
pub(crate) struct ReplicationShared {
    /// Plan of the documents' places.
    pub(super) plan: Arc<ArcSwap<RoutingPlan>>,
    pub(crate) samples_in: mpsc::Sender<Sample>,
    samples: Mutex<Option<mpsc::Receiver<Sample>>>,
    /// Of a redirector. Used by the control thread alone.
    station: Option<Mutex<Station>>,
}

impl ReplicationShared {
    pub(crate) fn new(config: &Replication, workers: usize) -> Self {
        let (samples_in, samples) = mpsc::channel(limits::SAMPLES_QUEUED * workers.max(1));
        let is_redirector = config.role == ReplicationRole::Redirector;
        let station = is_redirector.then(|| Station::new(config, Instant::ZERO).map(Mutex::new));
        let station = station.and_then(|station| {
            // The configuration's checks leave nothing to refuse.
            station.inspect_err(|error| tracing::error!("no request is routed to replicas: {error}")).ok()
        });
        let plan =
            station.as_ref().map(|station| lock(station).routing_plan(Instant::ZERO)).unwrap_or_default();
        Self {
            plan: Arc::new(ArcSwap::from_pointee(plan)),
            samples_in,
            samples: Mutex::new(Some(samples)),
            station,
        }
    }

    /// The samples of all workers, for the one task that reads them.
    pub(super) fn take_samples(&self) -> Option<mpsc::Receiver<Sample>> {
        lock(&self.samples).take()
    }

    pub(super) fn station(&self) -> Option<MutexGuard<'_, Station>> {
        self.station.as_ref().map(lock)
    }

    /// A purge at a redirector is one of all its replicas: each gets it with the answer to its next report.
    /// How many there are; none where this is no redirector.
    pub(crate) fn order_purge(&self, query: &PurgeQuery) -> Option<usize> {
        self.station().map(|mut station| station.order_purge(&query.to_string()))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one call, which leaves whole values.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ReplicationShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicationShared").field("plan", &self.plan).finish_non_exhaustive()
    }
}
