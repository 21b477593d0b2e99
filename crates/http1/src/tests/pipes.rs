//! Two ends of one connection, joined by pipes that deliver bytes in random pieces.

use super::framing::LIMITS;
use crate::body::{BodyFraming, CHUNK_END, ContentFrame};
use crate::connection::{
    ClientConnection, ClientEvent, Disposition, RequestBodyUse, RequestStart, ResponseEnd, ServerConnection,
    ServerEvent, ServerLimits,
};
use crate::head::{Fields, KnownField, Method};
use crate::write::{CONTINUE, OutgoingResponse, write_own_response, write_trailers};
use flashweir_core::Rng;

/// Content of a message, and its framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) content: Vec<u8>,
    /// Its length is said in the head.
    pub(super) has_length: bool,
    /// Ends with a trailer, where its framing has them.
    pub(super) has_trailer: bool,
}

/// One request and its answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) method: &'static str,
    pub(super) is_http10: bool,
    /// Further field lines of the request.
    pub(super) lines: &'static str,
    pub(super) request: Option<Body>,
    pub(super) interims: usize,
    pub(super) status: u16,
    pub(super) response: Body,
    /// The answer begins with the request's head, not with its end.
    pub(super) is_early: bool,
    pub(super) body_use: RequestBodyUse,
    /// The server ends the connection with this answer.
    pub(super) is_last: bool,
}

/// Message as an end got it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Target of a request; status of a response.
    pub(super) start: String,
    pub(super) interims: Vec<u16>,
    pub(super) content: Vec<u8>,
    pub(super) trailers: Vec<String>,
    pub(super) is_whole: bool,
}

/// Both ends, and the bytes between them.
pub(super) struct Pair {
    rng: Rng,
    client: ClientConnection,
    server: ServerConnection,
    exchanges: Vec<Exchange>,
    /// Exchanges begun by the client, and answered by the server.
    begun: usize,
    answered: usize,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    at_server: Vec<u8>,
    at_client: Vec<u8>,
    /// Content sent of the request and of the response.
    sent_request: usize,
    sent_response: Option<usize>,
    waits_for_continue: bool,
    pub(super) requests: Vec<Message>,
    pub(super) responses: Vec<Message>,
    pub(super) client_end: Option<ResponseEnd>,
}

const TRAILER: &str = "X-Sum: 17";

pub(super) fn method_of(exchange: &Exchange) -> Method {
    Method::of(exchange.method.as_bytes())
}

impl Pair {
    pub(super) fn new(exchanges: Vec<Exchange>, seed: u64, limits: ServerLimits) -> Self {
        Self {
            rng: Rng::new(seed),
            client: ClientConnection::new(LIMITS.head),
            server: ServerConnection::new(limits),
            exchanges,
            begun: 0,
            answered: 0,
            to_server: Vec::new(),
            to_client: Vec::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            sent_request: 0,
            sent_response: None,
            waits_for_continue: false,
            requests: Vec::new(),
            responses: Vec::new(),
            client_end: None,
        }
    }

    /// Runs until all exchanges are over or the server has closed the connection.
    pub(super) fn run(mut self) -> Self {
        for _ in 0..100_000 {
            match self.rng.below(4) {
                0 => self.client_sends(),
                1 => self.server_sends(),
                2 => {
                    deliver(&mut self.to_server, &mut self.at_server, &mut self.rng);
                    self.server_reads();
                }
                _ => {
                    deliver(&mut self.to_client, &mut self.at_client, &mut self.rng);
                    self.client_reads();
                }
            }
            let is_closed = self.server.disposition() == Disposition::Close;
            if is_closed && self.to_client.is_empty() {
                self.client_reads();
                let end = self.client.end_input();
                if let (ResponseEnd::Whole, Some(response)) = (end, self.responses.last_mut()) {
                    response.is_whole = true;
                }
                self.client_end = Some(end);
                return self;
            }
            let is_over = self.begun == self.exchanges.len()
                && self.client.disposition() == Disposition::Ready
                && self.server.disposition() == Disposition::Ready;
            if is_over || self.client.disposition() == Disposition::Tunnel && self.is_server_tunnel() {
                return self;
            }
        }
        panic!("no end: {:?} {:?} of {:?}", self.client, self.server, self.exchanges);
    }

    pub(super) fn dispositions(&self) -> (Disposition, Disposition) {
        (self.client.disposition(), self.server.disposition())
    }

