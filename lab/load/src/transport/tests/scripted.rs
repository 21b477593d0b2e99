//! A server that follows a script, connection by connection.

use super::LONG;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Next step on a connection; after the last one it is closed.
pub(super) enum Step {
    /// Read a request's head; a body must be read by [`Step::Read`].
    ReadHead,
    /// Read this number of bytes.
    Read(usize),
    Write(Vec<u8>),
    /// Write each byte by itself.
    WriteBytewise(Vec<u8>),
    /// Go on when a message comes, or when the sender is gone.
    Await(mpsc::Receiver<()>),
    /// Close, and tell.
    End(mpsc::Sender<()>),
    /// Read until the client closes, which it must.
    AwaitClose,
}

pub(super) fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

/// A request answered with `text`.
pub(super) fn answer(text: &str) -> [Step; 2] {
    [Step::ReadHead, write(text)]
}

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Record of one connection.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) peer: SocketAddr,
    pub(super) heads: Vec<String>,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    thread: JoinHandle<Vec<Seen>>,
}

impl Server {
    /// Accepts as many connections as there are scripts, in order; then none.
    pub(super) fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let connections: Vec<_> = scripts
                .into_iter()
                .map(|script| {
                    let (stream, peer) = listener.accept().unwrap();
                    std::thread::spawn(move || follow(stream, peer, script))
                })
                .collect();
            connections.into_iter().map(|connection| connection.join().unwrap()).collect()
        });
        Self { address, thread }
    }

    /// One connection with one script.
    pub(super) fn once(script: impl IntoIterator<Item = Step>) -> Self {
        Self::start(vec![script.into_iter().collect()])
    }

    /// The records, once every script was followed to its end.
    pub(super) fn join(self) -> Vec<Seen> {
        self.thread.join().unwrap()
    }
}

fn follow(mut stream: TcpStream, peer: SocketAddr, script: Vec<Step>) -> Seen {
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut seen = Seen { peer, heads: Vec::new() };
    for step in script {
        match step {
            Step::ReadHead => seen.heads.push(read_head(&mut stream)),
            Step::Read(bytes) => read_bytes(&mut stream, bytes),
            Step::Write(bytes) => stream.write_all(&bytes).unwrap(),
            Step::WriteBytewise(bytes) => bytes.chunks(1).for_each(|byte| stream.write_all(byte).unwrap()),
            Step::Await(released) => drop(released.recv_timeout(LONG)),
            Step::End(tell) => {
                stream.shutdown(Shutdown::Both).unwrap();
                tell.send(()).unwrap();
            }
            Step::AwaitClose => await_close(&mut stream),
        }
    }
    seen
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn read_bytes(stream: &mut TcpStream, bytes: usize) {
    let copied = std::io::copy(&mut stream.take(bytes as u64), &mut std::io::sink()).unwrap();
    assert_eq!(copied, bytes as u64);
}

fn await_close(stream: &mut TcpStream) {
    match std::io::copy(stream, &mut std::io::sink()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}
