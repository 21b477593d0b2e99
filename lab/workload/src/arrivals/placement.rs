//! Placing the points of a process of rate one where a profile's integral reaches them.

use crate::profile::Segment;
use std::time::Duration;

/// Turns operational time (the integral of the rate: the number of arrivals due so far) into moments.
///
/// The time-change theorem: a stationary process of rate one, its points moved to where the integral of a
/// rate reaches them, has that rate. Nothing is thinned away, so a profile's quiet stretches cost nothing.
#[derive(Clone, Debug)]
pub(super) struct Placement<'a> {
    /// The stretch under way and those to come.
    segments: &'a [Segment],
    /// Beginning of the stretch under way.
    start: Duration,
    /// The profile's integral up to that moment, and up to the end of the stretch.
    due_before: f64,
    due_after: f64,
    /// The stretch's length: converting it for each arrival would cost as much as all the rest.
    length_s: f64,
    /// The latest moment given out.
    latest: Duration,
}

impl<'a> Placement<'a> {
    pub(super) fn new(segments: &'a [Segment]) -> Self {
        let (start, latest) = (Duration::ZERO, Duration::ZERO);
        let mut placement = Self { segments, start, due_before: 0.0, due_after: 0.0, length_s: 0.0, latest };
        placement.begin_stretch(0.0);
        placement
    }

    /// The moment at which `due` arrivals are due; `None` if the profile ends before. To be asked in order.
    /// One square root where the rate changes, one division where it does not.
    pub(super) fn moment(&mut self, due: f64) -> Option<Duration> {
        while let Some((segment, rest)) = self.segments.split_first() {
            if due < self.due_after {
                let seconds = segment.seconds_until(due - self.due_before);
                // Rounding must carry no arrival past its stretch or before another, or order would suffer.
                let within = Duration::from_secs_f64(seconds.min(self.length_s)).min(segment.length);
                self.latest = self.latest.max(self.start + within);
                return Some(self.latest);
            }
            self.start += segment.length;
            self.segments = rest;
            self.begin_stretch(self.due_after);
        }
        None
    }

    fn begin_stretch(&mut self, due: f64) {
        let Some(segment) = self.segments.first() else { return };
        self.due_before = due;
        self.due_after = due + segment.expected_arrivals();
        self.length_s = segment.length.as_secs_f64();
    }
}
