//! One request and its whole answer.

use crate::connection::{Connection, Idle};
use crate::plan::Connections;
use crate::{ErrorKind, Target};
use bytes::Bytes;
use flashweir_core::Reason;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use http_body_util::{BodyExt, Full};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Sends requests to one target, for one thread.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    /// The request everybody sends.
    request: Request<Full<Bytes>>,
    connections: Connections,
    idle: Mutex<Idle>,
}

/// An answer that arrived whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Flashweir's reason, if the answer names one.
    pub(crate) reason: Option<Reason>,
    /// When its head had arrived.
    pub(crate) head_at: Instant,
    /// When all of it had.
    pub(crate) end_at: Instant,
}

impl Client {
    pub(crate) fn new(target: &Target, connections: Connections) -> Self {
        let mut request = Request::new(Full::default());
        *request.method_mut() = target.method.clone();
        *request.uri_mut() = target.path.clone();
        *request.version_mut() = Version::HTTP_11;
        for (name, value) in &target.headers {
            request.headers_mut().append(name, value.clone());
        }
        if connections == Connections::New && !request.headers().contains_key(header::CONNECTION) {
            request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Self { address: target.address, request, connections, idle: Mutex::default() }
    }

    /// Sends the request from `source` and reads the whole answer; `sent` is called once, when the request is
    /// handed to a connection. Dropping the future closes the connection.
    pub(crate) async fn ask(
        &self,
        source: Option<Ipv4Addr>,
        sent: impl FnOnce(),
    ) -> Result<Answer, ErrorKind> {
        let mut sent = Some(sent);
        loop {
            let (mut connection, reused) = self.connection(source).await?;
            if connection.sender.ready().await.is_err() {
                // The server closed it before anything was sent: an idle one is simply replaced.
                if reused {
                    continue;
                }
                return Err(ErrorKind::Closed);
            }
            if let Some(sent) = sent.take() {
                sent();
            }
            match connection.sender.try_send_request(self.request.clone()).await {
                Ok(response) => return self.read(response, source, connection).await,
                Err(mut error) => {
                    // Handed back unsent: the server cannot have seen it, so it is safe to send again.
                    let unsent = error.take_message().is_some();
                    if !(reused && unsent) {
                        return Err(classify(error.error()));
                    }
                }
            }
        }
    }

    async fn connection(&self, source: Option<Ipv4Addr>) -> Result<(Connection, bool), ErrorKind> {
        if self.connections == Connections::KeepAlive
            && let Some(connection) = self.idle().take(source)
        {
            return Ok((connection, true));
        }
        Ok((Connection::open(self.address, source).await?, false))
    }

    async fn read(
        &self,
        response: http::Response<hyper::body::Incoming>,
        source: Option<Ipv4Addr>,
        connection: Connection,
    ) -> Result<Answer, ErrorKind> {
        let head_at = Instant::now();
        let (head, mut body) = response.into_parts();
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| classify(&error))?;
        }
        let end_at = Instant::now();
        if self.connections == Connections::KeepAlive {
            self.idle().put(source, connection);
        }
        Ok(Answer { status: head.status, reason: flashweir_reason(&head.headers), head_at, end_at })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        // Only this client's own thread locks it, so it is never contended; never held across an await.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason in `Flashweir-Decision: <id>; reason=<reason>`.
fn flashweir_reason(headers: &HeaderMap) -> Option<Reason> {
    let decision = headers.get("flashweir-decision")?.to_str().ok()?;
    let name = decision.split(';').find_map(|part| part.trim().strip_prefix("reason="))?;
    Reason::ALL.into_iter().find(|reason| reason.as_str() == name.trim())
}

fn classify(error: &hyper::Error) -> ErrorKind {
    let invalid = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|error| {
            matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput)
        });
    if error.is_parse() || invalid { ErrorKind::Malformed } else { ErrorKind::Closed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_read_from_the_decision() {
        let check = |text: &'static str, reason| {
            let mut headers = HeaderMap::new();
            headers.insert("flashweir-decision", HeaderValue::from_static(text));
            assert_eq!(flashweir_reason(&headers), reason, "{text}");
        };
        check("0123456789abc; reason=flash_crowd", Some(Reason::FlashCrowd));
        check("0123456789abc;reason=draining", Some(Reason::Draining));
        check("0123456789abc; reason=something_new", None);
        check("0123456789abc", None);
        assert_eq!(flashweir_reason(&HeaderMap::new()), None);
    }

    #[test]
    fn only_people_who_do_not_share_say_close() {
        let target = Target::parse("http://127.0.0.1/").unwrap();
        let says_close = |connections| {
            Client::new(&target, connections).request.headers().contains_key(header::CONNECTION)
        };
        assert!(says_close(Connections::New));
        assert!(!says_close(Connections::KeepAlive));
    }
}
