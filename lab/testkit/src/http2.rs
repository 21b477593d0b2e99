//! A raw HTTP/2 client: it sends the given frames, right or wrong, and reads no more of answers than their
//! status.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::deadline::PATIENCE;

/// Frame types of RFC 9113 §6.
pub mod frame {
    /// A part of a body.
    pub const DATA: u8 = 0;
    /// A head, or its first part.
    pub const HEADERS: u8 = 1;
    /// The end of one stream.
    pub const RST_STREAM: u8 = 3;
    /// The other side's wishes.
    pub const SETTINGS: u8 = 4;
    /// A question whether the other side is there.
    pub const PING: u8 = 6;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
    /// Room for more of a body.
    pub const WINDOW_UPDATE: u8 = 8;
    /// A further part of a head.
    pub const CONTINUATION: u8 = 9;

    /// Nothing more comes on this stream.
    pub const END_STREAM: u8 = 1;
    /// The head is complete.
    pub const END_HEADERS: u8 = 4;
    /// This SETTINGS frame answers one.
    pub const ACK: u8 = 1;
}

/// One connection to a server.
#[derive(Debug)]
pub struct Http2Client {
    /// Buffered: a test with thousands of answers would measure its own calls of the system.
    stream: BufReader<TcpStream>,
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// It was answered with this status.
    Status(u16),
    /// It was reset with this error code.
    Reset(u32),
    /// The connection ended.
    Closed,
    /// Nothing came in time.
    Silence,
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Http2Client {
    /// Connects with prior knowledge and says nothing of its wishes.
    ///
    /// # Panics
    /// When there is no listener.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_from(Ipv4Addr::LOCALHOST, address)
    }

    /// The same, or nothing when no server listens.
    #[must_use]
    pub fn try_connect(address: SocketAddr) -> Option<Self> {
        let stream = Client::try_connect(address).ok()?.into_stream();
        let mut client = Self { stream: BufReader::new(stream) };
        client.try_send_bytes(PREFACE).ok()?;
        client.try_send_frame(frame::SETTINGS, 0, 0, b"").ok()?;
        Some(client)
    }

