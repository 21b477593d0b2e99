//! Makes the bytes to send: heads out of received ones, trailers, and answers to requests that are refused.
//!
//! Field lines are copied as they came, those that lie side by side in one piece, without the fields that
//! belong to the received connection; what this hop has to say is put behind them. A line with unusual white
//! space or line end is written in the ordinary spelling. Cost: some ten instructions for each field, and the
//! copying.

mod copy;
mod refusal;
mod request;
mod response;

pub use copy::write_trailers;
pub use refusal::{CONTINUE, write_refusal};
pub use request::{OutgoingRequest, write_request};
pub use response::{OutgoingResponse, write_own_response, write_response};

use crate::body::BodyFraming;
use alloc::vec::Vec;

/// Buffer that a head is written into.
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Field that frames the body of a message to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FramingField {
    /// None: no body, or one up to the end of the connection.
    #[default]
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

impl From<BodyFraming> for FramingField {
    fn from(framing: BodyFraming) -> Self {
        match framing {
            BodyFraming::None | BodyFraming::UntilClose | BodyFraming::Tunnel => Self::None,
            BodyFraming::Length(length) => Self::Length(length),
            BodyFraming::Chunked => Self::Chunked,
        }
    }
}

/// Option of `Connection` in a message to send (RFC 9110 §7.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionField {
    /// No such field: HTTP/1.1's connections go on.
    #[default]
    None,
    /// `close`: this is the last message.
    Close,
    /// `keep-alive`, which a client of HTTP/1.0 asked for.
    KeepAlive,
    /// `upgrade`, with the received `Upgrade`.
    Upgrade,
    /// `te`, with `TE: trailers`.
    Trailers,
}

impl ConnectionField {
    const fn lines(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Close => b"Connection: close\r\n",
            Self::KeepAlive => b"Connection: keep-alive\r\n",
            Self::Upgrade => b"Connection: upgrade\r\n",
            Self::Trailers => b"Connection: te\r\nTE: trailers\r\n",
        }
    }
}

impl FramingField {
    fn write(self, out: &mut impl Sink) {
        match self {
            Self::None => {}
            Self::Length(length) => {
                out.put(b"Content-Length: ");
                out.put(Decimal::new(length).as_bytes());
                out.put(b"\r\n");
            }
            Self::Chunked => out.put(b"Transfer-Encoding: chunked\r\n"),
        }
    }
}

/// Writes one field line. `name` and `value` are as the strict reader leaves them: a token, and text without
/// line ends.
pub fn write_field(out: &mut impl Sink, name: &[u8], value: &[u8]) {
    debug_assert!(!name.contains(&b'\n') && !value.contains(&b'\n'), "a line end within a field");
    out.put(name);
    out.put(b": ");
    out.put(value);
    out.put(b"\r\n");
}

/// Digits of a number.
#[derive(Debug)]
pub struct Decimal {
    digits: [u8; Self::DIGITS_MAX],
    start: usize,
}

impl Decimal {
    const DIGITS_MAX: usize = 20;

    /// Digits of `number`.
    #[must_use]
    pub fn new(number: u64) -> Self {
        let (mut digits, mut start, mut rest) = ([0; Self::DIGITS_MAX], Self::DIGITS_MAX, number);
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return Self { digits, start };
            }
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    /// The digits as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
