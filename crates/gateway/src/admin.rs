//! The admin listener: health, metrics, status, explanations and purges, on the control thread, so that it
//! answers however busy the workers are.

use crate::cache::{PurgeQuery, purge};
use crate::commands::Command;
use crate::error::GatewayError;
use crate::replication;
use crate::shared::Shared;
use crate::status::{explanation, status};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get, post};
use flashweir_core::limits::REPORT_BYTES;
use flashweir_core::{DecisionId, Duration};
use flashweir_http::client::ClientNetwork;
use flashweir_runtime::{AdminListener, metrics_response, problem};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A worker answers between two requests: one that takes longer is stuck, and that is an answer, too.
const WORKER_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Answer to `GET /`: what can be asked here.
const INDEX: &str = "\
Flashweir's admin listener

GET    /status                     every limit, which one binds, and why (JSON; `flashweir status` prints it for people)
GET    /metrics                    metrics of Prometheus, or OpenMetrics
GET    /explain/ID                 why a request was refused: the id is in its field Flashweir-Decision
GET    /healthz                    200 while the process runs
GET    /readyz                     200 while it takes requests and an upstream is healthy
DELETE /cache                      purges stored responses
GET    /fairness/impatient         addresses whose connections are refused because they ignore Retry-After
DELETE /fairness/impatient         takes them off the list
GET    /replication/document       where a document's copies are
";

/// The listener, bound, and what its handlers know.
pub(crate) struct AdminServer {
    listener: AdminListener,
    known: Arc<Known>,
}

struct Known {
    shared: Arc<Shared>,
    config_file: Option<String>,
    workers: Vec<mpsc::Sender<Command>>,
}

impl AdminServer {
    /// Takes the port.
    pub(crate) fn bind(
        shared: Arc<Shared>,
        config_file: Option<&path::Path>,
        workers: Vec<mpsc::Sender<Command>>,
    ) -> Result<Self, GatewayError> {
        let address = shared.live.load().config.admin.address;
        let listener =
            AdminListener::bind(address).map_err(|source| GatewayError::AdminListen { address, source })?;
        let config_file = config_file.map(|file| file.display().to_string());
        Ok(Self { listener, known: Arc::new(Known { shared, config_file, workers }) })
    }

    /// Listening address; the system chose the port when 0 was asked for.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Answers until the future is dropped.
    pub(crate) async fn serve(self) {
        let admin = self.known.shared.live.load().config.admin.clone();
        let routes = Router::new()
            .route("/", get(async || INDEX))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .route("/status", get(status_document))
            .route("/explain/{id}", get(explain))
            .route("/cache", delete(purge_cache))
            .route("/fairness/impatient", get(impatient).delete(pardon_impatient))
            .route("/replication/report", post(take_report).layer(DefaultBodyLimit::max(REPORT_BYTES)))
            .route("/replication/document", get(explain_document))
            .with_state(self.known);
        self.listener.asking_for(admin.token).serve(routes, admin.hosts).await;
    }
}

async fn ready(State(known): State<Arc<Known>>) -> Response {
    let is_any_server_healthy = known
        .shared
        .live
        .load()
        .services()
        .any(|(_, upstreams)| upstreams.statuses().iter().any(|server| server.is_available()));
    let (status, text) = match (known.shared.is_draining(), is_any_server_healthy) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "no upstream is healthy\n"),
        (false, true) => (StatusCode::OK, "ready\n"),
    };
    (status, text).into_response()
}

async fn metrics(State(known): State<Arc<Known>>, request: HeaderMap) -> Response {
    let (shared, impatient) = (&known.shared, &known.shared.impatient);
    let in_force = impatient.in_force(shared.clock.now()).len();
    shared.telemetry.control().publish_impatience(in_force, impatient.overflows());
    metrics_response(&known.shared.telemetry, &request)
}

async fn status_document(State(known): State<Arc<Known>>) -> Response {
    Json(status(&known.shared, known.config_file.as_deref())).into_response()
}

async fn purge_cache(State(known): State<Arc<Known>>, RawQuery(query): RawQuery) -> Response {
    match PurgeQuery::parse(query.as_deref().unwrap_or_default()) {
        Ok(query) => purge(&known.shared, &query),
        Err(error) => problem(StatusCode::BAD_REQUEST, &error),
    }
}

/// The sources that are listed, by address: on this listener alone, as it is the operator's.
async fn impatient(State(known): State<Arc<Known>>) -> Response {
    Json(known.shared.impatient.status(known.shared.clock.now())).into_response()
}

/// Takes a source off the list, or all of them.
async fn pardon_impatient(State(known): State<Arc<Known>>, RawQuery(query): RawQuery) -> Response {
    let source = match query.as_deref().unwrap_or_default() {
        "" | "all=true" => None,
        query => {
            let address =
                query.strip_prefix("address=").map(|text| text.replace("%3A", ":").replace("%3a", ":"));
            let Some(Ok(address)) = address.map(|text| text.parse::<IpAddr>()) else {
                return problem(
                    StatusCode::BAD_REQUEST,
                    "expected `address=` and an IP address, or `all=true`",
                );
            };
            Some(ClientNetwork::of(address))
        }
    };
    Json(json!({ "pardoned": known.shared.impatient.pardon(source) })).into_response()
}

/// Pages on the web can make a browser send a POST, but not one of this type without asking first.
async fn take_report(State(known): State<Arc<Known>>, fields: HeaderMap, body: Bytes) -> Response {
    if fields.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected a report as application/json");
    }
    replication::report(&known.shared, &body)
}

async fn explain_document(State(known): State<Arc<Known>>, RawQuery(query): RawQuery) -> Response {
    replication::document(&known.shared, query.as_deref().unwrap_or_default())
}

async fn explain(State(known): State<Arc<Known>>, Path(id): Path<String>) -> Response {
    let id = match id.parse::<DecisionId>() {
        Ok(id) => id,
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    if id.boot() != known.shared.boot {
        return problem(StatusCode::NOT_FOUND, "no such decision: the id is from another run of the gateway");
    }
    let Some(worker) = known.workers.get(usize::from(id.worker())) else {
        return problem(StatusCode::NOT_FOUND, "no such decision: there is no such worker");
    };
    let (reply, answer) = oneshot::channel();
    if worker.try_send(Command::Explain(id, reply)).is_err() {
        return problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "the worker that decided does not take questions now",
        );
    }
    match tokio::time::timeout(WORKER_ANSWER_TIMEOUT, answer).await {
        Ok(Ok(Some(record))) => Json(explanation(&known.shared, id, &record)).into_response(),
        Ok(Ok(None)) => {
            problem(StatusCode::NOT_FOUND, "no such decision: never made, or too old to be remembered")
        }
        Ok(Err(_)) | Err(_) => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "the worker that decided did not answer")
        }
    }
}
