//! One request over its own connection.

use bytes::Bytes;
use flashweir_config::AdminToken;
use flashweir_core::Duration;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// An answer longer than this is none.
const ANSWER_BYTES: usize = 4 << 20;
/// A gateway that has not answered within this time counts as absent.
const WITHIN: Duration = Duration::from_secs(2);

/// Error of a request without an answer.
pub type FetchError = Box<dyn std::error::Error + Send + Sync>;

/// GETs a path of a server at `HOST:PORT`, within two seconds; the body of an answer 2xx.
///
/// # Errors
/// Why there is no such answer.
pub async fn get(authority: &str, path: &str) -> Result<Bytes, FetchError> {
    get_with(authority, path, None).await
}

/// The same with the secret of an admin listener.
///
/// # Errors
/// As [`get`].
pub async fn get_with(authority: &str, path: &str, token: Option<&AdminToken>) -> Result<Bytes, FetchError> {
    let uri: Uri = format!("http://{authority}{path}").parse()?;
    let mut request = Request::get(uri);
    if let Some(token) = token {
        request = request.header(http::header::AUTHORIZATION, token.authorization());
    }
    fetch(request.body(Full::default())?).await
}

/// POSTs JSON; as [`get`].
///
/// # Errors
/// As [`get`].
pub async fn post(uri: &Uri, body: String) -> Result<Bytes, FetchError> {
    let request = Request::post(uri).header("content-type", "application/json");
    fetch(request.body(Full::from(body))?).await
}

async fn fetch(request: Request<Full<Bytes>>) -> Result<Bytes, FetchError> {
    tokio::time::timeout(WITHIN, exchange(request)).await?
}

async fn exchange(mut request: Request<Full<Bytes>>) -> Result<Bytes, FetchError> {
    let authority = request.uri().authority().ok_or("an address without a host")?.clone();
    let port = authority.port_u16().unwrap_or(80);
    // An IPv6 address stands in brackets in a URL, and without them for a connection.
    let stream = TcpStream::connect((authority.host().trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the connection, which ends with the sender.
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    *request.uri_mut() = path.parse()?;
    request.headers_mut().insert(http::header::HOST, authority.as_str().parse()?);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await?.to_bytes();
    if status.is_success() { Ok(body) } else { Err(format!("answered {status}").into()) }
}
