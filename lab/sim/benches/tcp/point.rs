//! Point of the comparison: one long flow through one slow link, and what is counted of it.

use std::time::Duration;

/// A slow link with a finite buffer at the end of a path.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) rate_mbit_per_s: u64,
    /// Room for waiting packets of full size.
    pub(crate) buffer_packets: u32,
    /// Propagation both ways together, milliseconds.
    pub(crate) round_trip_ms: u64,
}

impl Point {
    pub(crate) const fn rate_bits_per_s(self) -> u64 {
        self.rate_mbit_per_s * 1_000_000
    }

    pub(crate) const fn buffer_bytes(self) -> u32 {
        self.buffer_packets * FRAME_BYTES
    }

    pub(crate) const fn one_way(self) -> Duration {
        Duration::from_micros(self.round_trip_ms * 500)
    }
}

/// Rates and buffers at a usual distance, then some where the queue alone makes the round trip.
pub(crate) fn all() -> Vec<Point> {
    let mut points = Vec::new();
    for rate_mbit_per_s in [1, 2, 5, 10, 20] {
        for buffer_packets in [10, 20, 50] {
            points.push(Point { rate_mbit_per_s, buffer_packets, round_trip_ms: 40 });
        }
    }
    for (rate_mbit_per_s, buffer_packets) in [(1, 10), (5, 20), (20, 50)] {
        points.push(Point { rate_mbit_per_s, buffer_packets, round_trip_ms: 0 });
    }
    points
}

/// A full packet as Linux counts it before a link: 1460 bytes, IPv4 and TCP without options, Ethernet.
pub(crate) const FRAME_BYTES: u32 = 1_460 + 40 + 14;
/// Bytes that the client sends before the flow begins.
pub(crate) const REQUEST_BYTES: usize = 300;
/// Interval at which the waiting packets are counted.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Number of looks in `length`: an even number, so that one look falls on half the time.
pub(crate) fn looks(length: Duration) -> u32 {
    (length.as_millis() / LOOK_EVERY.as_millis()) as u32 / 2 * 2
}

/// The payload at half the time and at the end, bytes, over `seconds` in all: goodput, and that of the later
/// half.
pub(crate) fn goodputs(bytes: [u64; 2], seconds: f64) -> [f64; 2] {
    let [half, all] = bytes;
    [all as f64 * 8.0 / seconds, (all - half) as f64 * 8.0 / (seconds / 2.0)]
}

/// Course of a flow from its first SYN until the time was over.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    /// Payload that the client read.
    pub(crate) goodput_bits_per_s: f64,
    /// The same in the later half, when the first overshoot of slow start should be over.
    pub(crate) later_bits_per_s: f64,
    /// Segments that the server sent again.
    pub(crate) retransmissions: u64,
    /// Packets that found the buffer full.
    pub(crate) dropped: u64,
    /// Packets that waited, on average.
    pub(crate) waiting: f64,
}
