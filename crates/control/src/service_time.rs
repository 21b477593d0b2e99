//! A server's time for one request, from the capacity of all servers that a gateway has learned.

use flashweir_core::{Duration, Instant};
use flashweir_provisioning::Moments;

/// While requests are refused the gateway measures its capacity again within two seconds; a fresh server's
/// share grows meanwhile.
const MEASURED_AFTER: Duration = Duration::from_secs(5);
/// In calm it learns from a few requests at a time only: the number of servers has to be the same for longer.
const ESTIMATED_AFTER: Duration = Duration::from_secs(20);
/// Requests are refused where at least this part of them is; less is chance or a bound of the gateway.
const REFUSED_MIN: f64 = 0.01;

/// Turns a capacity into the time of one server for one request.
///
/// A capacity measured while the gateway refuses counts for each request admitted. One estimated in calm can
/// be three times too high, so it counts as one request, and no more once a capacity was measured.
#[derive(Debug, Default)]
pub struct ServiceTimes {
    /// Number of servers that serve, and since when.
    ready: Option<(u32, Instant)>,
    /// True if a capacity was measured while requests were refused.
    is_measured: bool,
}

/// A mean time for one request, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceTime {
    /// Seconds.
    pub mean_s: f64,
    /// Measured while requests were refused, not estimated.
    pub is_measured: bool,
}

impl ServiceTimes {
    /// Takes the number of servers that serve.
    pub fn see(&mut self, now: Instant, ready: u32) {
        if self.ready.is_none_or(|(before, _)| before != ready) {
            self.ready = Some((ready, now));
        }
    }

    /// The service time of one server that a capacity implies, read after an interval with these counts of
    /// requests; none where it implies none.
    pub fn known(
        &mut self,
        now: Instant,
        offered: u64,
        refused: u64,
        capacity_rps: Option<f64>,
    ) -> Option<ServiceTime> {
        let (ready, since) = self.ready.filter(|(ready, _)| *ready > 0)?;
        let mean_s = f64::from(ready) / capacity_rps?;
        let is_measured = refused as f64 > REFUSED_MIN * offered.max(refused) as f64;
        let after = if is_measured { MEASURED_AFTER } else { ESTIMATED_AFTER };
        let counts = is_measured || !self.is_measured;
        let is_known = counts && now.saturating_since(since) >= after && mean_s.is_finite() && mean_s > 0.0;
        self.is_measured |= is_known && is_measured;
        is_known.then_some(ServiceTime { mean_s, is_measured })
    }
}

impl ServiceTime {
    /// Of an interval with this count of admitted requests. Nothing is known of the variation here: that of
    /// exponential times.
    #[must_use]
    pub fn moments(self, admitted: u64) -> Moments {
        let count = if self.is_measured { admitted } else { admitted.min(1) };
        let (requests, mean_s) = (count as f64, self.mean_s);
        Moments { count, sum_s: requests * mean_s, squares_s2: 2.0 * requests * mean_s * mean_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an order in a crowd rests on what was measured in it, not on the calm before. It failed when
    /// estimates in calm counted for each request: a crowd of four times the capacity then got its servers
    /// one after the other, for half a minute.
    #[test]
    fn what_is_measured_in_a_crowd_outweighs_what_was_estimated_before() {
        let mut times = ServiceTimes::default();
        let mut moments = |second, ready, offered, admitted, capacity_rps| {
            let now = Instant::from_secs(second);
            times.see(now, ready);
            let known = times.known(now, offered, offered - admitted, Some(capacity_rps));
            known.map(|known| known.moments(admitted)).unwrap_or_default()
        };
        for second in 0..20 {
            assert_eq!(moments(second, 1, 20, 20, 120.0).count, 0, "the number of servers is new");
        }
        let estimated: Vec<_> = (20..30).map(|second| moments(second, 1, 20, 20, 120.0)).collect();
        let measured: Vec<_> = (30..32).map(|second| moments(second, 1, 160, 40, 40.0)).collect();
        let all = estimated.iter().chain(&measured);
        let [count, sum_s] =
            all.fold([0.0, 0.0], |[count, sum_s], it| [count + it.count as f64, sum_s + it.sum_s]);
        assert!(
            (0.9..=1.0).contains(&(sum_s / count * 40.0)),
            "{} s a request instead of 0.025",
            sum_s / count
        );
        assert_eq!(moments(32, 1, 20, 20, 120.0).count, 0, "what was measured stays in force");
        assert_eq!(moments(33, 2, 160, 80, 40.0).count, 0, "of the server before");
        assert_eq!(moments(37, 2, 160, 80, 60.0).count, 0, "its share still grows");
        assert_eq!(moments(38, 2, 160, 80, 80.0).count, 80);
    }

    #[test]
    fn nothing_is_known_of_no_servers_or_of_no_capacity() {
        let mut times = ServiceTimes::default();
        assert_eq!(times.known(Instant::from_secs(60), 10, 10, Some(1.0)), None);
        times.see(Instant::ZERO, 1);
        assert_eq!(times.known(Instant::from_secs(60), 10, 10, None), None);
        assert_eq!(times.known(Instant::from_secs(60), 10, 10, Some(0.0)), None);
        times.see(Instant::ZERO, 0);
        assert_eq!(times.known(Instant::from_secs(60), 10, 10, Some(1.0)), None);
    }
}
