//! Finished responses that wait until the client's kernel has acknowledged them: the only honest end of a
//! transfer.
//!
//! The rule (docs/algorithms/news.md). A response counts as received when `TCP_INFO` says that its bytes were
//! acknowledged:
//!
//! - *Large* ones (at least [`RATE_BYTES_MIN`] or ten segments): all but the last two segments, because a receiver
//!   may delay the acknowledgement of those. The time charged is the real one, taken back by the age of the last
//!   acknowledgement, so it is not rounded up to the next sweep. Bytes over that time is the response's *rate*.
//! - *Small* ones: all bytes. An acknowledgement that comes within the smallest round trip plus
//!   [`DELAYED_ACK_ALLOWANCE`] says nothing about the network (the receiver may have waited for company), so only
//!   the smallest round trip is charged; a later one means loss or a queue and is charged in full. They fit the
//!   first window of segments, so bytes over time would be noise: no rate.
//!
//! A sweep every 10 ms looks at what is due. A small response is looked at once at the first sweep and once
//! when its allowance is over; between these two, looks become rarer the longer a response waits (each costs
//! a system call), so that a time is wrong by a quarter at most, when a later acknowledgement hid the one
//! that mattered. At most [`LOOKS_PER_SWEEP`] happen in one sweep, and neighbours on one connection share a
//! look.
//!
//! Of the responses that end between two sweeps the first [`MEASURED_PER_SWEEP`] are measured, completed or
//! not afterwards: a fair sample, and far more than a verdict needs. Bounded by [`limits::ACKS_AWAITED`]:
//! beyond it responses go unmeasured and are counted, as are those left out of the sample.

use crate::tracked::{Mark, MarkMet, Wire};
use flashweir_admission::flash_crowd::Response;
use flashweir_admission::pace::{MEASURED_PER_SWEEP, SWEEP_INTERVAL};
use flashweir_admission::pipeline::Delivery;
use flashweir_core::{Duration, Instant, limits};
use flashweir_kernel::TcpInfo;
use std::rc::Rc;

/// A receiver may keep back an acknowledgement for this long (Linux's delayed acknowledgement timer).
const DELAYED_ACK_ALLOWANCE: Duration = Duration::from_millis(40);
/// Below this a transfer fits the first window of segments and its rate is noise.
pub(crate) const RATE_BYTES_MIN: u64 = 15_000;
/// The first window of segments (RFC 6928): the other half of L_min.
const FIRST_WINDOW_SEGMENTS: u64 = 10;
/// A transfer shorter than this (or than one round trip) has no meaningful rate.
const RATE_DURATION_MIN: Duration = Duration::from_millis(10);
/// Segments a receiver may leave unacknowledged at the end of a large transfer.
const SEGMENTS_MAYBE_UNACKNOWLEDGED: u64 = 2;
/// The rarest looks.
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(160);
/// System calls one sweep may make: about a millisecond of this worker's time.
const LOOKS_PER_SWEEP: usize = 1_024;
/// A client that acknowledged nothing for this long is gone in all but name.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// A response whose last byte was handed to the HTTP library.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Time at which its request was sent to the origin.
    pub(crate) started: Instant,
    /// Beginning of the judged part of its time.
    pub(crate) judged_from: Instant,
    /// Time at which its first byte was handed over, plus the time for which the client waited for the
    /// origin.
    pub(crate) delivered_from: Instant,
    /// Receives the end of the response in the pipeline.
    pub(crate) delivery: Delivery,
    /// Body bytes.
    pub(crate) bytes: u64,
    /// Hash of method and path.
    pub(crate) url_class: u32,
    /// Factor by which its allowed duration exceeded the usual one.
    pub(crate) target_stretch: f32,
    /// The connection it went out on.
    pub(crate) wire: Rc<Wire>,
    /// Names its end in the stream of that connection.
    pub(crate) mark: Mark,
}

/// The responses of one worker that await their acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    waiting: Vec<Waiting>,
    /// Responses taken since the last sweep.
    taken: usize,
}

/// Outcome of offering a response for measurement.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// It waits for its acknowledgement.
    Taken,
    /// Enough others were taken since the last sweep.
    LeftOut(Delivery),
    /// The list is full.
    Full(Delivery),
}

#[derive(Debug)]
struct Waiting {
    response: Finished,
    since: Instant,
    look_at: Instant,
}

/// Outcome of one sweep over the responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Acknowledged and measured.
    pub(crate) measured: usize,
    /// Given up: the connection died or the client fell silent first.
    pub(crate) lost: usize,
}

impl Acks {
    /// Nothing to wait for: no sweep is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a response to wait for, if it is one of the sample and there is room.
    pub(crate) fn push(&mut self, now: Instant, response: Finished) -> Pushed {
        if self.taken >= MEASURED_PER_SWEEP {
            return Pushed::LeftOut(response.delivery);
        }
        if self.waiting.len() >= limits::ACKS_AWAITED {
            return Pushed::Full(response.delivery);
        }
        self.taken += 1;
        self.waiting.push(Waiting { response, since: now, look_at: now });
        Pushed::Taken
    }

