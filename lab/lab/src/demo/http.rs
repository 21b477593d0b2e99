//! The little HTTP the demo speaks itself: one blocking GET on loopback.

use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Far more than any answer asked for is long; bounds the memory of one.
const ANSWER_BYTES: u64 = 1 << 20;

/// Asks for a page on its own connection; gives the body of a 200.
pub(crate) fn get(address: SocketAddr, path: &str, within: Duration) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect_timeout(&address, within)?;
    connection.set_read_timeout(Some(within))?;
    connection.set_write_timeout(Some(within))?;
    // HTTP/1.0: the answer ends with the connection and is never chunked.
    // In one piece: a server may answer, and close, as soon as it has seen the first.
    connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    connection.take(ANSWER_BYTES).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let status_line = head.lines().next().unwrap_or_default();
    ensure!(status_line.split(' ').nth(1) == Some("200"), "the answer is \"{status_line}\"");
    Ok(body.to_owned())
}
