//! One connection to a scripted upstream, seen from the upstream.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::message::{Kind, Message, MessageReader};

/// Bytes an upstream remembers of what it received.
const REMEMBERED_BYTES: usize = 4 << 20;

/// Requests it remembers.
const REMEMBERED_REQUESTS: usize = 100_000;

/// Bytes and requests that an upstream received so far.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Connections on which a byte came: a gateway opens another one at its start, and asks for nothing.
    pub connections: usize,
    /// Everything read, all connections together (the first 4 MiB).
    pub bytes: Vec<u8>,
    /// The requests read (the first 100,000), bodies left out.
    pub requests: Vec<Message>,
}

impl Received {
    /// Returns whether these bytes came, anywhere.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// The connection that the handler of a scripted upstream works with.
#[derive(Debug)]
pub struct Connection {
    /// Number of connections before this one.
    pub index: usize,
    stream: TcpStream,
    reader: MessageReader<Recording>,
    received: Shared,
}

pub(crate) type Shared = Arc<Mutex<Received>>;

impl Connection {
    pub(crate) fn new(index: usize, stream: TcpStream, received: Shared) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let recording =
            Recording { stream: stream.try_clone()?, received: Arc::clone(&received), is_counted: false };
        Ok(Self { index, stream, reader: MessageReader::new(recording), received })
    }

    /// The next request with its body; `None` when no whole one comes any more.
    pub fn read_request(&mut self) -> Option<Message> {
        let mut message = self.read_head()?;
        self.read_body(&mut message).then_some(message)
    }

    /// The head of the next request; its body stays unread.
    pub fn read_head(&mut self) -> Option<Message> {
        let message = self.reader.read_head().ok()?;
        let mut received = lock(&self.received);
        if received.requests.len() < REMEMBERED_REQUESTS {
            received.requests.push(message.clone());
        }
        drop(received);
        Some(message)
    }

    /// The body of the request whose head was read; false when it does not come to its end.
    pub fn read_body(&mut self, message: &mut Message) -> bool {
        self.reader.read_body(Kind::Request, message).unwrap_or(false)
    }

    /// The next bytes, at most `most`; empty at the end.
    pub fn read_some(&mut self, most: usize) -> Vec<u8> {
        self.reader.read_some(most).unwrap_or_default()
    }

    /// Sends exactly these bytes; false when the other side is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// A response with Content-Length.
    pub fn answer(&mut self, status: u16, fields: &str, body: impl AsRef<[u8]>) -> bool {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
        self.send([head.as_bytes(), body].concat())
    }

    /// Does nothing until the other side goes away or the test ends; true when the other side went away in
    /// order (FIN), false after a reset.
    pub fn stall(&mut self) -> bool {
        loop {
            match self.reader.read_some(64 << 10) {
                Ok(bytes) if bytes.is_empty() => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the connection with RST instead of FIN.
    pub fn reset(&mut self) {
        // Linger 0: the next close discards what is unsent and resets (socket(7)). Every duplicate must go
        // for the close to happen, so reading is shut down first and the rest is dropped by the caller's
        // return.
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Ends our direction of the connection.
    pub fn finish_writing(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// Reads from the stream and remembers what came.
#[derive(Debug)]
struct Recording {
    stream: TcpStream,
    received: Shared,
    is_counted: bool,
}

impl Read for Recording {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        let mut received = lock(&self.received);
        if count > 0 && !std::mem::replace(&mut self.is_counted, true) {
            received.connections += 1;
        }
        let room = REMEMBERED_BYTES.saturating_sub(received.bytes.len()).min(count);
        received.bytes.extend_from_slice(&buffer[..room]);
        Ok(count)
    }
}

pub(crate) fn lock(received: &Shared) -> std::sync::MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}
