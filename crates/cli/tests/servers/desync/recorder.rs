//! An upstream that keeps every byte, reads strictly, and answers each request with its target.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use flashweir_fuzz::reference::{End, Kind, Message, lenient, strict};

/// Bytes that arrived on each connection.
type Tape = Arc<Mutex<Vec<Vec<u8>>>>;

/// See the module's documentation. Its threads end with the gateway's connections.
pub(crate) struct Recorder {
    address: SocketAddr,
    tape: Tape,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("a bound listener");
        let tape = Tape::default();
        let writer = Arc::clone(&tape);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let tape = Arc::clone(&writer);
                std::thread::spawn(move || record(stream, &tape));
            }
        });
        Self { address, tape }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The whole requests of each connection, in their order, as two readers read them.
    pub(crate) fn connections(&self) -> Vec<Vec<Message>> {
        let tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |bytes: &Vec<u8>| {
            let (requests, end) = strict(bytes, Kind::Requests);
            assert!(!matches!(end, End::Bad(_)), "{end:?} arrived: {}", bytes.escape_ascii());
            assert_eq!(lenient(bytes).0, requests, "two readings arrived: {}", bytes.escape_ascii());
            requests
        };
        tape.iter().map(read).collect()
    }
}

fn record(mut stream: TcpStream, tape: &Tape) {
    let lock = || tape.lock().unwrap_or_else(PoisonError::into_inner);
    let index = {
        let mut connections = lock();
        connections.push(Vec::new());
        connections.len() - 1
    };
    let (mut unread, mut buffer) = (Vec::new(), [0; 16 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..read]);
        lock()[index].extend_from_slice(&buffer[..read]);
        let (requests, end) = strict(&unread, Kind::Requests);
        match end {
            End::Bad(_) => return,
            End::Partial => continue,
            End::Whole => unread.clear(),
        }
        for request in &requests {
            let target = request.target();
            let body = if request.method() == "HEAD" { "" } else { target };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", target.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}
