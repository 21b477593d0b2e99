//! The client of a case that speaks HTTP/2 with prior knowledge: one request, or a flood of one frame.

use crate::observation::{Event, Flood, FloodEnd};
use flashweir_testkit::{Http2Client, StreamEnd, frame};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time for a head.
const PATIENCE: Duration = Duration::from_secs(3);

/// Heads on one stream; more end the reading.
const HEADS_MAX: usize = 16;

/// A flood that has not been ended by then is not ended at all.
const FLOOD_FOR: Duration = Duration::from_millis(1500);

/// Frames in one write.
const BATCH: usize = 500;

/// Time for a GOAWAY that is on its way when the connection takes no more.
const GOAWAY_WITHIN: Duration = Duration::from_secs(1);

/// Sends one request on stream 1 and records its heads and its end.
pub(crate) fn request(address: SocketAddr, fields: &[(&str, &str)], body: Option<&[u8]>) -> Vec<Event> {
    let Some(mut client) = Http2Client::try_connect(address) else { return vec![Event::Reset] };
    let fields: Vec<(&str, &[u8])> = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let flags = if body.is_some() { 0 } else { frame::END_STREAM };
    let block = Http2Client::encode(&fields);
    // A proxy that refuses the head may have closed already: its word is read below.
    let _ = client.try_send_frame(frame::HEADERS, frame::END_HEADERS | flags, 1, &block);
    if let Some(body) = body {
        let _ = client.try_send_frame(frame::DATA, frame::END_STREAM, 1, body);
    }
    let mut events = Vec::new();
    for _ in 0..HEADS_MAX {
        let event = match client.outcome_within(1, PATIENCE) {
            StreamEnd::Status(status) => Event::Status(status),
            StreamEnd::Reset(code) => Event::StreamReset(code),
            StreamEnd::Closed => Event::Closed,
            StreamEnd::Silence => Event::Silence,
        };
        let is_interim = matches!(event, Event::Status(100..=199));
        events.push(event);
        if !is_interim {
            break;
        }
    }
    events
}

/// Sends `frame` until the proxy ends the connection or the time is over; `processor_time` is the proxy's so
/// far.
pub(crate) fn flood(address: SocketAddr, frame: &[u8], processor_time: impl Fn() -> Duration) -> Event {
    match try_flood(address, frame, processor_time) {
        Ok(flood) => Event::Flood(flood),
        Err(_) => Event::Reset,
    }
}

fn try_flood(address: SocketAddr, frame: &[u8], processor_time: impl Fn() -> Duration) -> io::Result<Flood> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, frame::SETTINGS, 0, 0, 0, 0, 0];
    const SETTINGS_ACK: &[u8] = &[0, 0, 0, frame::SETTINGS, frame::ACK, 0, 0, 0, 0];
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&[PREFACE, EMPTY_SETTINGS, SETTINGS_ACK].concat())?;
    let reading = stream.try_clone()?;
    reading.set_read_timeout(Some(PATIENCE))?;
    let (sender, ended) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let _ = sender.send(read_to_end(reading));
    });
    let batch = frame.repeat(BATCH);
    let (began, before, mut frames, mut end) = (Instant::now(), processor_time(), 0, None);
    while end.is_none() && began.elapsed() < FLOOD_FOR {
        match stream.write_all(&batch) {
            Ok(()) => frames += BATCH as u64,
            // The proxy no longer reads: its word may come all the same.
            Err(error) if is_timeout(&error) => break,
            Err(_) => {
                end = Some(ended.recv_timeout(GOAWAY_WITHIN).ok().flatten().unwrap_or(FloodEnd::Closed));
                break;
            }
        }
        end = ended.try_recv().ok().flatten();
    }
    // A proxy that reads behind the flood may end the connection only now.
    let end = end.or_else(|| ended.recv_timeout(GOAWAY_WITHIN).ok().flatten());
    let used = processor_time().saturating_sub(before);
    let _ = stream.shutdown(Shutdown::Both);
    let _ = reader.join();
    Ok(Flood { frames, ended: end, micros_per_frame: used.as_secs_f64() * 1e6 / frames.max(1) as f64 })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reads frames until GOAWAY or the end of the connection; `None` where neither comes in time.
fn read_to_end(stream: TcpStream) -> Option<FloodEnd> {
    let mut stream = io::BufReader::new(stream);
    let mut next = || {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [high, middle, low, kind, ..] = head;
        let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
        stream.read_exact(&mut payload)?;
        io::Result::Ok((kind, payload))
    };
    loop {
        match next() {
            Ok((frame::GOAWAY, payload)) => {
                let code =
                    payload.get(4..8).and_then(|code| code.try_into().ok()).map_or(0, u32::from_be_bytes);
                return Some(FloodEnd::Goaway(code));
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return None,
            Err(_) => return Some(FloodEnd::Closed),
        }
    }
}
