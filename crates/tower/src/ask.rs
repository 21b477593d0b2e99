//! Properties of a request that decide about it.

use flashweir_feedback::caller::{DEADLINE, GRPC_TIMEOUT, parse_deadline, parse_grpc_timeout};
use http::{Extensions, HeaderMap, Method, Request, Uri};
use std::time::Duration;

/// Head of a request, as classifiers see it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Method.
    pub method: &'a Method,
    /// Target.
    pub uri: &'a Uri,
    /// Fields.
    pub headers: &'a HeaderMap,
    /// Extensions, set by layers outside of this one.
    pub extensions: &'a Extensions,
}

/// Properties of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Place of its class in [`Settings::classes`](crate::Settings::classes); a place beyond the end is that
    /// of the last.
    pub class: u8,
    /// Hash of the client among which requests of a class are shared: of an API key, a session or an address.
    /// Equal for all by default.
    pub client_key: u64,
    /// Time for which an answer is of use, from now on; [`Head::deadline`] reads what the request says.
    pub deadline: Option<Duration>,
}

impl<'a> Head<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// Time for which the client can use an answer, by `Flashweir-Deadline`, else `grpc-timeout`. A value
    /// that cannot be read is ignored.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let field = |name: &str| self.headers.get(name).map(http::HeaderValue::as_bytes);
        let own = field(DEADLINE).and_then(|value| parse_deadline(value).ok());
        own.or_else(|| field(GRPC_TIMEOUT).and_then(parse_grpc_timeout))
    }
}