    fn is_server_tunnel(&self) -> bool {
        self.server.disposition() == Disposition::Tunnel
    }

    /// Begins a request or sends a piece of its body.
    fn client_sends(&mut self) {
        if self.client.disposition() == Disposition::Ready {
            let Some(exchange) = self.exchanges.get(self.begun).cloned() else { return };
            self.begin_request(&exchange);
            return;
        }
        let Some(exchange) = self.begun.checked_sub(1).and_then(|index| self.exchanges.get(index)) else {
            return;
        };
        let Some(body) = exchange.request.clone().filter(|_| !self.waits_for_continue) else { return };
        // A client that has its answer need not send the rest; this one does, as ordinary clients do.
        send(&body, &mut self.sent_request, &mut self.to_server, &mut self.rng, |bytes, out| match bytes {
            Some(bytes) => frame(self.client.frame(bytes.len() as u64), bytes, out),
            None if body.has_trailer && self.client.end_with_trailers() => put_trailers(out),
            None => out.extend_from_slice(self.client.end().expect("as long as announced")),
        });
    }

    fn begin_request(&mut self, exchange: &Exchange) {
        let (version, index) = (if exchange.is_http10 { "1.0" } else { "1.1" }, self.begun);
        let (body, framing) = match &exchange.request {
            None => (BodyFraming::None, String::new()),
            Some(body) if body.has_length => {
                let length = body.content.len();
                (BodyFraming::Length(length as u64), format!("Content-Length: {length}\r\n"))
            }
            Some(_) => (BodyFraming::Chunked, "Transfer-Encoding: chunked\r\n".to_owned()),
        };
        let head = format!(
            "{} /{index} HTTP/{version}\r\nHost: a\r\n{framing}{}\r\n",
            exchange.method, exchange.lines
        );
        let wants_upgrade = exchange.lines.contains("Upgrade:");
        let start = RequestStart { method: method_of(exchange), body, wants_upgrade, is_last: false };
        assert!(self.client.begin(start));
        self.to_server.extend_from_slice(head.as_bytes());
        self.begun += 1;
        self.sent_request = 0;
        self.waits_for_continue = exchange.lines.contains("100-continue");
        self.responses.push(Message::default());
        if exchange.request.is_none() {
            assert_eq!(self.client.end(), Ok(&b""[..]));
        }
    }

    fn server_reads(&mut self) {
        loop {
            let received = self.server.receive(&self.at_server).expect("good requests");
            let bytes = &self.at_server;
            match &received.event {
                None => {}
                Some(ServerEvent::Head { .. }) => {
                    let head = self.server.head(bytes).expect("a whole head");
                    assert_eq!(head.fields().get(KnownField::Host), Some(&b"a"[..]));
                    self.requests.push(Message {
                        start: String::from_utf8_lossy(head.target()).into_owned(),
                        is_whole: head.body() == BodyFraming::None,
                        ..Message::default()
                    });
                }
                Some(event) => {
                    let request = self.requests.last_mut().expect("a head came first");
                    match event {
                        ServerEvent::Content(range) => {
                            request.content.extend_from_slice(&bytes[range.clone()])
                        }
                        ServerEvent::Trailers(range) => {
                            request.trailers = lines(self.server.trailers(&bytes[range.clone()]));
                        }
                        ServerEvent::End | ServerEvent::Head { .. } => request.is_whole = true,
                    }
                }
            }
            self.at_server.drain(..received.taken);
            if received.event.is_none() {
                return;
            }
        }
    }

    /// Begins a response where one is due, or sends a piece of its body.
    fn server_sends(&mut self) {
        let Some(exchange) = self.exchanges.get(self.answered).cloned() else { return };
        let Some(request) = self.requests.get(self.answered) else { return };
        if self.sent_response.is_none() {
            if !request.is_whole && !exchange.is_early {
                if self.server.expects_continue() {
                    assert!(self.server.takes_interim());
                    self.to_client.extend_from_slice(CONTINUE);
                    self.server.wrote_continue();
                }
                return;
            }
            self.begin_response(&exchange);
            return;
        }
        let mut sent = self.sent_response.unwrap_or_default();
        let body = &exchange.response;
        let is_over = send(body, &mut sent, &mut self.to_client, &mut self.rng, |bytes, out| match bytes {
            Some(bytes) => frame(self.server.frame(bytes.len() as u64), bytes, out),
            None if body.has_trailer && self.server.end_with_trailers() => put_trailers(out),
            None => out.extend_from_slice(self.server.end().expect("as long as announced")),
        });
        self.sent_response = Some(sent);
        if is_over {
            (self.answered, self.sent_response) = (self.answered + 1, None);
        }
    }

