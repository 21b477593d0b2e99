//! A scripted TCP server to put behind the gateway.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Received, Shared, lock};
use crate::message::Message;
use crate::pattern::{checksum, pattern};

/// Accepts on loopback and gives each connection to the handler, on its own thread.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    received: Shared,
    stopping: Arc<AtomicBool>,
    open: OpenStreams,
    acceptor: Option<JoinHandle<()>>,
}

/// A listener that has been closed may be open for as long as this in a process that is being started: until
/// that runs its program it has a copy.
const COPIES_LAST: Duration = Duration::from_secs(10);

/// Listens where another listener of this process may have been closed just now.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let since = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && since.elapsed() < COPIES_LAST => {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            bound => return bound,
        }
    }
}

/// Duplicates of the streams being handled, to shut them down when the test ends.
type OpenStreams = Arc<Mutex<HashMap<usize, TcpStream>>>;

impl Upstream {
    /// Starts one; the connection ends when the handler returns.
    ///
    /// # Panics
    /// When no port of loopback can be listened on.
    pub fn start(handler: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), handler)
    }

    /// Starts one at a given address, to come back where another one was.
    ///
    /// # Panics
    /// When the address cannot be listened on.
    pub fn start_at(address: SocketAddr, handler: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        let listener = listen(address).unwrap_or_else(|error| panic!("upstream at {address}: {error}"));
        let address = listener.local_addr().expect("a bound listener");
        let (received, stopping, open) = (Shared::default(), Arc::default(), OpenStreams::default());
        let acceptor = Acceptor {
            listener,
            received: Arc::clone(&received),
            stopping: Arc::clone(&stopping),
            open: Arc::clone(&open),
        };
        let handler = Arc::new(handler);
        let acceptor = std::thread::spawn(move || acceptor.run(&handler));
        Self { address, received, stopping, open, acceptor: Some(acceptor) }
    }

    /// One that answers every request with what it received: see [`reflect`].
    #[must_use]
    pub fn reflecting() -> Self {
        Self::start(
            |connection| {
                while connection.read_request().is_some_and(|request| reflect(connection, &request)) {}
            },
        )
    }

    /// One that answers every request with 200 and this text.
    #[must_use]
    pub fn saying(text: &'static str) -> Self {
        Self::start(move |connection| {
            while connection.read_request().is_some()
                && connection.answer(200, "Content-Type: text/plain\r\n", text)
            {}
        })
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As `upstream.urls` wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bytes and requests received so far.
    #[must_use]
    pub fn received(&self) -> Received {
        lock(&self.received).clone()
    }

    /// Number of requests so far.
    #[must_use]
    pub fn request_count(&self) -> usize {
        lock(&self.received).requests.len()
    }

    /// The latest request.
    ///
    /// # Panics
    /// When none came.
    #[must_use]
    pub fn last_request(&self) -> Message {
        lock(&self.received).requests.last().cloned().expect("a request reached the upstream")
    }

    /// Connections being handled now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Answers with the request's head as it came as the body, and with `X-Body-Bytes`, `X-Body-Checksum` and
/// `X-Trailer-Count`. A target `/bytes/N` is answered with N bytes of [`pattern`], `/chunks/N` with the same
/// in chunks and a trailer `X-Sum`, `/status/N` with that status and no body. False when the connection is
/// over.
pub fn reflect(connection: &mut Connection, request: &Message) -> bool {
    let target = request.start.split(' ').nth(1).unwrap_or("/");
    let number = |prefix: &str| target.strip_prefix(prefix).and_then(|number| number.parse::<usize>().ok());
    if request.start.starts_with("HEAD ") {
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nX-Method: HEAD\r\n\r\n");
    }
    if let Some(count) = number("/bytes/") {
        return connection.answer(200, "", pattern(count));
    }
    if let Some(count) = number("/chunks/") {
        return send_chunks(connection, &pattern(count));
    }
    if let Some(status) = number("/status/") {
        return connection.send(format!("HTTP/1.1 {status} Scripted\r\nETag: \"1\"\r\n\r\n"));
    }
    let fields = format!(
        "X-Body-Bytes: {}\r\nX-Body-Checksum: {}\r\nX-Trailer-Count: {}\r\n",
        request.body.len(),
        checksum(&request.body),
        request.trailers.0.len()
    );
    connection.answer(200, &fields, &request.head)
}

fn send_chunks(connection: &mut Connection, body: &[u8]) -> bool {
    const CHUNK: usize = 10_007;
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let sum = checksum(body);
    connection.send(head)
        && body.chunks(CHUNK).all(|chunk| {
            let size = format!("{:x}\r\n", chunk.len());
            connection.send([size.as_bytes(), chunk, b"\r\n"].concat())
        })
        && connection.send(format!("0\r\nX-Sum: {sum}\r\n\r\n"))
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is to stop.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

struct Acceptor {
    listener: TcpListener,
    received: Shared,
    stopping: Arc<AtomicBool>,
    open: OpenStreams,
}

impl Acceptor {
    fn run(self, handler: &Arc<impl Fn(&mut Connection) + Send + Sync + 'static>) {
        for index in 0.. {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            let duplicate = stream.try_clone();
            let Ok(mut connection) = Connection::new(index, stream, Arc::clone(&self.received)) else {
                continue;
            };
            let streams = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
            streams().extend(duplicate.ok().map(|stream| (index, stream)));
            let (handler, open) = (Arc::clone(handler), Arc::clone(&self.open));
            std::thread::spawn(move || {
                handler(&mut connection);
                drop(connection);
                // The duplicate is the last of its socket: a test that sees the count go down sees a closed
                // connection.
                let mut streams = open.lock().unwrap_or_else(PoisonError::into_inner);
                drop(streams.remove(&index));
            });
        }
    }
}