    /// The same from another address of loopback, as another client.
    ///
    /// # Panics
    /// When there is no listener.
    #[must_use]
    pub fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let stream = Client::connect_from(source, address).into_stream();
        let mut client = Self { stream: BufReader::new(stream) };
        client.stream.get_mut().write_all(PREFACE).expect("the other side is there");
        client.send_frame(frame::SETTINGS, 0, 0, b"");
        client
    }

    /// This number of connections (each from its own address, 127.70.x.1), with this number of requests for
    /// one page sent at once on each.
    ///
    /// # Panics
    /// When there is no listener.
    #[must_use]
    pub fn all_asking_for(path: &str, connections: u8, streams: u32, address: SocketAddr) -> Vec<Self> {
        let request: &[(&str, &[u8])] = &[
            (":method", b"GET"),
            (":scheme", b"http"),
            (":path", path.as_bytes()),
            (":authority", b"shop.example"),
        ];
        let mut clients: Vec<Self> = (0..connections)
            .map(|index| Self::connect_from(Ipv4Addr::new(127, 70, index, 1), address))
            .collect();
        for client in &mut clients {
            (0..streams).for_each(|stream| client.request(2 * stream + 1, request, frame::END_STREAM));
        }
        clients
    }

    /// Sends one frame.
    ///
    /// # Panics
    /// When the other side is gone.
    pub fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send_frame(kind, flags, stream, payload)
            .unwrap_or_else(|error| panic!("cannot send a frame: {error}"));
    }

    /// Sends one frame, or says why not.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.stream.get_mut().write_all(&[&head[..], payload].concat())
    }

    /// Sends exactly these bytes: a part of a frame, or none.
    ///
    /// # Panics
    /// When the other side is gone.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes).unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// The same, or says why not.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Begins a request in one frame; `flags` may say that no body follows.
    ///
    /// # Panics
    /// When the other side is gone.
    pub fn request(&mut self, stream: u32, fields: &[(&str, &[u8])], flags: u8) {
        self.send_frame(frame::HEADERS, frame::END_HEADERS | flags, stream, &Self::encode(fields));
    }

    /// Fields as literals that no table remembers (RFC 7541 §6.2.2), their bytes as they are.
    #[must_use]
    pub fn encode(fields: &[(&str, &[u8])]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0);
            push_string(&mut block, name.as_bytes());
            push_string(&mut block, value);
        }
        block
    }

    /// Waits until something is said about a stream: the status of its answer, or its end.
    pub fn outcome(&mut self, stream: u32) -> StreamEnd {
        self.outcome_within(stream, PATIENCE)
    }

    /// The same with a time of the caller's.
    ///
    /// # Panics
    /// When the time is zero.
    pub fn outcome_within(&mut self, stream: u32, time: Duration) -> StreamEnd {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("a time above zero");
        loop {
            let (kind, flags, of, payload) = match self.read_frame() {
                Ok(frame) => frame,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return StreamEnd::Silence;
                }
                Err(_) => return StreamEnd::Closed,
            };
            match kind {
                frame::SETTINGS if flags & frame::ACK == 0 => {
                    let _ = self.try_send_frame(frame::SETTINGS, frame::ACK, 0, b"");
                }
                frame::PING if flags & frame::ACK == 0 => {
                    let _ = self.try_send_frame(frame::PING, frame::ACK, 0, &payload);
                }
                frame::HEADERS if of == stream => return StreamEnd::Status(status(&payload)),
                frame::RST_STREAM if of == stream => {
                    let code = payload.first_chunk().map_or(u32::MAX, |code| u32::from_be_bytes(*code));
                    return StreamEnd::Reset(code);
                }
                _ => {}
            }
        }
    }

    /// The next stream that gets the head of an answer, and its status. None where none comes within
    /// [`PATIENCE`](crate::PATIENCE).
    pub fn next_status(&mut self) -> Option<(u32, u16)> {
        loop {
            let (kind, _, of, payload) = self.read_frame().ok()?;
            if kind == frame::HEADERS {
                return Some((of, status(&payload)));
            }
        }
    }

    /// Stream that is reset within `time`, if one is; the connection's end counts as stream 0's.
    ///
    /// # Panics
    /// When the time is zero.
    pub fn ended_within(&mut self, time: Duration) -> Option<u32> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.stream.get_ref().set_read_timeout(Some(left)).expect("a time above zero");
            // Between frames only: half a frame would be lost.
            let buffered = self.stream.buffer().len();
            let there = if buffered > 0 { Ok(buffered) } else { self.stream.get_ref().peek(&mut [0]) };
            match there {
                Ok(0) => return Some(0),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return None;
                }
                Err(_) => return Some(0),
            }
            self.stream.get_ref().set_read_timeout(Some(PATIENCE)).expect("a time above zero");
            match self.read_frame() {
                Ok((frame::RST_STREAM, _, stream, _)) => return Some(stream),
                Ok((frame::GOAWAY, ..)) | Err(_) => return Some(0),
                Ok((frame::PING, flags, _, payload)) if flags & frame::ACK == 0 => {
                    let _ = self.try_send_frame(frame::PING, frame::ACK, 0, &payload);
                }
                Ok(_) => {}
            }
        }
    }

    /// The next frame: type, flags, stream, payload.
    ///
    /// # Errors
    /// At the end of the connection, or after a time out.
    pub fn read_frame(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
        self.stream.read_exact(&mut payload)?;
        Ok((kind, flags, u32::from_be_bytes(stream) & 0x7fff_ffff, payload))
    }

    /// Ends our direction of the connection.
    pub fn finish_writing(&mut self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
    }
}

/// Length in 7 bits, then in groups of 7 (RFC 7541 §5.1), and no Huffman coding.
fn push_string(block: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        let mut rest = length - 127;
        while rest >= 128 {
            block.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        block.push(rest as u8);
    }
    block.extend_from_slice(bytes);
}

/// The status at the start of a head on a connection that had no other: from the static table, or a literal
/// beside it.
fn status(block: &[u8]) -> u16 {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    match block {
        [first @ 0x88..=0x8e, ..] => INDEXED[usize::from(first - 0x88)],
        // A literal whose name is entry 8 to 14 of the table, remembered or not.
        [0x48..=0x4e | 0x08..=0x0e, length, value @ ..] => {
            let value = &value[..usize::from(length & 0x7f).min(value.len())];
            if length & 0x80 == 0 { decimal(value) } else { huffman_digits(value) }
        }
        _ => 0,
    }
}

fn decimal(digits: &[u8]) -> u16 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Digits in the code of RFC 7541, appendix B: `0`, `1`, `2` have five bits, the others six.
fn huffman_digits(bytes: &[u8]) -> u16 {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let (mut at, mut number) = (0, 0);
    while at + 5 <= bits.len() {
        let take =
            |count: usize| bits[at..at + count].iter().fold(0, |code, bit| code << 1 | u16::from(*bit));
        let five = take(5);
        if five <= 2 {
            (at, number) = (at + 5, number * 10 + five);
            continue;
        }
        if at + 6 > bits.len() {
            break;
        }
        let six = take(6);
        if !(0b01_1001..=0b01_1111).contains(&six) {
            break;
        }
        (at, number) = (at + 6, number * 10 + six - 0b01_1001 + 3);
    }
    number
}
