//! One request of the gateway's own, on its own connection: to an agent, and to a redirector.

use bytes::Bytes;
use flashweir_core::Duration;
use flashweir_http::dial;
use http::header::{CONNECTION, HOST};
use http::{StatusCode, Uri, request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::task::spawn_local;

/// Reason for a missing answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("{0}")]
    Connection(#[from] std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("answered {0}")]
    Status(StatusCode),
    #[error("the body cannot be read")]
    Body,
}

/// The body of the answer, of at most this many bytes, if it comes in time and says that the request
/// succeeded. The address was checked with the configuration.
pub(crate) async fn exchange(
    node: &Uri,
    request: request::Builder,
    body: Bytes,
    (within, bytes_max): (Duration, usize),
) -> Result<Bytes, ExchangeError> {
    let answer = tokio::time::timeout(within, send(node, request, body, bytes_max)).await;
    answer.unwrap_or(Err(ExchangeError::Timeout(within)))
}

async fn send(
    node: &Uri,
    request: request::Builder,
    body: Bytes,
    bytes_max: usize,
) -> Result<Bytes, ExchangeError> {
    let (host, port) = (node.host().unwrap_or_default(), node.port_u16().unwrap_or(80));
    let addresses = dial::look_up(host.trim_matches(['[', ']']), port).await?;
    let stream = dial::connect(&addresses).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let authority = node.authority().map_or("", |authority| authority.as_str());
    let request = request.header(HOST, authority).header(CONNECTION, "close").body(Full::new(body))?;
    let connection = Ended(spawn_local(connection));
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(ExchangeError::Status(response.status()));
    }
    let body = Limited::new(response.into_body(), bytes_max).collect().await;
    drop(connection);
    Ok(body.map_err(|_| ExchangeError::Body)?.to_bytes())
}

/// The connection's task, which ends with the exchange, completed or not.
struct Ended(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}
