//! Time sliding window: the rate of one response flow (RFC 2859 §3; NEWS §4.1).
//!
//! Rule, on each arrival of `bytes` at `now`: `rate ← (rate·A + bytes) / (now − front + A)`, `front ← now`,
//! with A = one second (the authors' simulator; the paper only points to the RFC).
//!
//! The plain estimator starts at zero and reads a flow of duration D as `true·(1 − e^(−D/A))`: 9.5 % of the
//! truth after 0.1 s. Short, fast responses, the very ones NEWS looks at, then read as *size per second*
//! instead of speed. [`FirstWindow::Corrected`] therefore uses bytes over elapsed time until the flow is A
//! old, and hands that over (flaw N-1 in docs/algorithms/news.md). [`FirstWindow::AsPublished`] keeps the
//! original.
//!
//! Cost: one division per arrival, 40 bytes per flow. The estimate never decays without arrivals, so
//! [`TimeSlidingWindow::rate`] ages it at read-out.

use crate::{Duration, Instant};

/// A of the rule above: RFC 2859's AVG_INTERVAL, one second in the authors' code.
const AVERAGING_S: f64 = 1.0;

/// Reading of the first second of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWindow {
    /// As in RFC 2859: starts at zero, low for short flows.
    AsPublished,
    /// Bytes over elapsed time, at least `floor` (one round trip or 10 ms): no divisor smaller than the
    /// noise.
    Corrected {
        /// The smallest divisor.
        floor: Duration,
    },
}

/// The rate of one flow, in bytes per second.
///
/// ```
/// use flashweir_core::{Duration, Instant};
/// use flashweir_core::measure::{FirstWindow, TimeSlidingWindow};
/// let at = Instant::from_millis;
/// let corrected = FirstWindow::Corrected { floor: Duration::from_millis(10) };
/// let mut flow = TimeSlidingWindow::new(at(0), corrected);
/// for n in 1..=10 {
///     flow.observe(at(n * 10), 1_000);
/// }
/// assert!((flow.rate(at(100)) - 100_000.0).abs() < 1.0); // the plain estimator reads about 9,500
/// ```
#[derive(Clone, Debug)]
pub struct TimeSlidingWindow {
    first_window: FirstWindow,
    first: Instant,
    front: Instant,
    rate: f64,
    first_bytes: u64,
}

impl TimeSlidingWindow {
    /// A flow whose first packet came (or whose transfer began) at `first`.
    #[must_use]
    pub fn new(first: Instant, first_window: FirstWindow) -> Self {
        Self { first_window, first, front: first, rate: 0.0, first_bytes: 0 }
    }

    /// `bytes` more at `now`. A clock that steps back counts as no time passed.
    pub fn observe(&mut self, now: Instant, bytes: u64) {
        let age_s = now.saturating_since(self.first).as_secs_f64();
        if let FirstWindow::Corrected { floor } = self.first_window
            && age_s < AVERAGING_S
        {
            self.first_bytes = self.first_bytes.saturating_add(bytes);
            self.rate = self.first_bytes as f64 / age_s.max(floor.as_secs_f64()).max(1e-9);
        } else {
            let gap_s = now.saturating_since(self.front).as_secs_f64();
            self.rate = (self.rate * AVERAGING_S + bytes as f64) / (gap_s + AVERAGING_S);
        }
        self.front = self.front.max(now);
    }

    /// The rate at `now`: aged by the silence since the last arrival for a flow still open.
    #[must_use]
    pub fn rate(&self, now: Instant) -> f64 {
        let silence_s = now.saturating_since(self.front).as_secs_f64();
        self.rate * AVERAGING_S / (AVERAGING_S + silence_s)
    }
}
