//! Failures between the gateway and an upstream.

use flashweir_http1::FramingViolation;
use flashweir_http1::connection::ResponseFault;
use flashweir_http1::head::ResponseViolation;
use http::StatusCode;
use std::error::Error as StdError;
use std::fmt;
use std::io;

/// The party that caused an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    /// The upstream or the way to it.
    Upstream,
    /// The client: its request body failed or it went away.
    Client,
    /// Flashweir's own bounds.
    Internal,
}

/// Kind of failure. The spelling of [`as_str`](Self::as_str) is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum UpstreamErrorKind {
    /// No connection: refused, unreachable, name unknown, TLS failed.
    Connect,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The request was sent; no response head came in time.
    HeaderTimeout,
    /// The connection ended before the response was complete, or was reset.
    Reset,
    /// The response was not HTTP, or lied about its length.
    Malformed,
    /// The response's head has more fields or bytes than are taken: [`limits`](flashweir_core::limits).
    HeadTooLarge,
    /// No byte of the response body for the body idle timeout.
    BodyTimeout,
    /// The request's body failed while it was being sent.
    RequestBody,
    /// Every connection this worker may have is busy.
    Full,
    /// There is no upstream left to try.
    NoUpstream,
}

/// An error of [`Upstreams::send`](super::Upstreams::send) or of a response body.
#[derive(Debug)]
pub struct UpstreamError {
    /// Kind of failure.
    pub kind: UpstreamErrorKind,
    /// Index of the address it happened with, in the order of the settings.
    pub upstream: Option<usize>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl UpstreamErrorKind {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::ConnectTimeout,
        Self::HeaderTimeout,
        Self::Reset,
        Self::Malformed,
        Self::HeadTooLarge,
        Self::BodyTimeout,
        Self::RequestBody,
        Self::Full,
        Self::NoUpstream,
    ];

    /// The one spelling used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::HeaderTimeout => "header_timeout",
            Self::Reset => "reset",
            Self::Malformed => "malformed",
            Self::HeadTooLarge => "head_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::RequestBody => "request_body",
            Self::Full => "full",
            Self::NoUpstream => "no_upstream",
        }
    }

    /// The party that caused it.
    #[must_use]
    pub const fn source(self) -> ErrorSource {
        match self {
            Self::RequestBody => ErrorSource::Client,
            Self::Full => ErrorSource::Internal,
            _ => ErrorSource::Upstream,
        }
    }

    /// The status for the client (RFC 9110 §15.6), when no response has begun.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Connect | Self::Reset | Self::Malformed | Self::HeadTooLarge => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout | Self::HeaderTimeout | Self::BodyTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::RequestBody => StatusCode::BAD_REQUEST,
            Self::Full | Self::NoUpstream => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns whether the request was provably never sent, so that sending it once more repeats nothing.
    #[must_use]
    pub const fn may_retry(self) -> bool {
        matches!(self, Self::Connect | Self::ConnectTimeout | Self::Full | Self::NoUpstream)
    }
}

impl UpstreamError {
    pub(crate) fn new(kind: UpstreamErrorKind, upstream: Option<usize>) -> Self {
        Self { kind, upstream, cause: None }
    }

    pub(crate) fn with_cause(
        kind: UpstreamErrorKind,
        upstream: usize,
        cause: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, upstream: Some(upstream), cause: Some(cause.into()) }
    }

    /// Returns whether the upstream refused a connection, as the address of a server does on which it does
    /// not listen.
    pub(crate) fn is_refused(&self) -> bool {
        let io = self.cause.as_deref().and_then(|cause| cause.downcast_ref::<io::Error>());
        self.kind == UpstreamErrorKind::Connect
            && io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Classifies a response that cannot be used.
    pub(crate) fn from_fault(fault: ResponseFault, upstream: usize) -> Self {
        use FramingViolation::{HeadTooLarge, TooManyFields};
        let kind = match fault {
            ResponseFault::Head(ResponseViolation::Framing(HeadTooLarge | TooManyFields)) => {
                UpstreamErrorKind::HeadTooLarge
            }
            _ => UpstreamErrorKind::Malformed,
        };
        Self::with_cause(kind, upstream, fault)
    }

    /// Classifies an error of hyper's client.
    pub(crate) fn from_hyper(error: hyper::Error, upstream: usize) -> Self {
        let kind = if error.is_user() {
            UpstreamErrorKind::RequestBody
        } else if error.is_parse_too_large() {
            UpstreamErrorKind::HeadTooLarge
        } else if error.is_parse() {
            UpstreamErrorKind::Malformed
        } else {
            UpstreamErrorKind::Reset
        };
        Self::with_cause(kind, upstream, error)
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            UpstreamErrorKind::Connect => "no connection to the upstream",
            UpstreamErrorKind::ConnectTimeout => {
                "the upstream did not accept a connection in time (upstream.connect_timeout)"
            }
            UpstreamErrorKind::HeaderTimeout => {
                "the upstream did not answer in time (upstream.response_header_timeout)"
            }
            UpstreamErrorKind::Reset => "the upstream ended the connection before its response was complete",
            UpstreamErrorKind::Malformed => "the upstream's response is not valid HTTP",
            UpstreamErrorKind::HeadTooLarge => {
                "the upstream's response has too many fields, or too long ones"
            }
            UpstreamErrorKind::BodyTimeout => {
                "the upstream stopped sending in the middle of a response (upstream.body_idle_timeout)"
            }
            UpstreamErrorKind::RequestBody => "the client's request body failed",
            UpstreamErrorKind::Full => "every connection allowed to the upstreams is busy",
            UpstreamErrorKind::NoUpstream => "there is no upstream",
        };
        f.write_str(what)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl StdError for UpstreamError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}
