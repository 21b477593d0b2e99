//! Settings of a TCP stack.

use crate::network::NetworkError;
use flashweir_core::Duration;

/// Rule for the growth of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Each acknowledgement counts once, however much it covers (RFC 5681 §3.1): with delayed
    /// acknowledgements the window grows by half a segment for each round trip.
    Acknowledgements,
    /// Each acknowledged segment counts (appropriate byte counting, RFC 3465; what Linux does).
    Segments,
}

/// Quantity that `timeout_min` bounds from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutFloor {
    /// The whole timeout (RFC 6298 §2.4).
    Timeout,
    /// Its margin over the smoothed round trip, as in Linux: acknowledgements delayed by less than the floor
    /// then never cause a timeout, however steady the round trip was.
    Margin,
}

/// Partial acknowledgements of a fast recovery that restart the retransmission timer (RFC 6582 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The first only: after many losses in one window the timer soon goes off, and everything is sent again.
    Impatient,
    /// Every one: one loss is repaired in each round trip, however many there are. Linux does this without
    /// SACK.
    SlowButSteady,
}

/// Settings of both ends of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSettings {
    /// Payload of a full segment, bytes; 1 or more, and with the header no more than 65 535.
    pub segment_bytes: u16,
    /// Headers on every packet, bytes: 40 for IPv4 and TCP without options.
    pub header_bytes: u16,
    /// Window at the start, segments (RFC 2581: 2, RFC 6928: 10).
    pub window_initial: u32,
    /// The receiver's window, segments. The application reads at once, so it stays open.
    pub window_receiver: u32,
    /// Wait before the second SYN; doubles each time up to `timeout_max`.
    pub syn_timeout: Duration,
    /// SYNs sent at most before the client gives up; Linux: 7, after 127 s.
    pub syn_tries: u32,
    /// Retransmission timeout before the first measured round trip (RFC 6298 §2.1: 1 s; RFC 2988: 3 s).
    pub timeout_initial: Duration,
    /// Shortest retransmission timeout (RFC 6298 §2.4: 1 s; Linux: 200 ms).
    pub timeout_min: Duration,
    /// Quantity that `timeout_min` bounds from below.
    pub timeout_floor: TimeoutFloor,
    /// Longest retransmission timeout (RFC 6298 §2.5: at least 60 s).
    pub timeout_max: Duration,
    /// Timeouts in a row, of one segment, after which the flow is given up; Linux: 15.
    pub timeouts: u32,
    /// Maximum time that an acknowledgement of a single segment waits for a second (RFC 1122 §4.2.3.2: below
    /// 500 ms). None: every segment is acknowledged at once.
    pub acknowledgement_delay: Option<Duration>,
    /// Rule for the growth of the window.
    pub counting: Counting,
    /// Patience in the repair of many losses in one window.
    pub recovery: Recovery,
    /// True if the first two duplicate acknowledgements let a new segment out each (RFC 3042).
    pub limited_transmit: bool,
    /// True if both ends speak ECN (RFC 3168).
    pub ecn: bool,
}

impl TcpSettings {
    /// Stacks as they were when the papers were written: RFC 2581, 2988 and 3042, segments of 1460 bytes.
    #[must_use]
    pub const fn of_2003() -> Self {
        Self {
            segment_bytes: 1_460,
            header_bytes: 40,
            window_initial: 2,
            window_receiver: 44,
            syn_timeout: Duration::from_secs(3),
            syn_tries: 6,
            timeout_initial: Duration::from_secs(3),
            timeout_min: Duration::from_secs(1),
            timeout_floor: TimeoutFloor::Timeout,
            timeout_max: Duration::from_secs(64),
            timeouts: 15,
            acknowledgement_delay: Some(Duration::from_millis(200)),
            counting: Counting::Acknowledgements,
            recovery: Recovery::Impatient,
            limited_transmit: true,
            ecn: false,
        }
    }

    /// Reno with today's settings: window of 10 at the start, timeouts 200 ms above the round trip, segments
    /// counted. There is no SACK: after many losses in one window more is sent again than a stack with SACK
    /// sends, at about its goodput.
    #[must_use]
    pub const fn modern() -> Self {
        Self {
            window_initial: 10,
            window_receiver: 2_048,
            syn_timeout: Duration::from_secs(1),
            syn_tries: 7,
            timeout_initial: Duration::from_secs(1),
            timeout_min: Duration::from_millis(200),
            timeout_floor: TimeoutFloor::Margin,
            timeout_max: Duration::from_secs(120),
            acknowledgement_delay: Some(Duration::from_millis(40)),
            counting: Counting::Segments,
            ..Self::of_2003()
        }
    }

    pub(in crate::network) fn check(&self) -> Result<(), NetworkError> {
        let segment = self.segment_bytes;
        let packet_ok = segment >= 1 && segment.checked_add(self.header_bytes).is_some();
        NetworkError::unless(packet_ok, "TCP segment_bytes", segment, "1 to 65535 with its header")?;
        NetworkError::unless(self.header_bytes >= 1, "TCP header_bytes", self.header_bytes, "at least 1")?;
        for (what, window) in [
            ("TCP window_initial", self.window_initial),
            ("TCP window_receiver", self.window_receiver),
            ("TCP syn_tries", self.syn_tries),
            ("TCP timeouts", self.timeouts),
        ] {
            NetworkError::unless((1..=WINDOW).contains(&window), what, window, "1 to 1048576")?;
        }
        for (what, timeout) in [
            ("TCP syn_timeout", self.syn_timeout),
            ("TCP timeout_initial", self.timeout_initial),
            ("TCP timeout_min", self.timeout_min),
            ("TCP timeout_max", self.timeout_max),
        ] {
            let in_range = timeout >= TIMEOUT_SHORTEST && timeout <= TIMEOUT_LONGEST;
            NetworkError::unless(in_range, what, timeout.as_secs_f64(), "0.001 to 3600 seconds")?;
        }
        let ordered = self.timeout_min <= self.timeout_max;
        let minimum = self.timeout_min.as_secs_f64();
        NetworkError::unless(ordered, "TCP timeout_min", minimum, "no longer than timeout_max")?;
        let delay = self.acknowledgement_delay.unwrap_or_default();
        let delay_ok = delay <= ACKNOWLEDGEMENT_DELAY;
        NetworkError::unless(
            delay_ok,
            "TCP acknowledgement_delay",
            delay.as_secs_f64(),
            "0.5 seconds at most",
        )
    }
}

/// Segments of a window: a gigabyte of full ones, beyond any path that is simulated packet by packet.
const WINDOW: u32 = 1 << 20;
/// Shorter timeouts than a tick of the clocks that stacks use have no meaning.
const TIMEOUT_SHORTEST: Duration = Duration::from_millis(1);
const TIMEOUT_LONGEST: Duration = Duration::from_secs(3_600);
/// RFC 1122 §4.2.3.2.
const ACKNOWLEDGEMENT_DELAY: Duration = Duration::from_millis(500);
