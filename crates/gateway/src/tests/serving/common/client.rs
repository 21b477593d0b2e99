//! A client over a plain socket: what it sends is what goes over the wire.

use super::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body ended where its framing says.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The first field of this (lower-case) name.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    pub(crate) fn expect_field(&self, name: &str) -> String {
        self.field(name).unwrap_or_else(|| panic!("no {name} in\n{}", self.head))
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("send");
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: example.org\r\n\r\n"));
        self.response()
    }

    /// Reads one response. A body cut short is returned as far as it came, marked incomplete.
    pub(crate) fn response(&mut self) -> Response {
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.fill(),
                "the connection ended within a head: {:?}",
                String::from_utf8_lossy(&self.read)
            );
        };
        let head = String::from_utf8(self.read.drain(..end).collect()).expect("ascii");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut response = Response { status, head, body: Vec::new(), complete: true };
        if status < 200 || status == 204 || status == 304 {
            return response;
        }
        if let Some(length) = response.field("content-length") {
            let length: usize = length.parse().expect("a length");
            response.complete = self.take(length, &mut response.body);
        } else if response.field("transfer-encoding").is_some() {
            response.complete = self.take_chunks(&mut response.body);
        }
        response
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> bool {
        while self.read.len() < length && self.fill() {}
        let length_there = length.min(self.read.len());
        body.extend(self.read.drain(..length_there));
        length_there == length
    }

    fn take_chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(line) = self.line() else { return false };
            let size = usize::from_str_radix(line.split(';').next().expect("size").trim(), 16).expect("hex");
            if size == 0 {
                // Trailers up to the empty line.
                loop {
                    match self.line() {
                        Some(line) if line.is_empty() => return true,
                        Some(_) => {}
                        None => return false,
                    }
                }
            }
            if !self.take(size, body) || self.line().is_none() {
                return false;
            }
        }
    }

    /// One line; `None` at the end of the connection.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = find(&self.read, b"\r\n") {
                let line: Vec<u8> = self.read.drain(..at + 2).collect();
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Returns whether the other side has closed, with nothing left unread.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.fill()
    }

    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16_384];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(error) => panic!("nothing came within {PATIENCE:?}: {error}"),
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
