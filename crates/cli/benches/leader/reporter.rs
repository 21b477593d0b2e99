//! One gateway that reports: a connection that is kept, ten reports a second, each answered before the next.

use crate::report::{Known, Service};
use crate::{ANSWER_WITHIN, EVERY};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval_at, timeout};

/// An answer is smaller, its head included.
const ANSWER_BYTES: usize = 64 << 10;

/// Counts of one gateway while it was measured.
#[derive(Default)]
pub(crate) struct Seen {
    /// Time of each answer, seconds.
    pub(crate) took_s: Vec<f64>,
    /// Bytes of the last report and of the last answer.
    pub(crate) bytes: (usize, usize),
    /// True if the leader gave it a share.
    pub(crate) has_share: bool,
}

/// Times at which gateways report, and the answers that count.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) measured_from: Instant,
    pub(crate) ends: Instant,
}

/// Reports from `first_at` until the end.
///
/// # Errors
/// The leader's failure, in words.
pub(crate) async fn report(
    service: Rc<Service>,
    mut stream: TcpStream,
    leader: SocketAddr,
    gateway: u64,
    first_at: Instant,
    times: Times,
) -> Result<Seen, String> {
    let (mut known, mut seen) = (Known::default(), Seen::default());
    let mut buffer = vec![0; ANSWER_BYTES];
    let mut ticks = interval_at(first_at.into(), EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for sequence in 1.. {
        ticks.tick().await;
        if Instant::now() >= times.ends {
            break;
        }
        let report = service.report(gateway, sequence, &known);
        let head =
            format!("POST /reports HTTP/1.1\r\nhost: {leader}\r\ncontent-length: {}\r\n\r\n", report.len());
        let request = [head.as_bytes(), &report].concat();
        let sent = Instant::now();
        let asked = async {
            stream.write_all(&request).await.map_err(|error| error.to_string())?;
            answer(&mut stream, &mut buffer).await
        };
        let body = timeout(ANSWER_WITHIN, asked)
            .await
            .map_err(|_| format!("no answer within {ANSWER_WITHIN:?}"))
            .flatten()
            .map_err(|error| format!("gateway {gateway}, report {sequence}: {error}"))?;
        known.take(body).ok_or_else(|| format!("gateway {gateway}: the answer has another format"))?;
        if sent >= times.measured_from {
            seen.took_s.push(sent.elapsed().as_secs_f64());
            seen.bytes = (report.len(), body.len());
        }
    }
    seen.has_share = known.has_share();
    Ok(seen)
}

/// The body of the next answer.
async fn answer<'a>(stream: &mut TcpStream, buffer: &'a mut [u8]) -> Result<&'a [u8], String> {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("the leader closed the connection, or its answer is too long".to_owned());
        }
        filled += read;
        let Some(head_bytes) = buffer[..filled].windows(4).position(|end| end == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&buffer[..head_bytes]).to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let length = length.ok_or_else(|| format!("no length in {head}"))?;
        let body = head_bytes + 4;
        if filled < body + length {
            continue;
        }
        if !head.starts_with("http/1.1 200") {
            return Err(format!("{head}\n{}", String::from_utf8_lossy(&buffer[body..filled])));
        }
        return Ok(&buffer[body..body + length]);
    }
}

/// Gateway `place` of `count` reports first here in the interval, so that reports come evenly.
pub(crate) fn offset(place: usize, count: usize) -> Duration {
    EVERY * place as u32 / count as u32
}
