//! A budget of HTTP/2 frames that carry no work: WINDOW_UPDATE, PRIORITY, PING, SETTINGS, RST_STREAM and
//! unknown ones.
//!
//! They are under no flow control, so that one connection could use up a core with them (RFC 9113 §10.5).
//! Requests, the payload of DATA frames and bytes of responses give credit for those that go with them: a
//! client sends two WINDOW_UPDATE frames for each DATA frame at most. The rest leaks away at a fixed rate.
//!
//! Pure: the clock is an argument, and is read only once [`DEBT_MAX`] frames are counted. O(1) for each
//! frame, 24 bytes.

use std::time::Duration;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

/// Frames of one connection beyond what its requests and responses account for.
#[derive(Debug, Default)]
pub(crate) struct FrameBudget {
    debt: u64,
    sent_bytes: usize,
    /// Time at which the debt last leaked, since the connection began.
    leaked_at: Duration,
}

impl FrameBudget {
    /// A frame has come from the client.
    pub(crate) fn receive(&mut self, kind: u8, payload_bytes: usize) {
        match kind {
            DATA if payload_bytes > 0 => self.credit(1),
            HEADERS => self.credit(CREDIT_OF_REQUEST),
            // Judged elsewhere: by the timer of heads, and by the HTTP/2 library.
            DATA | PUSH_PROMISE | GOAWAY | CONTINUATION => {}
            // Their acknowledgements are among the bytes sent.
            PING | SETTINGS => self.debt += 2,
            _ => self.debt += 1,
        }
    }

    /// These bytes have gone to the client.
    pub(crate) fn send(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= SENT_BYTES_A_FRAME {
            self.credit((self.sent_bytes / SENT_BYTES_A_FRAME) as u64);
            self.sent_bytes %= SENT_BYTES_A_FRAME;
        }
    }

    /// Returns whether the client sends more than it may. `since_begin` gives the time since the connection
    /// began.
    pub(crate) fn is_exceeded(&mut self, since_begin: impl FnOnce() -> Duration) -> bool {
        if self.debt < DEBT_MAX {
            return false;
        }
        let now = since_begin();
        let leaked = now.saturating_sub(self.leaked_at).as_secs_f64() * FRAMES_A_SECOND;
        self.leaked_at = now;
        self.credit(leaked as u64);
        self.debt >= DEBT_MAX
    }

    fn credit(&mut self, frames: u64) {
        self.debt = self.debt.saturating_sub(frames);
    }
}

/// Frames at once. Browsers begin a connection with fewer than ten.
const DEBT_MAX: u64 = 2_000;
/// Frames a second for as long as one likes: less than a thousandth of a core.
const FRAMES_A_SECOND: f64 = 500.0;
/// Frames that may go with one request, its cancellation among them.
const CREDIT_OF_REQUEST: u64 = 8;
/// Bytes sent for which one frame may come. The acknowledgement of a PING has 17, and a PING counts twice.
const SENT_BYTES_A_FRAME: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_UPDATE: u8 = 8;
    const PRIORITY: u8 = 2;

    /// The number of frames of one kind after which a budget is exceeded, if fewer than `most`.
    fn end_of(most: usize, kind: u8, sent: usize, frames_a_second: f64) -> Option<usize> {
        let mut budget = FrameBudget::default();
        (0..most).find(|frame| {
            budget.receive(kind, 4);
            budget.send(sent);
            budget.is_exceeded(|| Duration::from_secs_f64(*frame as f64 / frames_a_second))
        })
    }

    #[test]
    fn a_flood_of_frames_that_carry_no_work_ends_and_a_slow_trickle_does_not() {
        for kind in [WINDOW_UPDATE, PRIORITY, 200] {
            assert_eq!(end_of(100_000, kind, 0, 1e6), Some(1_999), "{kind}");
            assert_eq!(end_of(100_000, kind, 0, 400.0), None, "{kind}");
        }
        assert!(end_of(100_000, PING, 17, 1e5).is_some_and(|frames| frames < 2_000));
        assert!(end_of(100_000, SETTINGS, 9, 1e5).is_some_and(|frames| frames < 2_000));
    }

    #[test]
    fn what_goes_with_requests_uploads_and_downloads_is_free() {
        let mut budget = FrameBudget::default();
        let never = || -> Duration { unreachable!("the clock is read only near the bound") };
        for _ in 0..100_000 {
            // A request with two updates and a cancellation; a download by frames of 1 KiB, each with two
            // updates.
            for kind in [HEADERS, WINDOW_UPDATE, WINDOW_UPDATE, 3] {
                budget.receive(kind, 4);
            }
            budget.send(1_024);
            (0..2).for_each(|_| budget.receive(WINDOW_UPDATE, 4));
            assert!(!budget.is_exceeded(never));
        }
        // Small messages both ways, each with a PING to measure the path.
        for _ in 0..100_000 {
            budget.receive(DATA, 30);
            budget.send(40 + 17);
            budget.receive(PING, 8);
            assert!(!budget.is_exceeded(never));
        }
    }

    #[test]
    fn credit_is_not_saved() {
        let mut budget = FrameBudget::default();
        budget.send(1 << 30);
        (0..2_000).for_each(|_| budget.receive(WINDOW_UPDATE, 4));
        assert!(budget.is_exceeded(|| Duration::ZERO));
    }
}
