//! `/status`, `/metrics` and `/readyz`.

use crate::target::TargetView;
use axum::Router;
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::get;
use flashweir_runtime::metrics_response;
use flashweir_telemetry::{EgressRefusal, Label as _, Telemetry};
use flashweir_tower::client::{Caller, FeedbackOutcome, Report};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// State that the admin listener reads.
pub(crate) type Views = Arc<[Arc<TargetView>]>;

pub(crate) fn routes(name: &str, views: Views, telemetry: Arc<Telemetry>) -> Router {
    let name: Arc<str> = name.into();
    let status = async move || Json(status(&name, &views));
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(async move |request: HeaderMap| metrics_response(&telemetry, &request)))
        .route("/readyz", get(async || "ready\n"))
}

fn status(name: &str, views: &[Arc<TargetView>]) -> Value {
    json!({ "sender": name, "targets": views.iter().map(|view| target(view)).collect::<Vec<_>>() })
}

fn target(view: &TargetView) -> Value {
    let counters = &view.counters;
    let refused: Map<String, Value> = EgressRefusal::ALL
        .iter()
        .map(|&why| (why.as_str().to_owned(), counters.refused.value(why).into()))
        .collect();
    let known = view.known();
    let denied = known.first().map_or(0, |(_, caller)| caller.retries().1);
    json!({
        "name": view.name,
        "requests": counters.requests.value(),
        "answered": counters.answered.value(),
        "refused": refused,
        "retries": { "made": counters.retries.value(), "denied": denied },
        "hedges": counters.hedges.value(),
        "nodes": known.iter().map(|(address, caller)| node(*address, caller)).collect::<Vec<_>>(),
    })
}

fn node(address: SocketAddr, caller: &Caller) -> Value {
    let report: Report = caller.node().report();
    let feedback: Map<String, Value> = FeedbackOutcome::ALL
        .into_iter()
        .map(|outcome| (outcome.as_str().to_owned(), report.feedback.of(outcome).into()))
        .collect();
    json!({
        "address": address.to_string(),
        "condition": report.condition.as_str(),
        "since_s": report.since.as_secs_f64(),
        "rate_rps": report.rate.map(|rate| rate.per_second()),
        "asked": report.limit.map(|limit| json!({
            "rate_rps": limit.rate.per_second(),
            "from_rank": limit.from_rank,
            "severity": limit.severity,
            "is_expired": limit.is_expired,
        })),
        "feedback_age_s": report.feedback_age.map(|age| age.as_secs_f64()),
        "offered_rps": report.offered.per_second(),
        "arrived": report.arrived,
        "sent": report.sent,
        "refused": { "limit": report.refused_limit, "silent": report.refused_silent },
        "withdrawn": report.withdrawn,
        "waiting": report.waiting,
        "in_flight": caller.node().load(),
        "held_for_s": report.held_for.as_secs_f64(),
        "unanswered": report.unanswered,
        "feedback": feedback,
    })
}
