//! The tier before the first gateway: answers each user request after several calls, one after the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at once, a thread each; further ones are closed.
const CONNECTIONS: usize = 1_024;
/// A request's head is some hundred bytes.
const HEAD_BYTES: u64 = 1 << 14;
/// An answer of a call is a kilobyte and its head.
const ANSWER_BYTES: u64 = 1 << 20;
/// Longer than any client waits for an answer.
const WITHIN: Duration = Duration::from_secs(5);
/// Time within which a caller can use an answer, milliseconds; sent to every server behind.
const DEADLINE_MS: u64 = 1_000;

/// Serves on a free port until the process ends.
pub(super) fn start(calls: u32, to: SocketAddr) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let (open, traces) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(1)));
    std::thread::Builder::new().name("front end".to_owned()).spawn(move || {
        for client in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (open, traces) = (open.clone(), traces.clone());
            std::thread::spawn(move || {
                // What fails here is the client's connection; it sees that itself.
                let _ = serve(&client, calls, to, &traces);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    })?;
    Ok(address)
}

/// One connection: user requests without a body, one after the other.
fn serve(client: &TcpStream, calls: u32, to: SocketAddr, traces: &AtomicU64) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut reader = BufReader::new(client);
    let mut writer = client;
    while read_head(&mut reader)? {
        let trace = traces.fetch_add(1, Ordering::Relaxed);
        let is_complete = (0..calls).all(|_| call(to, trace).unwrap_or(false));
        let status = if is_complete { "200 OK" } else { "503 Service Unavailable" };
        writer.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
    }
    Ok(())
}

/// Returns whether there was another head, read to its end.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<bool> {
    let mut limited = reader.take(HEAD_BYTES);
    let mut line = Vec::new();
    loop {
        line.clear();
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        if line == b"\r\n" {
            return Ok(true);
        }
    }
}

/// Returns whether a call of this trace was answered with 200.
fn call(to: SocketAddr, trace: u64) -> std::io::Result<bool> {
    let mut connection = TcpStream::connect_timeout(&to, WITHIN)?;
    connection.set_read_timeout(Some(WITHIN))?;
    let request = format!(
        "GET /work HTTP/1.1\r\nHost: node\r\nFlashweir-Deadline: {DEADLINE_MS}\r\n\
         traceparent: 00-{trace:032x}-{trace:016x}-01\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    connection.take(ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three calls, of which the third of the second user request is refused.
    #[test]
    fn a_user_request_is_complete_when_each_of_its_calls_is_served() {
        let service = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = service.local_addr().unwrap();
        let answers = std::thread::spawn(move || {
            let mut traces = Vec::new();
            for number in 0..6 {
                let (mut caller, _) = service.accept().unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && caller.read(&mut byte).unwrap() > 0 {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                traces.push(head.lines().find(|line| line.starts_with("traceparent")).unwrap().to_owned());
                let status = if number == 5 { "503 Busy" } else { "200 OK" };
                caller.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
            }
            traces
        });
        let mut client = TcpStream::connect(start(3, address).unwrap()).unwrap();
        let mut ask = |expected: &str| {
            client.write_all(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n").unwrap();
            let mut head = String::new();
            let mut reader = BufReader::new(&client);
            reader.read_line(&mut head).unwrap();
            assert!(head.contains(expected), "{head}");
        };
        ask("200");
        ask("503");
        let traces = answers.join().unwrap();
        assert_eq!((&traces[0], &traces[3]), (&traces[2], &traces[5]));
        assert_ne!(traces[0], traces[3]);
    }
}
