//! Clients that behave, whose answers are checked, and clients that do not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashweir_core::Rng;
use flashweir_testkit::{Client, Http2Client, Message, ReadError, StreamEnd, checksum, frame, pattern};

use crate::soak::account::{Account, Id};

/// A host of the service whose server speaks HTTP/2.
pub(crate) const HTTP2_HOST: &str = "h2.example";
/// Kinds of answers that a server may be asked for; see `servers`.
const WANTED: [&str; 12] = [
    "small", "small", "small", "small", "large", "chunks", "slow", "slow", "cut", "rubbish", "more", "silent",
];
/// An upload that is gathered whole, and one that is not.
const BODY_BYTES: [u64; 2] = [5_000, 150_000];
/// Requests on one connection at most, so that connections come and go.
const PER_CONNECTION: u64 = 30;
/// A pause that lets the gateway see a half of something.
const HALFWAY: Duration = Duration::from_millis(5);

/// Everything that a client needs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) gateway: SocketAddr,
    /// One that speaks TLS.
    pub(crate) encrypted: SocketAddr,
    pub(crate) account: Arc<Account>,
    pub(crate) ends: Arc<AtomicBool>,
}

impl Place {
    fn goes_on(&self) -> bool {
        !self.ends.load(Ordering::Relaxed)
    }

    /// A connection, or none while the gateway is away.
    fn connect(&self) -> Option<Client> {
        let client = Client::try_connect(self.gateway).ok();
        if client.is_none() {
            std::thread::park_timeout(HALFWAY);
        }
        client
    }
}

/// Sends good requests, one after the other, and checks each answer.
pub(crate) fn behave(place: &Place, client: usize, mut rng: Rng) {
    let mut next = (0..).map(|number| Id { client, number });
    while place.goes_on() {
        let generation = place.account.generation();
        if rng.below(8) == 0 {
            over_http2(place, next.next().expect("numbers do not end"), generation);
            continue;
        }
        let Some(mut connection) = place.connect() else { continue };
        for _ in 0..=rng.below(PER_CONNECTION) {
            let count = 1 + rng.below(4) / 3 * 2;
            let ids: Vec<Id> = next.by_ref().take(count as usize).collect();
            let generation = place.account.generation();
            if !place.goes_on() || !ask(place, &mut connection, &ids, generation, &mut rng) {
                break;
            }
        }
    }
}

/// One request, or several at once; false when the connection is over.
fn ask(place: &Place, connection: &mut Client, ids: &[Id], generation: u64, rng: &mut Rng) -> bool {
    let is_single = ids.len() == 1;
    let mut bytes = Vec::new();
    for id in ids {
        let wanted = if is_single { WANTED[rng.below(WANTED.len() as u64) as usize] } else { "small" };
        let host = if is_single && rng.below(5) == 0 { HTTP2_HOST } else { "a.example" };
        let body = match rng.below(6) {
            0 if is_single => {
                let most = BODY_BYTES[rng.below(2) as usize];
                pattern(rng.below(most) as usize)
            }
            _ => Vec::new(),
        };
        bytes.extend(request(*id, wanted, host, &body).into_bytes());
        bytes.extend(body);
    }
    if connection.try_send(&bytes).is_err() {
        // The gateway may answer before it has read everything, and close.
        place.account.count("sent in part");
        return false;
    }
    for id in ids {
        match connection.try_response() {
            Ok(answer) => {
                check(place, *id, &answer);
                if answer.field("connection") == Some("close") {
                    return false;
                }
            }
            Err(ReadError::CutShort(answer)) if answer.status() != 0 => {
                check(place, *id, &answer);
                place.account.count("answers cut short");
                return false;
            }
            Err(error) => {
                unanswered(place, *id, generation, &format!("{error:?}"));
                return false;
            }
        }
    }
    true
}

fn request(id: Id, wanted: &str, host: &str, body: &[u8]) -> String {
    let target = format!("/r/{}/{}/{wanted}", id.client, id.number);
    if body.is_empty() {
        return format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    }
    let (length, sum) = (body.len(), checksum(body));
    format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nX-Checksum: {sum}\r\n\r\n")
}

