//! Refusals, as errors and as responses.

use flashweir_core::Reason;
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use std::error::Error as StdError;
use std::fmt;

/// A request that was not admitted. Nothing of it has reached the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Limit that refused it.
    pub reason: Reason,
    /// Seconds after which a client may come again, at least 1 and at most 60; drawn for each refusal, so
    /// that refused clients do not return together.
    pub retry_after_s: u64,
}

/// Error of an [`Admission`](crate::Admission).
#[derive(Debug)]
pub enum AdmissionError<E> {
    /// The request was not admitted.
    Refused(Refused),
    /// Error of the service.
    Service(E),
}

impl Refused {
    /// Response with status 503, or 429 for clients over their share, `Retry-After`, `Cache-Control:
    /// no-store`, and an empty body.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() =
            StatusCode::from_u16(self.reason.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        response.headers_mut().insert(RETRY_AFTER, self.retry_after_s.into());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overloaded: refused by {}, come again in {} s", self.reason, self.retry_after_s)
    }
}

impl StdError for Refused {}

impl<E: fmt::Display> fmt::Display for AdmissionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Service(error) => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for AdmissionError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Service(error) => error.source(),
        }
    }
}
