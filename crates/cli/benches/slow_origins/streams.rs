//! Clients of server-sent events and of WebSockets: each opens one stream and reads it until the run ends.

use crate::crowd::Crowd;
use flashweir_load::trials::slow::{Kind, Speaks, StreamEnd, StreamRecord};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

/// More than the head of any response here.
const HEAD_BYTES_MAX: usize = 16 << 10;
const READ_BYTES: usize = 4 << 10;

/// Opens the streams of a kind at their moments after `begins`, and keeps them open until the crowd is over;
/// blocks until then.
pub(crate) fn run(
    kind: &'static Kind,
    crowd: &Crowd,
    address: SocketAddr,
    begins: Instant,
) -> io::Result<Vec<StreamRecord>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let ends = begins + crowd.length();
    runtime.block_on(async {
        let mut clients = JoinSet::new();
        for (moment, number) in crowd.moments(kind).into_iter().zip(1..) {
            clients.spawn(async move {
                sleep_until((begins + moment).into()).await;
                let opened = Instant::now();
                let leaves = opened + Duration::from_secs_f64(kind.allowed_s());
                let head = timeout_at(leaves.into(), open(kind.speaks, address, number)).await;
                let head_after_s = opened.elapsed().as_secs_f64();
                let end = match head {
                    Err(_) => StreamEnd::Late,
                    Ok(Err(_)) => StreamEnd::Broken,
                    Ok(Ok((503 | 429, _))) => StreamEnd::Refused,
                    Ok(Ok((200 | 101, stream))) => read(stream, ends).await,
                    Ok(Ok(_)) => StreamEnd::Broken,
                };
                StreamRecord { opened_s: moment.as_secs_f64(), head_after_s, end }
            });
        }
        Ok(clients.join_all().await)
    })
}

/// Asks for one, from an address that no other stream has; the status of the response, and the connection
/// after its head.
async fn open(speaks: Speaks, address: SocketAddr, number: u16) -> io::Result<(u16, TcpStream)> {
    let socket = TcpSocket::new_v4()?;
    // Load comes from 127.77.0.0/16.
    let [high, low] = number.to_be_bytes();
    let network = if speaks == Speaks::WebSocket { 79 } else { 78 };
    socket.bind((IpAddr::V4(Ipv4Addr::new(127, network, high, low)), 0).into())?;
    let mut connection = socket.connect(address).await?;
    connection.write_all(request(speaks, address).as_bytes()).await?;
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if connection.read_buf(&mut head).await? == 0 || head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let line = String::from_utf8_lossy(&head);
    let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, connection))
}

fn request(speaks: Speaks, address: SocketAddr) -> String {
    match speaks {
        Speaks::WebSocket => format!(
            "GET /socket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ),
        Speaks::Events | Speaks::Http => {
            format!("GET /events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n")
        }
    }
}

/// Reads until the run ends, or the stream before it.
async fn read(mut stream: TcpStream, ends: Instant) -> StreamEnd {
    let mut buffer = [0; READ_BYTES];
    loop {
        match timeout_at(ends.into(), stream.read(&mut buffer)).await {
            Err(_) => return StreamEnd::Open,
            Ok(Ok(0) | Err(_)) => return StreamEnd::Broken,
            Ok(Ok(_)) => {}
        }
    }
}