    /// Looks at what is due and hands over what was acknowledged. O(waiting) plus at most 1,024 system calls.
    /// Responses that can no longer be measured are handed over without a measurement.
    pub(crate) fn sweep(&mut self, now: Instant, mut ended: impl FnMut(Delivery, Option<Response>)) -> Swept {
        self.taken = 0;
        let (mut swept, mut looks) = (Swept::default(), 0);
        let mut last_look: Option<(*const Wire, TcpInfo)> = None;
        let mut index = 0;
        while let Some(waiting) = self.waiting.get_mut(index) {
            if waiting.look_at > now || looks >= LOOKS_PER_SWEEP {
                index += 1;
                continue;
            }
            let wire: *const Wire = Rc::as_ptr(&waiting.response.wire);
            let mark = waiting.response.wire.mark_met(waiting.response.mark);
            // Before the last byte has left there is nothing to ask the kernel.
            let info = match (mark, last_look) {
                (None, _) => None,
                (Some(_), Some((looked_at, info))) if looked_at == wire => Some(info),
                (Some(_), _) => {
                    looks += 1;
                    let info = waiting
                        .response
                        .wire
                        .tcp_info()
                        .unwrap_or(TcpInfo { closed: true, ..TcpInfo::default() });
                    last_look = Some((wire, info));
                    Some(info)
                }
            };
            match judge(&waiting.response, waiting.since, mark.zip(info), now) {
                Judgement::Wait { until } => {
                    let rarer =
                        (now.saturating_since(waiting.since) / 4).clamp(SWEEP_INTERVAL, LOOK_INTERVAL_MAX);
                    waiting.look_at = until.unwrap_or(now + rarer);
                    index += 1;
                }
                Judgement::Acknowledged(response) => {
                    swept.measured += 1;
                    ended(self.waiting.swap_remove(index).response.delivery, Some(response));
                }
                Judgement::Lost => {
                    swept.lost += 1;
                    ended(self.waiting.swap_remove(index).response.delivery, None);
                }
            }
        }
        swept
    }
}

#[derive(Debug, PartialEq)]
enum Judgement {
    /// Not acknowledged yet; nothing can be learned before `until`.
    Wait {
        until: Option<Instant>,
    },
    Acknowledged(Response),
    Lost,
}

/// The rule of the module's head, on plain numbers.
fn judge(response: &Finished, since: Instant, look: Option<(MarkMet, TcpInfo)>, now: Instant) -> Judgement {
    let waited_too_long = now.saturating_since(since) > GIVE_UP_AFTER;
    let waiting = |until| if waited_too_long { Judgement::Lost } else { Judgement::Wait { until } };
    let Some((mark, info)) = look else { return waiting(None) };
    // A kernel too old to count acknowledged bytes: hand-over is the best that can be known.
    let acknowledged = info.bytes_acked.unwrap_or(mark.position);
    let segment = u64::from(info.sending_mss_bytes.max(1));
    let large = response.bytes >= RATE_BYTES_MIN.max(FIRST_WINDOW_SEGMENTS * segment);
    let excused = if large { SEGMENTS_MAYBE_UNACKNOWLEDGED * segment } else { 0 };
    let round_trip_min = info.min_rtt.unwrap_or(info.rtt);
    let allowed_until = mark.at + round_trip_min + DELAYED_ACK_ALLOWANCE;
    if acknowledged < mark.position.saturating_sub(excused) {
        let until = (!large && now < allowed_until).then_some(allowed_until);
        return if info.closed { Judgement::Lost } else { waiting(until) };
    }
    let last_ack_at = now - info.since_last_ack;
    // Either the last acknowledgement was early enough, or this look is: then all of them were.
    let allowed = last_ack_at <= allowed_until || now <= allowed_until + SWEEP_INTERVAL * 2;
    let received_at = match (large, allowed) {
        (false, true) => mark.at + round_trip_min,
        (true, _) | (false, false) => last_ack_at.max(mark.at),
    };
    Judgement::Acknowledged(Response {
        started: response.started,
        bytes: response.bytes,
        latency_s: received_at.saturating_since(response.judged_from).as_secs_f32() / response.target_stretch,
        rate_bytes_per_s: large
            .then(|| received_at.saturating_since(response.delivered_from))
            .filter(|&transfer| transfer >= RATE_DURATION_MIN.max(info.rtt))
            .map(|transfer| (response.bytes as f64 / transfer.as_secs_f64()) as f32),
        url_class: response.url_class,
    })
}

#[cfg(test)]
#[path = "acks_tests.rs"]
mod tests;
