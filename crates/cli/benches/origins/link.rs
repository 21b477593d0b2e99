//! nginx with files, behind a link that is narrower than a crowd: in its own namespace, with protection and
//! clients in another.
//!
//! The origin's processor is idle here, so the link's rate is what is shared out. An answer in time is worth
//! the bytes that it needs at the least: its body, its head, and the headers of full frames. What is sent
//! again, sent for a client that has left, or sent as a refusal is not useful.

use flashweir_load::Progress;
use flashweir_load::trials::origins::Share;
use flashweir_testkit::{NarrowLink, Nginx};
use std::time::{Duration, Instant};

const NAME: &str = "static";
pub(super) const RATE_BITS_PER_S: u64 = 20_000_000;
/// Room before it, in full packets: 60 ms.
pub(super) const PACKETS: u32 = 100;
/// Each way.
pub(super) const DELAY: Duration = Duration::from_millis(5);
/// A picture of a page.
pub(super) const BODY_BYTES: u64 = 50_000;
const FILE: &str = "picture";
/// nginx sends some 240 bytes of head.
const HEAD_BYTES: u64 = 240;
/// Of a full frame: payload, and the headers of Ethernet, IP and TCP with timestamps.
const PAYLOAD_BYTES: u64 = 1_448;
const FRAME_HEADERS_BYTES: u64 = 66;

pub(crate) struct BehindLink {
    pub(crate) network: NarrowLink,
    _nginx: Nginx,
}

impl BehindLink {
    pub(super) fn start() -> Result<Self, String> {
        let network = NarrowLink::require(NAME, RATE_BITS_PER_S, PACKETS, DELAY)
            .ok_or("root, `ip` or `tc` is missing for a shaped link")?;
        let listen = format!("listen {};", network.address());
        let nginx = network.as_server(|| Nginx::require(NAME, "", &listen)).ok_or("`nginx` is missing")?;
        nginx.serve(FILE, &vec![b'.'; BODY_BYTES as usize]);
        Ok(Self { network, _nginx: nginx })
    }

    pub(crate) const fn path() -> &'static str {
        FILE
    }

    /// Answers that fit through the link, a second.
    pub(crate) fn answers_rps() -> f64 {
        RATE_BITS_PER_S as f64 / 8.0 / needed_bytes() as f64
    }
}

/// Bytes on the link that an answer needs at the least.
fn needed_bytes() -> u64 {
    let bytes = BODY_BYTES + HEAD_BYTES;
    bytes + bytes.div_ceil(PAYLOAD_BYTES) * FRAME_HEADERS_BYTES
}

/// Reads the link's queue at given moments of a run.
pub(crate) struct LinkRuler<'a> {
    network: &'a NarrowLink,
    moments: Vec<Duration>,
    marks: Vec<Mark>,
}

struct Mark {
    at: Instant,
    sent_bytes: u64,
    in_time: u64,
}

impl<'a> LinkRuler<'a> {
    pub(crate) fn new(origin: &'a BehindLink, moments: &[Duration]) -> Self {
        Self { network: &origin.network, moments: moments.to_vec(), marks: Vec::new() }
    }

    pub(crate) fn look(&mut self, progress: &Progress) {
        if self.moments.get(self.marks.len()).is_some_and(|moment| progress.elapsed >= *moment) {
            let (at, in_time) = (Instant::now(), progress.totals.goodput);
            self.marks.push(Mark { at, sent_bytes: self.network.queue().sent_bytes, in_time });
        }
    }

    /// Between two of the moments; `None` if the run ended before them.
    pub(crate) fn share(&self, from: usize, to: usize) -> Option<Share> {
        let (before, after) = (self.marks.get(from)?, self.marks.get(to)?);
        let carried =
            RATE_BITS_PER_S as f64 / 8.0 * after.at.saturating_duration_since(before.at).as_secs_f64();
        let sent = after.sent_bytes.saturating_sub(before.sent_bytes) as f64;
        let useful = (after.in_time.saturating_sub(before.in_time) * needed_bytes()) as f64;
        let busy = (sent / carried).min(1.0);
        let in_time = if sent > 0.0 { (useful / sent).min(1.0) } else { 1.0 };
        Some(Share { busy, in_time })
    }
}
