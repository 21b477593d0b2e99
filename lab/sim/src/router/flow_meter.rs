//! The rate of every response that passed the router within an interval, by flow.

use crate::network::FlowId;
use flashweir_core::measure::{FirstWindow, TimeSlidingWindow};
use flashweir_core::{Duration, Instant};

/// Responses by the slot of their flow: no hashing for each packet, and the same order on every machine.
///
/// Memory: about 200 bytes for each flow that ever existed at once, and 40 for each that ended since the last
/// tick.
#[derive(Debug)]
pub(super) struct FlowMeter {
    slots: Vec<Option<Flow>>,
    /// Flows whose slot was taken over since the last tick, but which had sent in this interval.
    replaced: Vec<ResponseRate>,
    interval_from: Instant,
}

/// A flow as the router knows it.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    id: FlowId,
    /// Server it goes to: what an address would say.
    pub(super) host_key: u64,
    /// True if the router guards that server: else it neither limits nor measures the flow.
    pub(super) is_guarded: bool,
    /// Time at which its SYN was admitted; none while it was not.
    pub(super) admitted_at: Option<Instant>,
    response: Option<ResponseMeter>,
}

#[derive(Clone, Debug)]
struct ResponseMeter {
    as_published: TimeSlidingWindow,
    corrected: TimeSlidingWindow,
    bytes: u64,
    last_packet_at: Instant,
    finished: bool,
}

/// Reading of one response at a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ResponseRate {
    /// Time at which its connection was admitted.
    pub(super) admitted_at: Instant,
    pub(super) bytes: u64,
    /// As the paper reads it, bytes/s.
    pub(super) published: f32,
    /// Without flaw N-1, bytes/s.
    pub(super) corrected: f32,
}

/// Shortest time that bytes are divided by: below it the ratio is noise.
const FLOOR: Duration = Duration::from_millis(10);

impl FlowMeter {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), replaced: Vec::new(), interval_from: Instant::ZERO }
    }

    /// A flow that will appear, to the server `host_key`. It takes over the slot of one that is gone.
    pub(super) fn expect(&mut self, id: FlowId, host_key: u64, is_guarded: bool) {
        let slot = slot_of(id);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        let flow = Flow { id, host_key, is_guarded, admitted_at: None, response: None };
        let before = self.slots[slot].replace(flow);
        if let Some(before) = before {
            // The flow is gone, so its silence since says nothing: it is read at its last packet.
            self.replaced.extend(before.read(self.interval_from, None));
        }
    }

    /// The flow of a packet; none of one whose slot was taken over.
    pub(super) fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.slots.get_mut(slot_of(id))?.as_mut().filter(|flow| flow.id == id)
    }

    /// Reads all responses with a data packet since the last reading, and begins a new interval. O(flows).
    pub(super) fn read(&mut self, now: Instant) -> Vec<ResponseRate> {
        let mut rates = core::mem::take(&mut self.replaced);
        let flows = self.slots.iter().flatten();
        rates.extend(flows.filter_map(|flow| flow.read(self.interval_from, Some(now))));
        self.interval_from = now;
        rates
    }
}

impl Flow {
    /// A data packet of the response. Returns whether the response has passed completely with it.
    pub(super) fn data(&mut self, now: Instant, bytes: u64, last: bool) -> bool {
        let began = self.admitted_at.unwrap_or(now);
        let meter = self.response.get_or_insert_with(|| ResponseMeter {
            as_published: TimeSlidingWindow::new(now, FirstWindow::AsPublished),
            corrected: TimeSlidingWindow::new(began, FirstWindow::Corrected { floor: FLOOR }),
            bytes: 0,
            last_packet_at: now,
            finished: false,
        });
        meter.as_published.observe(now, bytes);
        meter.corrected.observe(now, bytes);
        meter.bytes += bytes;
        meter.last_packet_at = now;
        let finishes = last && !meter.finished;
        meter.finished |= last;
        finishes
    }

    fn read(&self, interval_from: Instant, now: Option<Instant>) -> Option<ResponseRate> {
        let meter = self.response.as_ref().filter(|_| self.is_guarded)?;
        if meter.last_packet_at < interval_from {
            return None;
        }
        let published = meter.as_published.rate(meter.last_packet_at) as f32;
        // A response that goes on is aged by its silence; one that is complete, or gone, stays as it was.
        let at = now.filter(|_| !meter.finished).unwrap_or(meter.last_packet_at);
        let corrected = meter.corrected.rate(at) as f32;
        let admitted_at = self.admitted_at.unwrap_or(meter.last_packet_at);
        Some(ResponseRate { admitted_at, bytes: meter.bytes, published, corrected })
    }
}

/// The lower half of the number names the slot.
fn slot_of(id: FlowId) -> usize {
    (id.as_u64() & u64::from(u32::MAX)) as usize
}
