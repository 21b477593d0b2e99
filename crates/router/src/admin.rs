//! The router's answers to people and scrapers.

use crate::link::LinkReport;
use crate::record::Decisions;
use crate::status::{RouterStatus, explanation, status};
use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use flashweir_runtime::{Clock, metrics_response, problem};
use flashweir_telemetry::Telemetry;
use std::sync::{Arc, Mutex, PoisonError};

/// State of the handlers.
pub(crate) struct Known {
    pub(crate) clock: Clock,
    pub(crate) telemetry: Telemetry,
    pub(crate) status: ArcSwap<RouterStatus>,
    /// Of the link that is divided, if there is one.
    pub(crate) link: ArcSwapOption<LinkReport>,
    /// Taken once in an interval by the planner, so the lock is held briefly.
    pub(crate) decisions: Mutex<Decisions>,
}

/// `/metrics`, `/status`, `/explain` for the decision in force, `/explain/EPOCH` for an earlier one.
pub(crate) fn routes(known: Arc<Known>) -> Router {
    Router::new()
        .route("/readyz", get(async || "ready\n"))
        .route("/metrics", get(metrics))
        .route("/status", get(status_document))
        .route("/explain", get(explain_present))
        .route("/explain/{epoch}", get(explain))
        .with_state(known)
}

async fn metrics(State(known): State<Arc<Known>>, request: HeaderMap) -> Response {
    metrics_response(&known.telemetry, &request)
}

async fn status_document(State(known): State<Arc<Known>>) -> Response {
    let mut document = status(&known.status.load(), known.clock.now());
    document["link"] = known.link.load().as_ref().map(|report| report.json()).into();
    Json(document).into_response()
}

async fn explain_present(State(known): State<Arc<Known>>) -> Response {
    Json(explanation(&known.status.load().decision, known.clock.now())).into_response()
}

async fn explain(State(known): State<Arc<Known>>, Path(epoch): Path<String>) -> Response {
    let Ok(epoch) = epoch.parse::<u64>() else {
        let expected =
            "not a decision's number: the kernel gives connections no ids, ask for plan.epoch of /status";
        return problem(StatusCode::BAD_REQUEST, expected);
    };
    let decisions = known.decisions.lock().unwrap_or_else(PoisonError::into_inner);
    match decisions.of(epoch) {
        Some(decision) => Json(explanation(&decision, known.clock.now())).into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such decision: never made, or too old to be remembered"),
    }
}
