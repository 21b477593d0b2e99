//! The admin listener: one port, and what its answers have in common.
//!
//! It answers under any load and under attack, for an orchestrator kills what does not answer its probes. So
//! every connection is bounded in time and number ([`places`]), `/healthz` and `/readyz` need no place among
//! the others' requests, and a web page can neither read through its visitor's browser ([`hosts`]) nor change
//! anything: a browser adds `Origin` to each request of a page whose method is not safe (Fetch §3.1), and
//! such requests are refused. Where there is a secret, all but probes and the reports of replicas, which the
//! gateway judges by itself, must have it.

mod hosts;
mod places;

use axum::Router;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use flashweir_config::AdminToken;
use flashweir_core::Duration;
use flashweir_telemetry::{OPEN_METRICS_CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE, Telemetry};
use hosts::is_known;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use places::{Connection, Places};
use serde_json::json;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Time for the head of a request to come, and for a kept connection to stay without one. A scraper that
/// comes less often connects again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for an answer to be made and sent: a connection that does not read holds a place no longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two checks of that.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// After a failed `accept`: trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// Path of the reports of replicas: they are judged by whom they name, and change nothing for others.
const REPORTS: &str = "/replication/report";
/// Heads here are small; hyper accepts no smaller buffer.
const BUFFER_BYTES: usize = 8 << 10;

/// A port that is taken and does not answer yet.
#[derive(Debug)]
pub struct AdminListener {
    listener: TcpListener,
    token: Option<AdminToken>,
}

impl AdminListener {
    /// Takes the port.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token: None })
    }

    /// The same, answering clients that have this secret alone, if there is one.
    #[must_use]
    pub fn asking_for(self, token: Option<AdminToken>) -> Self {
        Self { token, ..self }
    }

    /// Listening address; the system chose the port when 0 was asked for.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers by these routes, and `/healthz` by itself, until the future is dropped. `hosts` are names it
    /// may be asked for by, besides addresses and names without a dot.
    pub async fn serve(self, routes: Router, hosts: Vec<String>) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("the admin listener stopped: {error}"),
        };
        let routes = routes.route("/healthz", get(async || "alive\n"));
        let answers = Arc::new(Answers { routes, hosts, token: self.token });
        let places = Arc::new(Places::default());
        loop {
            match listener.accept().await {
                Ok((stream, _)) => places.admit(|connection| attend(stream, connection, answers.clone())),
                Err(_) => tokio::time::sleep(PAUSE_AFTER_FAILURE).await,
            }
        }
    }
}

struct Answers {
    routes: Router,
    hosts: Vec<String>,
    token: Option<AdminToken>,
}

/// Serves one connection to its end.
async fn attend(stream: TcpStream, connection: Connection, answers: Arc<Answers>) {
    let service = service_fn(|request| answer(request, connection.clone(), answers.clone()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(BUFFER_BYTES);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    // The client sees how it ends; nothing is logged.
    while tokio::time::timeout(LOOK_EVERY, served.as_mut()).await.is_err() {
        if connection.has_asked_for(ANSWER_TIMEOUT) {
            return;
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    connection: Connection,
    answers: Arc<Answers>,
) -> Result<Response, Infallible> {
    if !is_host_known(request.headers(), &answers.hosts) {
        let text =
            "this host is none of ours; names with a dot that the admin listener has go into admin.hosts";
        return Ok(problem(StatusCode::MISDIRECTED_REQUEST, text));
    }
    if !request.method().is_safe() && request.headers().contains_key(ORIGIN) {
        let text = "requests of web pages change nothing here; send it without the field `Origin`";
        return Ok(problem(StatusCode::FORBIDDEN, text));
    }
    let path = request.uri().path();
    let is_probe = matches!(path, "/healthz" | "/readyz");
    let is_open = is_probe || path == REPORTS || answers.token.is_none();
    if !is_open && !has_token(request.headers(), answers.token.as_ref()) {
        let text =
            "this needs the secret of admin.token_file: `Authorization: Bearer SECRET`, or --token-file FILE";
        let mut refusal = problem(StatusCode::UNAUTHORIZED, text);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(refusal);
    }
    let Some(asking) = connection.begin(is_probe) else {
        return Ok(problem(StatusCode::SERVICE_UNAVAILABLE, "too many admin requests at once"));
    };
    // One answer a turn: a client that sends many requests at once would have the core until its buffers
    // are full.
    tokio::task::yield_now().await;
    let mut routes = answers.routes.clone();
    let response = tower_service::Service::call(&mut routes, request.map(axum::body::Body::new)).await?;
    Ok(response.map(|body| axum::body::Body::new(asking.until_sent(body))))
}

/// Returns whether all lines of `Host` are known; HTTP/1.0 may have none, and browsers do not speak that.
fn is_host_known(fields: &HeaderMap, hosts: &[String]) -> bool {
    fields.get_all(HOST).iter().all(|host| host.to_str().is_ok_and(|host| is_known(host, hosts)))
}

/// Returns whether a request has the secret, once.
fn has_token(fields: &HeaderMap, token: Option<&AdminToken>) -> bool {
    let mut given = fields.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next(), token) {
        (Some(one), None, Some(token)) => token.is_in(one.as_bytes()),
        _ => false,
    }
}

/// All metrics, not to be cached: OpenMetrics for a client whose `Accept` names it, as a Prometheus server's
/// does, else Prometheus text.
#[must_use]
pub fn metrics_response(telemetry: &Telemetry, request: &HeaderMap) -> Response {
    let is_named = |value: &HeaderValue| {
        value.to_str().is_ok_and(|value| value.contains("application/openmetrics-text"))
    };
    let (kind, text) = match request.get_all(ACCEPT).iter().any(is_named) {
        true => (OPEN_METRICS_CONTENT_TYPE, telemetry.open_metrics()),
        false => (PROMETHEUS_CONTENT_TYPE, telemetry.prometheus_text()),
    };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store"), (VARY, "accept")], text).into_response()
}

/// Answer that states a problem.
#[must_use]
pub fn problem(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "status": status.as_u16(), "error": text }))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tokio::io::AsyncReadExt as _;

    /// The client's bytes have arrived before the listener looks, so that time moves only while both sides
    /// wait.
    #[test]
    fn half_a_head_and_silence_are_waited_for_as_long_as_a_head_may_take() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let ended_after = |sent: &str| {
            let listener = AdminListener::bind(([127, 0, 0, 1], 0).into()).expect("a port");
            let mut client =
                std::net::TcpStream::connect(listener.address().expect("an address")).expect("a connection");
            client.write_all(sent.as_bytes()).expect("room for a line");
            client.set_nonblocking(true).expect("a socket");
            runtime.as_ref().expect("a runtime").block_on(async {
                let mut client = TcpStream::from_std(client).expect("a socket");
                let (began, mut answer) = (tokio::time::Instant::now(), Vec::new());
                tokio::select! {
                    () = listener.serve(Router::new(), Vec::new()) => unreachable!("it serves until it is dropped"),
                    read = client.read_to_end(&mut answer) => read.expect("an end"),
                };
                began.elapsed()
            })
        };
        for sent in ["GET /metrics HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: admin\r\n\r\n", ""] {
            let waited = ended_after(sent);
            // A wheel of timers is up to a millisecond late.
            assert!(waited >= HEAD_TIMEOUT && waited < HEAD_TIMEOUT + LOOK_EVERY, "{sent:?}: {waited:?}");
        }
    }
}
