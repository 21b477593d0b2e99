//! An origin server that does what the path says, one thread for each connection.

use super::PATIENCE;
use crate::websocket::accept_of;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens until the test process ends.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    /// The heads of the requests that came.
    pub(crate) heads: Receiver<String>,
    /// Each message lets one `/held` request go on.
    pub(crate) release: Sender<()>,
    /// One message for each connection that ended while its request was held.
    pub(crate) deserted: Receiver<()>,
}

#[derive(Clone)]
struct Script {
    heads: Sender<String>,
    released: Arc<Mutex<Receiver<()>>>,
    deserted: Sender<()>,
}

impl Origin {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let (heads_in, heads) = channel();
        let (release, released) = channel();
        let (deserted_in, deserted) = channel();
        let script =
            Script { heads: heads_in, released: Arc::new(Mutex::new(released)), deserted: deserted_in };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = script.clone();
                thread::spawn(move || script.serve(stream));
            }
        });
        Self { address, heads, release, deserted }
    }

    /// The next request's head, in lower case.
    pub(crate) fn next_head(&self) -> String {
        self.heads.recv_timeout(PATIENCE).expect("a request at the origin").to_ascii_lowercase()
    }
}

impl Script {
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut writer = stream;
        writer.set_nodelay(true).ok()?;
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).ok()? == 0 {
                    return None;
                }
            }
            self.heads.send(head.clone()).ok()?;
            let path = head.split(' ').nth(1)?.to_owned();
            let body = read_body(&head, &mut reader)?;
            self.answer((&head, &path), &body, &mut reader, &mut writer)?;
        }
    }

    /// `None` closes the connection.
    fn answer(
        &self,
        (head, path): (&str, &str),
        body: &[u8],
        reader: &mut BufReader<TcpStream>,
        writer: &mut TcpStream,
    ) -> Option<()> {
        match path.split('?').next()? {
            "/echo" => respond(writer, "200 OK", body),
            "/large" => respond(writer, "200 OK", &vec![b'x'; 1 << 20]),
            "/endless" => {
                writer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
                let chunk = [b"10000\r\n", &[b'x'; 1 << 16][..], b"\r\n"].concat();
                while writer.write_all(&chunk).is_ok() {}
                None
            }
            "/events" => {
                writer
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
                    .ok()?;
                self.wait_for_release(writer);
                None
            }
            "/measured" => writer
                .write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nserver-timing: cpu;dur=2.5\r\n\
                      endpoint-load-metrics: TEXT cpu_utilization=0.5\r\nx-kept: 1\r\n\r\nok",
                )
                .ok(),
            "/failing" => respond(writer, "500 Internal Server Error", b"oops"),
            "/empty" => writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok(),
            "/silent" => {
                // Says nothing until the gateway gives up.
                let _ = reader.read(&mut [0; 1]);
                None
            }
            "/rubbish" => {
                writer.write_all(b"this is no HTTP\r\n\r\n").ok()?;
                None
            }
            "/lying" => {
                writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ntoo short").ok()?;
                None
            }
            "/breaking" => {
                writer
                    .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nstart\r\n")
                    .ok()?;
                None
            }
            "/held" => {
                if !self.wait_for_release(writer) {
                    let _ = self.deserted.send(());
                    return None;
                }
                respond(writer, "200 OK", b"released")
            }
            "/streamed" => {
                writer.write_all(b"HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n").ok()?;
                self.wait_for_release(writer);
                writer.write_all(b"4\r\nlast\r\n0\r\nx-sum: 42\r\n\r\n").ok()
            }
            "/socket" | "/websocket" => {
                let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: "));
                let agreed = match key.filter(|_| path.starts_with("/websocket")) {
                    Some(key) => format!(
                        "upgrade: websocket\r\nsec-websocket-protocol: chat\r\nsec-websocket-accept: {}",
                        accept_of(key)
                    ),
                    None => "upgrade: echo".to_owned(),
                };
                let answer =
                    format!("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n{agreed}\r\n\r\n");
                writer.write_all(answer.as_bytes()).ok()?;
                let mut buffer = [0; 1_024];
                loop {
                    match reader.read(&mut buffer).ok()? {
                        0 => return None,
                        count => writer.write_all(&buffer[..count]).ok()?,
                    }
                }
            }
            _ => respond(writer, "200 OK", b"hello"),
        }
    }

    /// `true` when released, `false` when the gateway closed the connection first.
    fn wait_for_release(&self, stream: &mut TcpStream) -> bool {
        stream.set_nonblocking(true).expect("non-blocking");
        let released = loop {
            if self.released.lock().expect("lock").try_recv().is_ok() {
                break true;
            }
            match stream.peek(&mut [0; 1]) {
                Ok(0) => break false,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break false,
                _ => thread::yield_now(),
            }
        };
        stream.set_nonblocking(false).expect("blocking");
        released
    }
}

fn respond(writer: &mut TcpStream, status: &str, body: &[u8]) -> Option<()> {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nkeep-alive: timeout=5\r\n\r\n", body.len());
    writer.write_all(head.as_bytes()).ok()?;
    writer.write_all(body).ok()
}

fn read_body(head: &str, reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let head = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        body.resize(length.trim().parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
    } else if head.contains("transfer-encoding: chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
    Some(body)
}
