//! Values that pass between a driver and the server's side of a connection.

use super::MessagePart;
use crate::body::BodyFraming;
use crate::head::HeadLimits;
use crate::write::{ConnectionField, FramingField};
use core::ops::Range;

/// Bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Of heads and trailers.
    pub head: HeadLimits,
    /// Bytes of a request's body that are taken in after it has been answered, to keep the connection.
    /// Raised: clients waste more of the link; lowered: they connect again.
    pub drain_bytes_max: u64,
}

/// Event of the server's side. Places are relative to the bytes of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A head of this many bytes; [`ServerConnection::head`](super::ServerConnection::head) shows it.
    /// [`Self::End`] follows if it has a body.
    Head {
        /// Its bytes, from the first.
        bytes: usize,
        /// Framing of its body.
        body: BodyFraming,
    },
    /// Content of its body.
    Content(Range<usize>),
    /// Its trailers; [`ServerConnection::trailers`](super::ServerConnection::trailers) shows them over these
    /// bytes.
    Trailers(Range<usize>),
    /// End of its body.
    End,
}

/// Use of a request's body by its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBodyUse {
    /// It is still read, whenever the response ends.
    Read,
    /// Nothing more of it is wanted: an answer that comes early.
    Discard,
}

/// Fields that a response needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseStart {
    /// Framing of its body.
    pub framing: FramingField,
    /// Option of the connection.
    pub connection: ConnectionField,
}

/// Response that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// No request waits for one, or it has begun.
    #[error("no response is due")]
    NotDue,
    /// A 101 to a request that did not ask for an upgrade (RFC 9110 §7.8).
    #[error("the request asked for no upgrade")]
    NoUpgrade,
    /// An interim status, which has no framing: write its head as it is.
    #[error("an interim response is not final")]
    Interim,
}

/// Meaning of the end of the client's half of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerInputEnd {
    /// Between requests.
    Clean,
    /// A whole request waits for its response, which may still be wanted (RFC 9112 §9.6).
    ResponseOwed,
    /// Within a head or a body.
    Truncated(MessagePart),
    /// In a tunnel: pass it on.
    Tunnel,
}
