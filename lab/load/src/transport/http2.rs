//! HTTP/2: one request as a stream of a connection that people from the same address share.

use super::answer::{Answer, DECISION_FIELD, RetryAfter, flashweir_reason};
use super::counts::count;
use super::dial::Dialler;
use super::http2_pool::{Http2Pool, Http2Stream};
use super::request::Prepared;
use crate::ErrorKind;
use http::{Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::error::Error;
use std::net::IpAddr;
use std::time::{Instant, SystemTime};

/// The HTTP/2 connections of one thread.
pub(super) struct Http2 {
    pool: Http2Pool,
}

impl Http2 {
    pub(super) fn new(connections_most: Option<usize>) -> Self {
        Self { pool: Http2Pool::new(connections_most) }
    }

    /// One try. A request that a connection gives back unsent, because it was going away, goes over another
    /// one.
    pub(super) async fn ask(
        &self,
        dialler: &Dialler,
        source: Option<IpAddr>,
        prepared: &Prepared,
        path: &str,
        sent: impl FnOnce(),
    ) -> Result<Answer, ErrorKind> {
        // A path that is none breaks the caller's promise; it gets no answer that could be understood.
        let mut request = prepared.http2(path).ok_or(ErrorKind::Malformed)?;
        let mut sent = Some(sent);
        loop {
            let mut stream = self.pool.check_out(dialler, source).await?;
            if stream.is_reused() {
                count(&dialler.counts().reused);
            }
            let asked = stream.sender().try_send_request(request);
            if let Some(sent) = sent.take() {
                sent();
            }
            match asked.await {
                Ok(response) => return read(response, stream).await,
                Err(mut error) => match error.take_message() {
                    // Ends: a new connection is given nothing back unless it failed.
                    Some(unsent) if stream.is_reused() => request = unsent,
                    _ => return Err(classify(error.error())),
                },
            }
        }
    }
}

/// Reads the answer to its end. `_stream` counts until then; dropping the response resets the stream.
async fn read(response: Response<Incoming>, _stream: Http2Stream<'_>) -> Result<Answer, ErrorKind> {
    let head_at = Instant::now();
    let (head, mut body) = response.into_parts();
    let mut body_bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| classify(&error))?;
        body_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    let field = |name: &str| head.headers.get(name).map(|value| value.as_bytes());
    let asked = field(header::RETRY_AFTER.as_str());
    let asked = asked.and_then(|value| RetryAfter::read(value, field(header::DATE.as_str())));
    Ok(Answer {
        status: head.status.as_u16(),
        reason: field(DECISION_FIELD).and_then(flashweir_reason),
        retry_after: asked.map(|asked| asked.wait(SystemTime::now)),
        head_at,
        end_at: Instant::now(),
        body_bytes,
    })
}

/// An answer that fails our own checks is malformed; every other error ended the stream or the connection.
fn classify(error: &hyper::Error) -> ErrorKind {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_ours = error.reason().is_some() && !error.is_remote() && !error.is_io();
            return if is_ours { ErrorKind::Malformed } else { ErrorKind::Closed };
        }
        cause = error.source();
    }
    ErrorKind::Closed
}