fn check(place: &Place, id: Id, answer: &Message) {
    let account = &place.account;
    let own = format!("{}-{}", id.client, id.number);
    match (answer.status(), answer.field("x-id")) {
        (200, Some(of)) if of == own => account.count("served"),
        (429 | 503, None) => account.count("refused"),
        (502 | 504, None) => account.count("failed at the server"),
        (408, None) => account.count("too slow"),
        (status, of) => account.fault(format!("{id:?} was answered {status} of {of:?}: {}", answer.start)),
    }
}

/// A connection that ends without an answer is right only while the gateway ends, too.
fn unanswered(place: &Place, id: Id, generation: u64, how: &str) {
    let account = &place.account;
    if generation.is_multiple_of(2) && account.generation() == generation {
        account.fault(format!("{id:?} got no answer: {how}"));
    } else {
        account.count("lost with the gateway");
    }
}

/// One request on its own connection.
fn over_http2(place: &Place, id: Id, generation: u64) {
    let path = format!("/r/{}/{}/small", id.client, id.number);
    let fields: [(&str, &[u8]); 4] =
        [(":method", b"GET"), (":scheme", b"http"), (":path", path.as_bytes()), (":authority", b"a.example")];
    let Some(mut connection) = Http2Client::try_connect(place.gateway) else { return };
    let flags = frame::END_HEADERS | frame::END_STREAM;
    if connection.try_send_frame(frame::HEADERS, flags, 1, &Http2Client::encode(&fields)).is_err() {
        unanswered(place, id, generation, "HTTP/2, not sent");
        return;
    }
    match connection.outcome(1) {
        StreamEnd::Status(200) => place.account.count("served over HTTP/2"),
        StreamEnd::Status(429 | 503) => place.account.count("refused over HTTP/2"),
        StreamEnd::Status(502 | 504) => place.account.count("failed at the server"),
        StreamEnd::Reset(7 | 8) | StreamEnd::Closed | StreamEnd::Silence => {
            unanswered(place, id, generation, "HTTP/2");
        }
        other => place.account.fault(format!("{id:?} over HTTP/2: {other:?}")),
    }
}

/// The first of the clients whose answers are not looked at.
const UNCHECKED: usize = 1_000;

/// Does one wrong thing after the other.
pub(crate) fn misbehave(place: &Place, index: usize, mut rng: Rng) {
    let mut number = 0;
    while place.goes_on() {
        number += 1;
        let Some(mut client) = place.connect() else { continue };
        let id = Id { client: UNCHECKED + index, number };
        let good = request(id, "large", "a.example", b"");
        // Errors here mean that the gateway has had enough, or is away.
        let _ = match rng.below(9) {
            0 => client.try_send(&good[..rng.below(good.len() as u64) as usize]),
            1 => client.try_send(&good).map(|()| {
                let _ = client.read_some(1_000);
            }),
            2 => client.try_send(good.replace(
                "\r\n\r\n",
                "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hidden",
            )),
            3 => client.try_send(
                good.replace("\r\n\r\n", "\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /hidden"),
            ),
            4 => client.try_send(good.replace("\r\n\r\n", "\r\nContent-Length: 100000\r\n\r\npart of it")),
            5 => client.try_send(
                good.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\nGET /hidden"),
            ),
            6 => client.try_send([0u8, 1, 2, 3, 255].repeat(200)),
            7 => half_handshake(place),
            _ => crowd(place),
        };
        place.account.count("misdeeds");
        std::thread::park_timeout(HALFWAY);
        if rng.below(2) == 0 {
            client.reset();
        }
    }
}

/// The beginning of a ClientHello.
fn half_handshake(place: &Place) -> std::io::Result<()> {
    let mut client = Client::try_connect(place.encrypted)?;
    client.try_send([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])?;
    std::thread::park_timeout(HALFWAY);
    Ok(())
}

/// Many connections at once that say nothing.
fn crowd(place: &Place) -> std::io::Result<()> {
    let _all = (0..50).map(|_| Client::try_connect(place.gateway)).collect::<std::io::Result<Vec<_>>>()?;
    std::thread::park_timeout(HALFWAY);
    Ok(())
}
