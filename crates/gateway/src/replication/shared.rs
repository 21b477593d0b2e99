//! State that the threads of a node share, and its documents on the admin listener.

use super::counts::Sample;
use super::document::{Document, hasher};
use super::report::{Report, ReportError};
use super::station::{ReplicaReportRefusal, Station};
use crate::cache::PurgeQuery;
use crate::shared::Shared;
use arc_swap::ArcSwap;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use flashweir_config::{Replication, ReplicationRole};
use flashweir_core::{Instant, limits};
use flashweir_replication::RoutingPlan;
use flashweir_runtime::problem;
use flashweir_telemetry::{Happening, ReplicaReportOutcome};
use http::Uri;
use serde_json::{Value, json};
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

/// `POST /replication/report`: a replica's report, answered with orders.
pub(crate) fn report(shared: &Shared, body: &[u8]) -> Response {
    let Some(mut station) = shared.replication.station() else {
        return problem(StatusCode::NOT_FOUND, "this gateway is no redirector and takes no reports");
    };
    let now = shared.clock.now();
    let reports = &shared.telemetry.control().replication.reports;
    let refused = |outcome, status, text: &str| {
        reports.increment(outcome);
        shared.warn(Happening::Replication, format_args!("a report was not taken: {text}"));
        problem(status, text)
    };
    let (report, url) = match Report::parse(body) {
        Ok(parsed) => parsed,
        Err(error @ (ReportError::Malformed | ReportError::OutOfRange(_))) => {
            return refused(ReplicaReportOutcome::Malformed, StatusCode::BAD_REQUEST, &error.to_string());
        }
    };
    match station.report(now, &url, report) {
        Ok(taken) => {
            reports.increment(if taken.is_bounded {
                ReplicaReportOutcome::Bounded
            } else {
                ReplicaReportOutcome::Taken
            });
            Json(taken.orders).into_response()
        }
        Err(ReplicaReportRefusal::Unknown) => {
            let text = "no target has this `url`, expected one of `replication.targets`";
            refused(ReplicaReportOutcome::Unknown, StatusCode::FORBIDDEN, text)
        }
        Err(ReplicaReportRefusal::TooMany) => {
            let text = "this replica reported a moment ago, expected at most ten reports a second";
            refused(ReplicaReportOutcome::TooMany, StatusCode::TOO_MANY_REQUESTS, text)
        }
    }
}

/// Document of replication for `/status`; null where the gateway is in no cluster.
pub(crate) fn status(shared: &Shared) -> Value {
    let live = shared.live.load();
    let config = &live.config.replication;
    match (config.role, shared.replication.station()) {
        (ReplicationRole::Off, _) => Value::Null,
        (_, Some(station)) => station.status(shared.clock.now()),
        (role, None) => json!({
            "role": role.as_str(),
            "targets": config.targets.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "report_to": config.report_to.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
    }
}

/// `GET /replication/document?url=URL`: where a document is, and why.
pub(crate) fn document(shared: &Shared, query: &str) -> Response {
    let Some(station) = shared.replication.station() else {
        return problem(StatusCode::NOT_FOUND, "this gateway is no redirector and places no documents");
    };
    let url = query.strip_prefix("url=").and_then(|url| url.parse::<Uri>().ok());
    let Some(document) = url.as_ref().and_then(Document::of_url) else {
        return problem(
            StatusCode::BAD_REQUEST,
            "expected url=URL with an absolute URL like http://shop.example/page",
        );
    };
    Json(station.explain(shared.clock.now(), document.key(&hasher()))).into_response()
}
