//! Times at which a server reports: each interval, and at once when it becomes overloaded.

use crate::distribution::COUNTER_TAU;
use crate::placement::{Overload, Watermarks};
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Duration, Instant};

/// The shortest time between two early reports: one more report a second costs nothing, a report for each
/// request would.
const EARLY_GAP: Duration = Duration::from_secs(1);

/// Says when the next report is due.
///
/// As published a report comes each interval, and a crowd is found 0 to 10 s late, 5 s on average (Esser
/// §4.2.4: 8 s, §4.3: 9 s). With an early report the server's own load of the last second says so: it reports
/// when that crosses a watermark, by the hysteresis of [`Overload`].
///
/// Cost: `arrive` is a counter and two comparisons. Cold start: the caller says when the first report is
/// due, so that servers do not all report at once.
#[derive(Clone, Debug)]
pub struct ReportSchedule {
    interval: Duration,
    watermarks: Option<Watermarks>,
    arrivals: DecayedCounters,
    overload: Overload,
    count: u64,
    reported_at: Instant,
    next_at: Instant,
}

impl ReportSchedule {
    /// Counts from `start`, reports at `first_at` and then each `interval`; early reports by the watermarks
    /// (times the server's weight), if there are any.
    #[must_use]
    pub fn new(
        start: Instant,
        first_at: Instant,
        interval: Duration,
        watermarks: Option<Watermarks>,
    ) -> Self {
        Self {
            interval,
            watermarks,
            arrivals: DecayedCounters::new(1, COUNTER_TAU),
            overload: Overload::default(),
            count: 0,
            reported_at: start,
            next_at: first_at,
        }
    }

    /// A request arrives; says whether a report is due at once.
    pub fn arrive(&mut self, now: Instant) -> bool {
        self.count += 1;
        self.arrivals.add(now, 0);
        let Some(watermarks) = self.watermarks else { return false };
        let was = self.overload;
        let is = self.overload.update(self.arrivals.rate_rps(now, 0), &watermarks);
        let is_change = is != was.is_overloaded();
        if is_change && now.saturating_since(self.reported_at) < EARLY_GAP {
            // Not lost: it is found again with the next request.
            self.overload = was;
            return false;
        }
        is_change
    }

    /// Time of the next regular report.
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Reports: requests per second since the last report, or of the last second if the report is early and
    /// that is more.
    pub fn report(&mut self, now: Instant) -> f64 {
        let elapsed_s = now.saturating_since(self.reported_at).as_secs_f64();
        let mean_rps = if elapsed_s > 0.0 { self.count as f64 / elapsed_s } else { 0.0 };
        let is_early = now < self.next_at;
        (self.count, self.reported_at, self.next_at) = (0, now, now + self.interval);
        if is_early { mean_rps.max(self.arrivals.rate_rps(now, 0)) } else { mean_rps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a jump from 100/s to 500/s is reported within a second, once; the regular report stays.
    #[test]
    fn a_jump_over_the_high_watermark_is_reported_at_once() {
        let interval = Duration::from_secs(10);
        let mut schedule = ReportSchedule::new(
            Instant::ZERO,
            Instant::ZERO + interval,
            interval,
            Some(Watermarks::default()),
        );
        let (mut now, mut early) = (Instant::ZERO, [const { None }; 8]);
        let mut reports = 0;
        while now < Instant::from_secs(12) {
            now += if now < Instant::from_secs(5) {
                Duration::from_millis(10)
            } else {
                Duration::from_millis(2)
            };
            if schedule.arrive(now) {
                early[reports] = Some((now, schedule.report(now)));
                reports += 1;
            }
        }
        assert_eq!(reports, 1);
        let (at, load_rps) = early[0].unwrap();
        assert!(at > Instant::from_secs(5) && at < Instant::from_secs(6), "{at:?}");
        assert!(load_rps >= 295.0, "{load_rps}");
        assert_eq!(schedule.next_at(), at + interval);
    }
}
