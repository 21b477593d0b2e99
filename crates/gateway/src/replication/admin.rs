//! A node on the admin listener: replicas' reports are taken, and documents say where copies are.

use super::document::{Document, hasher};
use super::report::{Report, ReportError};
use super::station::ReplicaReportRefusal;
use crate::shared::Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use flashweir_config::ReplicationRole;
use flashweir_runtime::problem;
use flashweir_telemetry::{Happening, ReplicaReportOutcome};
use http::Uri;
use serde_json::{Value, json};

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
