//! Budget of the requests that may be sent once more to one upstream: a share of all requests, and a few.
//!
//! **The rule.** A repeat is granted while fewer than [`RESERVE`] + `requests / `[`SHARE`] were granted in
//! the same time: the present window of [`WINDOW`] and the one before.
//!
//! **Why not one repeat for each request.** A server that restarts ends all its connections, and has the
//! least to spare just then; one that ends every second connection under a request would get half as many
//! requests again for ever. **Why windows.** A balance that is earned needs a maximum, and a maximum that
//! fits a small service is too small for the connections that a busy one loses at once.
//!
//! **Cost.** Nothing for a request: the requests are counted anyway, and the budget is asked when a
//! connection was lost.

use flashweir_core::{Duration, Instant};

/// Repeats that are granted for no requests at all: a service of one request a minute is to have them, too.
pub(super) const RESERVE: u64 = 20;
/// One repeat for this many requests: a fifth more load at most.
pub(super) const SHARE: u64 = 5;
/// Long enough for the requests that a restart costs to be few among those before it.
const WINDOW: Duration = Duration::from_secs(10);

/// The budget of one upstream, shared by all workers.
#[derive(Debug, Default)]
pub(super) struct RepeatBudget {
    since: Instant,
    /// Requests ever, when the window began.
    requests_before: u64,
    repeats: u64,
    /// Requests and repeats of the window before.
    last: (u64, u64),
}

impl RepeatBudget {
    /// Returns whether one more request may be repeated, of `requests` that were ever sent; then it counts as
    /// repeated.
    pub(super) fn take(&mut self, now: Instant, requests: u64) -> bool {
        self.advance(now, requests);
        let (last_requests, last_repeats) = self.last;
        let counted = last_requests + requests.saturating_sub(self.requests_before);
        let is_granted = self.repeats + last_repeats < RESERVE + counted / SHARE;
        self.repeats += u64::from(is_granted);
        is_granted
    }

    fn advance(&mut self, now: Instant, requests: u64) {
        let elapsed = now.saturating_since(self.since);
        if elapsed < WINDOW {
            return;
        }
        // The budget is asked seldom, so the time since may be long: its requests count as if they had come
        // evenly.
        let counted = u128::from(requests.saturating_sub(self.requests_before));
        let recent = counted * WINDOW.as_nanos() / elapsed.as_nanos();
        let repeats = if elapsed < WINDOW * 2 { self.repeats } else { 0 };
        self.last = (u64::try_from(recent).unwrap_or(u64::MAX), repeats);
        (self.since, self.requests_before, self.repeats) = (now, requests, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(budget: &mut RepeatBudget, now: Instant, requests: u64, asked: u64) -> u64 {
        (0..asked).map(|_| u64::from(budget.take(now, requests))).sum()
    }

    #[test]
    fn without_requests_there_is_the_reserve_once_in_two_windows() {
        let mut budget = RepeatBudget::default();
        assert_eq!(granted(&mut budget, Instant::from_secs(1), 0, 100), RESERVE);
        assert_eq!(granted(&mut budget, Instant::from_secs(11), 0, 100), 0, "the window before counts");
        assert_eq!(granted(&mut budget, Instant::from_secs(31), 0, 100), RESERVE);
    }

    #[test]
    fn a_share_of_the_requests_of_late_is_granted() {
        let mut budget = RepeatBudget::default();
        assert_eq!(granted(&mut budget, Instant::from_secs(9), 4_500, 10_000), RESERVE + 900);
        // An hour at the same rate later, it is again what ten seconds are worth.
        assert_eq!(granted(&mut budget, Instant::from_secs(3_609), 1_804_500, 10_000), RESERVE + 1_000);
    }

    #[test]
    fn a_clock_that_stands_and_a_count_that_steps_back_change_nothing() {
        let mut budget = RepeatBudget::default();
        let now = Instant::from_secs(100);
        assert!(budget.take(now, 4));
        assert!(budget.take(now, 1));
        assert!(budget.take(Instant::ZERO, 0));
        assert_eq!(granted(&mut budget, now, 0, 100), RESERVE - 3);
    }

    /// Every second request meets a closed connection, for ten minutes.
    #[test]
    fn repeats_never_exceed_a_fifth_of_the_requests_and_the_reserve_of_each_window() {
        let mut budget = RepeatBudget::default();
        let mut repeats = 0;
        for request in 1..=60_000u64 {
            let now = Instant::from_millis(request * 10);
            repeats += u64::from(request % 2 == 0 && budget.take(now, request));
        }
        assert!(repeats >= 60_000 / SHARE, "{repeats}");
        assert!(repeats <= 60_000 / SHARE + 60 * RESERVE, "{repeats}");
    }
}
