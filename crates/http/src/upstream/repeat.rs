//! Repeats of requests to an upstream.
//!
//! | the attempt ended because | sent once more |
//! |---|---|
//! | the connection ended, and no byte of an answer had come | an idempotent request (RFC 9110 §9.2.2), if the connection had answered another before |
//! | GOAWAY below its stream, or REFUSED_STREAM (HTTP/2) | any: the upstream says that it has not begun (RFC 9113 §8.7) |
//! | anything else: a time-out, a byte of an answer, a new connection | none |
//!
//! Once, on a new connection (unless only a stream was refused), with a body that is none or held whole, and
//! within the [budget](super::repeat_budget). **Why a connection that was used.** A server that closes an
//! idle connection can't know that a request is on its way; one that ends a new connection has received the
//! request, and may do the same with the next. **What remains.** A server may have worked on the request
//! before it ended the connection: that is why only those go out again that may be carried out twice.

use super::multiplex::Http2Stream;
use h2::Reason;
use std::error::Error as _;
use std::io;

/// Failure of an attempt over HTTP/2 that may be made once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The connection ended, and it is unknown whether the upstream has begun.
    Unknown,
    /// The upstream says that it has not begun, and ends the connection.
    NotBegun,
    /// The upstream says that it has not begun; the connection goes on.
    Refused,
}

/// Failure after which the attempt may be made once more, as far as the stream is concerned; none otherwise.
pub(super) fn loss_of<B>(stream: &Http2Stream<B>, error: &hyper::Error) -> Option<Loss> {
    match error.source()?.downcast_ref::<h2::Error>() {
        Some(cause) if cause.is_remote() => refusal(cause),
        Some(_) => None,
        None => (error.source()?.is::<io::Error>() && stream.is_reused()).then_some(Loss::Unknown),
    }
}

fn refusal(error: &h2::Error) -> Option<Loss> {
    if error.is_go_away() {
        // h2 ends a stream with the peer's GOAWAY only if its number is above the last one that the peer
        // names.
        return Some(Loss::NotBegun);
    }
    (error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM)).then_some(Loss::Refused)
}
