//! A client's request, as a service gets it.

use super::IncomingBody;
use crate::head::ReceivedHead;
use http::Request;

/// Request as it arrives from a client. A service may take it with the types of the crate `http` instead.
#[derive(Debug)]
pub struct IncomingRequest {
    /// Its head.
    pub head: ReceivedHead,
    /// Its body, of which no part has been read.
    pub body: IncomingBody,
}

impl From<IncomingRequest> for Request<IncomingBody> {
    fn from(request: IncomingRequest) -> Self {
        Self::from_parts(request.head.into_parts(), request.body)
    }
}
