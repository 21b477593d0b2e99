//! A case: what a client and an origin send, and how a proxy between them is judged. Plain values.

use crate::observation::Observation;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Bytes of a script, mostly literals.
pub(crate) type Bytes = Cow<'static, [u8]>;

/// One row of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Messages of both ends, in words.
    pub(crate) sent: &'static str,
    /// Section of the RFC.
    pub(crate) rfc: &'static str,
    /// Requirement of that section on the proxy.
    pub(crate) asks: &'static str,
    pub(crate) word: Word,
    /// Acts of the origin on each connection; they begin again at the end.
    pub(crate) origin: Vec<Act>,
    pub(crate) client: Script,
    pub(crate) judge: fn(&Observation) -> Verdict,
}

/// Strength of the RFC's word (BCP 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Must,
    Should,
    /// The RFC allows or describes the behaviour without MUST or SHOULD, and this project asks for it.
    Says,
    /// The RFC leaves it open: the row informs and is not counted.
    Open,
}

/// Judgement of one proxy in one case.
pub(crate) struct Verdict {
    pub(crate) is_right: bool,
    /// Behaviour of the proxy in a few words.
    pub(crate) cell: String,
}

/// Act of the origin.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads the head and the body of a request.
    Request,
    /// Reads the head of a request.
    Head,
    /// Reads the body of the request whose head was read last.
    Body,
    Send(Bytes),
    Pause(Duration),
    /// Closes both directions; bytes that are unread make it a reset.
    Close,
    /// Ends the sending direction and reads until the proxy ends the other.
    Linger,
}

/// Acts of the client.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    Http1(Vec<Step>),
    /// One request on stream 1 of a connection with prior knowledge (RFC 9113 §3.3).
    Http2 {
        fields: Vec<(&'static str, &'static str)>,
        body: Option<&'static [u8]>,
    },
    /// One frame sent again and again on an HTTP/2 connection.
    Flood(&'static [u8]),
}

/// Act of a client that speaks HTTP/1.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends a request or its beginning; connects first where no usable connection is open.
    Send(Bytes),
    /// Sends the rest of the request, unless its final response has come.
    SendUnlessAnswered(Bytes),
    /// Waits for one response, interim or final, for no longer than this.
    Within(Duration),
    /// Reads responses up to the final one, unless that has come.
    Final,
    /// The same for a request by HEAD.
    FinalToHead,
    /// Waits until the origin has closed all its connections, and a moment more for the proxy.
    OriginCloses,
    /// Ends the sending direction (FIN).
    HalfClose,
    /// Finds out whether the proxy closes the connection within this time.
    End(Duration),
    /// Leaves the connection; the next `Send` makes another.
    Leave,
}

impl Verdict {
    pub(crate) fn new(is_right: bool, cell: impl Into<String>) -> Self {
        Self { is_right, cell: cell.into() }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Says => "says",
            Self::Open => "open",
        })
    }
}

/// Milliseconds, for scripts.
pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// An act that sends these bytes.
pub(crate) fn say(bytes: &'static str) -> Act {
    Act::Send(Cow::Borrowed(bytes.as_bytes()))
}

/// A step that sends these bytes.
pub(crate) fn send(bytes: &'static str) -> Step {
    Step::Send(Cow::Borrowed(bytes.as_bytes()))
}

/// A step that sends bytes made for the row.
pub(crate) fn send_made(bytes: String) -> Step {
    Step::Send(Cow::Owned(bytes.into_bytes()))
}

/// A client that sends these bytes and reads the response.
pub(crate) fn ask(bytes: &'static str) -> Script {
    Script::Http1(vec![send(bytes), Step::Final])
}

/// The plain request of a row that is about something else.
pub(crate) const GET: &str = "GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n";

/// The plain response of a row that is about something else.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An origin that answers each request with 200.
pub(crate) fn plain() -> Vec<Act> {
    vec![Act::Request, say(OK)]
}
