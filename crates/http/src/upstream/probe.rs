//! Asks one upstream whether it is there: an active health check.

use super::connect::UpstreamIo;
use super::connection::Connection;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::shared::UpstreamShared;
use crate::guarded::Protocol;
use crate::serve::LocalExecutor;
use bytes::Bytes;
use flashweir_replication::servers::ProbeOutcome;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::time::Duration;
use tokio::task::LocalSet;
use tokio::time::timeout;

/// Reason for which an upstream failed its probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No connection, or it broke.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It answered, but not with 2xx or 3xx.
    #[error("answered {0}")]
    Status(StatusCode),
    /// It did not answer in time.
    #[error("did not answer within {0:?}")]
    Timeout(Duration),
}

/// `GET path` on a separate connection, expecting 2xx or 3xx within `within`; without a path the connection
/// alone is tried. Runs anywhere in a tokio runtime. The caller hands the outcome to
/// [`UpstreamShared::record_probe`].
///
/// # Errors
/// [`ProbeError`] if the upstream is not well.
pub async fn probe(
    shared: &UpstreamShared,
    index: usize,
    path: Option<&Uri>,
    within: Duration,
) -> Result<(), ProbeError> {
    let Some(path) = path else {
        let connected = timeout(within, shared.target(index).connect(index)).await;
        connected.map_err(|_| ProbeError::Timeout(within))??;
        return Ok(());
    };
    let asked = timeout(within, LocalSet::new().run_until(ask(shared, index, path))).await;
    let status = asked.map_err(|_| ProbeError::Timeout(within))??;
    if status.is_success() || status.is_redirection() { Ok(()) } else { Err(ProbeError::Status(status)) }
}

/// Converts the end of a [`probe`], with a path or without, to an outcome for the upstream.
#[must_use]
pub fn probe_outcome(has_path: bool, probed: &Result<(), ProbeError>) -> ProbeOutcome {
    use UpstreamErrorKind::{Connect, ConnectTimeout};
    match probed {
        Ok(()) if has_path => ProbeOutcome::Answered,
        Ok(()) => ProbeOutcome::Connected,
        Err(ProbeError::Upstream(error)) if matches!(error.kind, Connect | ConnectTimeout) => {
            ProbeOutcome::NoConnection
        }
        Err(ProbeError::Timeout(_)) if !has_path => ProbeOutcome::NoConnection,
        Err(_) => ProbeOutcome::BadAnswer,
    }
}

async fn ask(shared: &UpstreamShared, index: usize, path: &Uri) -> Result<StatusCode, UpstreamError> {
    let target = shared.target(index);
    let path = path.path_and_query().map_or("/", |path| path.as_str());
    let uri = match target.protocol() {
        Protocol::Http1 => path.to_owned(),
        Protocol::Http2 => format!("{}{path}", target.address()),
    };
    let malformed =
        |error: http::Error| UpstreamError::with_cause(UpstreamErrorKind::Malformed, index, error);
    let mut request = Request::builder().method(Method::GET).uri(uri).header(USER_AGENT, "flashweir-probe");
    if target.protocol() == Protocol::Http1 {
        request = request.header(HOST, target.authority().as_str()).header(CONNECTION, "close");
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(malformed)?;
    let io = target.connect(index).await?;
    match target.protocol() {
        Protocol::Http1 => {
            let (parts, body) = request.into_parts();
            let mut connection = Connection::new(index, io, shared.settings().response_fields_max);
            connection.begin(&parts.into(), body)?;
            poll_fn(|cx| connection.poll_response(cx, None)).await.map(|response| response.status())
        }
        Protocol::Http2 => {
            ask_http2(io, request).await.map_err(|error| UpstreamError::from_hyper(error, index))
        }
    }
}

async fn ask_http2(io: UpstreamIo, request: Request<Empty<Bytes>>) -> hyper::Result<StatusCode> {
    let (mut sender, connection) = http2::handshake(LocalExecutor, TokioIo::new(io)).await?;
    let connection = tokio::task::spawn_local(connection);
    let status = sender.send_request(request).await.map(|response| response.status());
    connection.abort();
    status
}
