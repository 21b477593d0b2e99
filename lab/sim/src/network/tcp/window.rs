//! The congestion window of Reno (RFC 5681), in whole segments.

use super::{Counting, TcpSettings};

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    segments: u32,
    /// Below it the window doubles each round trip, above it grows by one.
    threshold: u32,
    /// Counted towards the next segment of growth above the threshold.
    credit: u32,
}

impl Window {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self { segments: settings.window_initial, threshold: u32::MAX, credit: 0 }
    }

    pub(super) fn segments(&self) -> u32 {
        self.segments
    }

    /// `acknowledged` new segments were acknowledged by one packet.
    pub(super) fn grow(&mut self, acknowledged: u32, settings: &TcpSettings) {
        let mut counted = match settings.counting {
            Counting::Acknowledgements => 1,
            Counting::Segments => acknowledged,
        };
        if self.segments < self.threshold {
            let step = counted.min(self.threshold - self.segments);
            self.segments += step;
            counted -= step;
        }
        self.credit += counted;
        if self.credit >= self.segments {
            self.credit -= self.segments;
            self.segments += 1;
        }
        // A window that the receiver never opens would be spent in one burst after an idle time.
        self.segments = self.segments.min(settings.window_receiver);
    }

    /// Three duplicates: half of what was on its way, and one for each segment that has left (§3.2).
    pub(super) fn enter_recovery(&mut self, flight: u32) {
        self.halve(flight);
        self.segments = self.threshold + DUPLICATES;
    }

    /// One more segment has left the network.
    pub(super) fn inflate(&mut self, settings: &TcpSettings) {
        self.segments = (self.segments + 1).min(settings.window_receiver.max(DUPLICATES));
    }

    /// A partial acknowledgement (RFC 6582 §3.2 step 3): what it covers has left, and the retransmission
    /// takes its place.
    pub(super) fn deflate(&mut self, acknowledged: u32) {
        self.segments = self.segments.saturating_sub(acknowledged).max(1) + 1;
    }

    /// A full acknowledgement: no more than what is on its way plus one, so that no burst follows.
    pub(super) fn leave_recovery(&mut self, flight: u32) {
        self.segments = self.threshold.min(flight.max(1) + 1);
        self.credit = 0;
    }

    /// A mark instead of a loss: half, without recovery (RFC 3168 §6.1.2).
    pub(super) fn reduce(&mut self, flight: u32) {
        self.halve(flight);
        self.segments = self.threshold;
    }

    /// A timeout: back to one segment; the threshold moves only at the first of several (§3.1).
    pub(super) fn collapse(&mut self, flight: u32, lowers_threshold: bool) {
        if lowers_threshold {
            self.halve(flight);
        }
        self.segments = 1;
        self.credit = 0;
    }

    fn halve(&mut self, flight: u32) {
        self.threshold = (flight / 2).max(2);
        self.credit = 0;
    }
}

/// Duplicate acknowledgements that mean a loss.
pub(super) const DUPLICATES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_below_the_threshold_and_adds_one_above() {
        let settings =
            TcpSettings { counting: Counting::Segments, window_initial: 2, ..TcpSettings::modern() };
        let mut window = Window::new(&settings);
        for _ in 0..2 {
            window.grow(1, &settings);
        }
        assert_eq!(window.segments(), 4);
        window.reduce(16);
        assert_eq!(window.segments(), 8);
        for _ in 0..8 {
            window.grow(1, &settings);
        }
        assert_eq!(window.segments(), 9);
        window.collapse(9, true);
        for _ in 0..3 {
            window.grow(1, &settings);
        }
        // Threshold 4: three more make four, and from there growth is slow.
        assert_eq!(window.segments(), 4);
        window.grow(1, &settings);
        assert_eq!(window.segments(), 4);
    }

    #[test]
    fn delayed_acknowledgements_halve_the_growth_when_they_are_counted() {
        let settings = TcpSettings::of_2003();
        let mut window = Window::new(&settings);
        window.reduce(20);
        for _ in 0..5 {
            window.grow(2, &settings);
        }
        assert_eq!(window.segments(), 10);
        for _ in 0..5 {
            window.grow(2, &settings);
        }
        assert_eq!(window.segments(), 11);
    }

    #[test]
    fn recovery_follows_rfc_6582() {
        let settings = TcpSettings::modern();
        let mut window = Window::new(&settings);
        window.enter_recovery(10);
        assert_eq!(window.segments(), 5 + 3);
        window.inflate(&settings);
        assert_eq!(window.segments(), 9);
        window.deflate(4);
        assert_eq!(window.segments(), 6);
        window.leave_recovery(2);
        assert_eq!(window.segments(), 3);
    }
}
