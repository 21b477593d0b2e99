//! Both sides of a connection as state machines: bytes in, events out, one message after another.
//!
//! ```text
//! server side   Idle ─► head ─► body ─► (answer owed) ─► answer written ─┬─► Idle
//!                                └─ answered early: the rest is drained ─┤
//!                                                       upgrade ─────────┼─► tunnel
//!                                            close, fault, half-close ───┴─► closed
//! client side   Idle ─► request begun ─► interim heads ─► head ─► body ─► Idle, tunnel or closed
//! ```
//!
//! A driver calls `receive` with the bytes it has until it returns no event, reads more from its socket, and
//! so on; says what it sends; and acts on [`Disposition`] once a response has ended. Timeouts are the
//! driver's, by [`ReadPhase`].

mod client;
mod exchange;
mod server;
mod server_events;

pub use client::{ClientConnection, ClientEvent, RequestStart, ResponseEnd, ResponseFault};
pub use server::ServerConnection;
pub use server_events::{
    RequestBodyUse, ResponseError, ResponseStart, ServerEvent, ServerInputEnd, ServerLimits,
};

use crate::violation::FramingViolation;

/// Phase of a connection between two messages' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPhase {
    /// Between messages: no byte of the next one has come, or none is wanted.
    Idle,
    /// Some but not all of a head has come.
    ReadingHead,
    /// The head is complete, the body (or its trailers) is not.
    ReadingBody,
}

/// Part of a message in which a violation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// First line or fields.
    Head,
    /// Chunk framing or trailers.
    Body,
}

/// Result of one step of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<Event> {
    /// Bytes that are done with, once the event has been used; the next call begins behind them.
    pub taken: usize,
    /// Event found; `None` where more bytes must come first, or none are wanted now.
    pub event: Option<Event>,
}

impl<Event> Received<Event> {
    const fn nothing() -> Self {
        Self { taken: 0, event: None }
    }

    const fn event(taken: usize, event: Event) -> Self {
        Self { taken, event: Some(event) }
    }
}

/// State of the exchange on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Idle: the next request may come or be sent.
    Ready,
    /// A request or its response is under way.
    Busy,
    /// The response has ended, and the rest of the request's body is being taken in and dropped.
    Draining,
    /// The exchange is over and the connection with it.
    Close,
    /// No longer HTTP: all bytes go to the other side as they are.
    Tunnel,
}

/// Request that is refused for its framing. The connection reads nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The violation.
    pub violation: FramingViolation,
    /// Part with the fault.
    pub part: MessagePart,
    /// The method is HEAD: the answer has no content.
    pub is_head: bool,
    /// No part of a response to it has been written, so it can be answered
    /// ([`write_refusal`](crate::write::write_refusal)) before the connection is closed.
    pub is_answerable: bool,
}