    fn begin_response(&mut self, exchange: &Exchange) {
        for _ in 0..if self.server.takes_interim() { exchange.interims } else { 0 } {
            self.to_client.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        let length = exchange.response.has_length.then_some(exchange.response.content.len() as u64);
        let start = self
            .server
            .respond(exchange.status, length, exchange.body_use, exchange.is_last)
            .expect("a response is due");
        let parts = OutgoingResponse {
            framing: start.framing,
            connection: start.connection,
            ..OutgoingResponse::default()
        };
        write_own_response(exchange.status, b"", &parts, &mut self.to_client);
        self.sent_response = Some(0);
    }

    fn client_reads(&mut self) {
        loop {
            let received = self.client.receive(&self.at_client).unwrap_or_else(|fault| {
                panic!("{fault} at {} in {:?}", self.at_client.escape_ascii(), self.exchanges)
            });
            let Some(event) = received.event else {
                self.at_client.drain(..received.taken);
                return;
            };
            let bytes = &self.at_client;
            let response = self.responses.last_mut().expect("a request came first");
            match event {
                ClientEvent::Interim { status, .. } => {
                    response.interims.push(status);
                    self.waits_for_continue &= status != 100;
                }
                ClientEvent::Head { body, .. } => {
                    let head = self.client.head(bytes).expect("a whole head");
                    response.start = head.status().to_string();
                    response.is_whole = matches!(body, BodyFraming::None | BodyFraming::Tunnel);
                    self.waits_for_continue = false;
                }
                ClientEvent::Content(range) => response.content.extend_from_slice(&bytes[range]),
                ClientEvent::Trailers(range) => {
                    response.trailers = lines(self.client.trailers(&bytes[range]))
                }
                ClientEvent::End => response.is_whole = true,
            }
            self.at_client.drain(..received.taken);
        }
    }
}

fn lines(fields: Fields<'_>) -> Vec<String> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect()
}

/// Sends the next piece of a body, or its end; true for that.
fn send(
    body: &Body,
    sent: &mut usize,
    out: &mut Vec<u8>,
    rng: &mut Rng,
    mut write: impl FnMut(Option<&[u8]>, &mut Vec<u8>),
) -> bool {
    let rest = &body.content[(*sent).min(body.content.len())..];
    if rest.is_empty() {
        // Once more than its content: the end has been sent.
        if *sent == body.content.len() {
            write(None, out);
        }
        *sent = body.content.len() + 1;
        return true;
    }
    let piece = &rest[..1 + rng.below(rest.len() as u64) as usize];
    write(Some(piece), out);
    *sent += piece.len();
    false
}

fn frame(frame: Result<ContentFrame, crate::body::LengthError>, bytes: &[u8], out: &mut Vec<u8>) {
    match frame.expect("as long as announced") {
        ContentFrame::Plain => out.extend_from_slice(bytes),
        ContentFrame::Discard => {}
        ContentFrame::Chunk(prefix) => {
            for part in [prefix.as_bytes(), bytes, CHUNK_END] {
                out.extend_from_slice(part);
            }
        }
    }
}

/// Writes a trailer section that another message brought.
fn put_trailers(out: &mut Vec<u8>) {
    let received = format!("0\r\n{TRAILER}\r\nX_Forwarded_For: forged\r\n\r\n");
    let mut reader = crate::body::BodyReader::new(LIMITS.head);
    reader.begin(BodyFraming::Chunked);
    let step = reader.read(received.as_bytes()).expect("good trailers");
    let Some(crate::body::BodyPart::Trailers(range)) = step.part else { panic!("{step:?}") };
    write_trailers(reader.trailers(&received.as_bytes()[range]), out);
}

/// Trailers that arrive where [`put_trailers`] wrote them.
pub(super) fn trailers(is_sent: bool) -> Vec<String> {
    if is_sent { vec![TRAILER.to_owned()] } else { Vec::new() }
}

/// Moves some of the bytes under way to their end.
fn deliver(from: &mut Vec<u8>, to: &mut Vec<u8>, rng: &mut Rng) {
    let most = if rng.below(3) == 0 { 3 } else { from.len() as u64 };
    let count = (rng.below(most + 1) as usize).min(from.len());
    to.extend(from.drain(..count));
}
