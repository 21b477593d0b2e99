//! The client: one request after the other, at a fixed rate.
//!
//! The rate is low enough for the server to come to rest between two requests, so that it always waits for
//! the next one. And what the server does ten, fifty or a hundred times a second then has a fixed part in
//! each request.

use flashweir_load::trials::instructions::Scenario;
use flashweir_testkit::{Http2Client, frame};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that is silent for longer has failed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const HEAD_LINES_MAX: usize = 100;
/// More than any run receives: an HTTP/2 client that never holds a server back.
const WINDOW_BYTES: u32 = 1 << 30;

/// Plain or TLS.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Times of requests: one each `interval`.
struct Pace {
    next: Instant,
    interval: Duration,
}

impl Pace {
    /// Waits for the time of the next request. One that is late takes no time from those behind it.
    fn wait(&mut self) {
        self.next += self.interval;
        while let Some(left) = self.next.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            std::thread::park_timeout(left);
        }
    }
}

/// Sends this number of requests, one each `interval`, and reads their answers.
///
/// # Panics
/// If an answer is not as the scenario expects it: it was not the request that is to be counted.
pub(crate) fn send(
    scenario: Scenario,
    server: SocketAddr,
    authority: &Path,
    requests: u32,
    interval: Duration,
) {
    let mut pace = Pace { next: Instant::now(), interval };
    match scenario {
        Scenario::Http2 => send_http2(server, requests, &mut pace),
        Scenario::RefuseNew => {
            for _ in 0..requests {
                exchange(scenario, &mut BufReader::new(connect(scenario, server, authority)));
                pace.wait();
            }
        }
        _ => {
            let mut stream = BufReader::new(connect(scenario, server, authority));
            for _ in 0..requests {
                exchange(scenario, &mut stream);
                pace.wait();
            }
        }
    }
}

fn connect(scenario: Scenario, server: SocketAddr, authority: &Path) -> Box<dyn Stream> {
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("an option of TCP");
    stream.set_read_timeout(Some(SILENCE_MAX)).expect("a time above zero");
    if scenario != Scenario::Tls {
        return Box::new(stream);
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    Box::new(StreamOwned::new(session, stream))
}

/// One request of HTTP/1.1 and its answer.
fn exchange(scenario: Scenario, stream: &mut BufReader<Box<dyn Stream>>) {
    let body = vec![b'y'; scenario.request_bytes()];
    let (method, length) = match body.len() {
        0 => ("GET", String::new()),
        length => ("POST", format!("Content-Type: text/plain\r\nContent-Length: {length}\r\n")),
    };
    let head = format!(
        "{method} /page HTTP/1.1\r\nHost: localhost\r\nUser-Agent: measurement\r\nAccept: */*\r\n{length}\r\n"
    );
    stream.get_mut().write_all(&[head.into_bytes(), body].concat()).expect("the server is there");
    let (status, bytes) = read_answer(stream);
    let expected = if scenario.is_refused() { 503 } else { 200 };
    assert_eq!(status, expected, "{}", scenario.name());
    assert!(scenario.is_refused() || bytes == scenario.answer_bytes(), "{bytes} bytes");
}

/// Status and bytes of the body.
fn read_answer(stream: &mut BufReader<Box<dyn Stream>>) -> (u16, usize) {
    let (mut status, mut body) = (0, 0);
    for number in 0..HEAD_LINES_MAX {
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer");
        let line = line.trim_end().to_ascii_lowercase();
        if number == 0 {
            status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        } else if let Some(length) = line.strip_prefix("content-length:") {
            body = length.trim().parse().expect("a length");
        } else if line.is_empty() {
            stream.read_exact(&mut vec![0; body]).expect("a whole body");
            return (status, body);
        }
    }
    panic!("an answer with too many fields");
}

/// Requests on one connection, with fields as clients send them: first with names and values, then by their
/// number in the table.
fn send_http2(server: SocketAddr, requests: u32, pace: &mut Pace) {
    let literal = |name: u8, value: &str| [&[0x40 | name, value.len() as u8], value.as_bytes()].concat();
    // `GET`, `http`, then `:path`, `:authority`, `user-agent` and `accept` into the table (RFC 7541, appendix
    // A).
    let start = vec![0x82, 0x86];
    let first =
        [literal(4, "/page"), literal(1, "localhost"), literal(58, "measurement"), literal(19, "*/*")];
    let first = [start.clone(), first.concat()].concat();
    // The newest entry is 62.
    let later = [start, vec![0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]].concat();
    let mut client = Http2Client::connect(server);
    client.send_frame(frame::WINDOW_UPDATE, 0, 0, &WINDOW_BYTES.to_be_bytes());
    for number in 0..requests {
        let block = if number == 0 { &first } else { &later };
        let stream = 2 * number + 1;
        client.send_frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, stream, block);
        read_stream(&mut client, stream);
        pace.wait();
    }
}

fn read_stream(client: &mut Http2Client, stream: u32) {
    loop {
        let (kind, flags, of, payload) = client.read_frame().expect("an answer");
        match kind {
            frame::SETTINGS if flags & frame::ACK == 0 => {
                client.send_frame(frame::SETTINGS, frame::ACK, 0, b"")
            }
            frame::PING if flags & frame::ACK == 0 => client.send_frame(frame::PING, frame::ACK, 0, &payload),
            frame::HEADERS if of == stream => {
                // Behind a change of the table's size, if there is one.
                let status = payload.iter().find(|byte| **byte & 0xe0 != 0x20);
                assert_eq!(status, Some(&0x88), "the entry `:status: 200`");
            }
            frame::GOAWAY | frame::RST_STREAM => {
                panic!("a frame of type {kind} instead of an answer: {payload:?}")
            }
            _ => {}
        }
        if of == stream && flags & frame::END_STREAM != 0 && matches!(kind, frame::HEADERS | frame::DATA) {
            return;
        }
    }
}
