//! HTTP/1.1 without I/O: bytes in, events and bytes out.
//!
//! ```text
//! client ── bytes ──► connection::ServerConnection                connection::ClientConnection ──► upstream
//!                       │ RequestReader, BodyReader                 │ ResponseReader, BodyReader
//!                       └─ head, content, end ──► driver ──► write ─┘
//! ```
//!
//! **What it decides.** Which bytes are a head, content and trailers; which are refused because two readers
//! could read them differently; whether a connection goes on. **Not here:** sockets, clocks and buffers,
//! which are the driver's, and everything that is policy.
//!
//! * [`head`] reads a head once, into places in the receive buffer, by strict rules that are judged line by
//!   line as it comes; [`body`] steps over the body behind it.
//! * [`mod@write`] makes the head to send out of the received one: spans are copied, without the fields of
//!   one hop.
//! * [`connection`] is a state machine for each side: which message is due, what the next bytes are, and when
//!   the connection ends.
//!
//! **Buffers.** A reader gets all bytes since the last that it took, and says how many it takes: the caller
//! drops those when it has used what was found in them. A head and a trailer section are taken whole, so a
//! buffer holds one of them at most (their limits bound it), and content in any pieces.
//!
//! **Cost.** Nothing is allocated for a request once a connection's table of fields has its size; every byte
//! is looked at two or three times. `examples/instructions.rs` counts. **Failure modes.** A fault is returned
//! at the first byte that shows it; after it the connection reads nothing more.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod body;
mod byte_class;
pub mod connection;
pub mod head;
mod scan;
#[cfg(test)]
mod tests;
mod violation;
pub mod write;

pub use violation::FramingViolation;
