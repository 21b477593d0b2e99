//! A raw HTTP/1.1 client: it sends the given bytes, right or wrong.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::deadline::PATIENCE;
use crate::message::{Kind, Message, MessageReader, ReadError};

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    reader: MessageReader<TcpStream>,
    patience: Duration,
}

impl Client {
    /// Connects. Reads give up after [`PATIENCE`].
    ///
    /// # Panics
    /// When no server listens.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("no connection to {address}: {error}"))
    }

    /// Connects, or says why not.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    /// Connects from another address of loopback, as another client.
    ///
    /// # Panics
    /// When no server listens.
    #[must_use]
    pub fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let connected = Self::try_connect_from(source, address, PATIENCE);
        connected.unwrap_or_else(|error| panic!("no connection from {source} to {address}: {error}"))
    }

    /// The same within a time, or says why not.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_connect_from(source: Ipv4Addr, address: SocketAddr, within: Duration) -> io::Result<Self> {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let handle = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&handle, &SocketAddr::from((source, 0)))?;
        set_socket_timeout(&handle, Timeout::Send, Some(within))?;
        connect(&handle, &address)?;
        Self::over(TcpStream::from(handle))
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let reader = MessageReader::new(stream.try_clone()?);
        Ok(Self { stream, reader, patience: PATIENCE })
    }

    /// Sets the time after which reads and writes give up, in place of [`PATIENCE`].
    ///
    /// # Panics
    /// When the time is zero.
    pub fn set_patience(&mut self, time: Duration) {
        self.patience = time;
        self.stream.set_read_timeout(Some(time)).expect("a time above zero");
        self.stream.set_write_timeout(Some(time)).expect("a time above zero");
    }

    /// Returns whether the other side has already closed or reset the connection; waits for nothing and takes
    /// nothing.
    ///
    /// # Panics
    /// Never: a connected socket can be asked.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a socket");
        match peeked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// One GET on its own connection.
    ///
    /// # Panics
    /// When no whole response comes.
    #[must_use]
    pub fn get(address: SocketAddr, target: &str) -> Message {
        Self::connect(address)
            .ask(&format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"))
    }

    /// Sends exactly these bytes.
    ///
    /// # Panics
    /// When the other side is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends exactly these bytes, or says why not.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends a request and reads its response.
    ///
    /// # Panics
    /// When no whole response comes.
    pub fn ask(&mut self, request: &str) -> Message {
        self.send(request);
        self.response()
    }

    /// The next response.
    ///
    /// # Panics
    /// When no whole one comes.
    pub fn response(&mut self) -> Message {
        self.try_response().unwrap_or_else(|error| panic!("no response: {error:?}"))
    }

    /// The next response, or what came instead.
    ///
    /// # Errors
    /// When no whole one comes.
    pub fn try_response(&mut self) -> Result<Message, ReadError> {
        self.reader.read(Kind::Response)
    }

    /// The head of the next response; the body is for [`Client::read_some`].
    ///
    /// # Errors
    /// When none comes.
    pub fn response_head(&mut self) -> Result<Message, ReadError> {
        self.reader.read_head()
    }

    /// The response to a HEAD.
    ///
    /// # Errors
    /// When none comes.
    pub fn response_to_head(&mut self) -> Result<Message, ReadError> {
        self.reader.read(Kind::ResponseToHead)
    }

    /// The next bytes, at most `most`; empty at the end.
    ///
    /// # Errors
    /// After a reset or a time out.
    pub fn read_some(&mut self, most: usize) -> io::Result<Vec<u8>> {
        self.reader.read_some(most)
    }

    /// Exactly `count` bytes.
    ///
    /// # Panics
    /// When they do not come.
    pub fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        let whole = self
            .reader
            .read_exactly(count, &mut bytes)
            .unwrap_or_else(|error| panic!("cannot read: {error}"));
        assert!(whole, "the stream ended after {} of {count} bytes", bytes.len());
        bytes
    }

    /// All that comes until the other side closes.
    ///
    /// # Errors
    /// After a reset or a time out.
    pub fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        self.reader.read_to_end()
    }

    /// Asserts that the other side closes and sends nothing more before.
    ///
    /// # Panics
    /// When something comes, or when nothing happens within [`PATIENCE`].
    pub fn expect_closed(&mut self) {
        match self.reader.read_some(1024) {
            Ok(bytes) => assert!(bytes.is_empty(), "not closed but: {}", String::from_utf8_lossy(&bytes)),
            Err(error) => {
                let reset =
                    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
                assert!(reset, "not closed: {error}");
            }
        }
    }

    /// Returns whether nothing comes and nothing is closed for `time`: for what must not happen, so it really
    /// takes that long.
    pub fn is_quiet_for(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a time above zero");
        let quiet = match self.reader.read_some(1024) {
            Ok(_) => false,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        };
        self.stream.set_read_timeout(Some(self.patience)).expect("a time above zero");
        quiet
    }

    /// Returns whether something comes within `time`, which stays to be read.
    pub fn is_answered_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a time above zero");
        let came = matches!(self.stream.peek(&mut [0]), Ok(count) if count > 0);
        self.stream.set_read_timeout(Some(self.patience)).expect("a time above zero");
        came
    }

    /// Ends our direction of the connection (FIN).
    pub fn finish_writing(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The stream itself, for a client that speaks something else.
    #[must_use]
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Vanishes: the other side gets a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}
