//! What a gateway's `/status` says of demand, as the planner's samples.

use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationSample, ClassCounts, Moments, PoolState, Sample};
use serde_json::Value;

/// A capacity is that of the copies that serve only after their number was the same for so long: the gateway learns it again.
const SETTLED_AFTER: Duration = Duration::from_secs(20);

/// Totals of a gateway since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Unique offered.
    pub offered: u64,
    /// Admitted.
    pub admitted: u64,
    /// Refused, for whatever reason of the gateway's.
    pub refused: u64,
    /// Requests a second that the service is known to carry; none where nothing is known.
    pub capacity_rps: Option<f64>,
    /// 95th percentile over mean of response times.
    pub quantile_factor: Option<f64>,
}

impl Reading {
    /// What `/status` says; none if it is not a gateway's.
    #[must_use]
    pub fn of(status: &Value) -> Option<Self> {
        let requests = status.get("requests")?;
        let count = |key: &str| requests.get(key)?.as_u64();
        let plan = status.pointer("/services/0/sentry/plan");
        let number = |key: &str| plan?.get(key)?.as_f64().filter(|number| *number > 0.0);
        Some(Self {
            offered: count("unique_offered")?,
            admitted: count("admitted")?,
            refused: count("shed")?,
            capacity_rps: number("capacity_rps"),
            quantile_factor: number("quantile_over_mean"),
        })
    }
}

/// Makes samples of readings.
#[derive(Debug, Default)]
pub struct Readings {
    last: Option<(Instant, Reading)>,
    /// How many copies serve, and since when.
    ready: Option<(u32, Instant)>,
}

impl Readings {
    /// The sample since the reading before; none of the first one, and of one after the gateway's restart.
    ///
    /// A copy's time for one request is copies over capacity: what the gateway has measured while requests waited.
    pub fn sample(&mut self, now: Instant, reading: Reading, pool: PoolState) -> Option<Sample> {
        if self.ready.is_none_or(|(ready, _)| ready != pool.ready) {
            self.ready = Some((pool.ready, now));
        }
        let is_settled = self.ready.is_some_and(|(_, since)| now.saturating_since(since) >= SETTLED_AFTER);
        let (from, before) = self.last.replace((now, reading))?;
        let offered = reading.offered.checked_sub(before.offered)?;
        let admitted = reading.admitted.checked_sub(before.admitted)?;
        let refused = reading.refused.checked_sub(before.refused)?;
        let service = match reading.capacity_rps.filter(|_| is_settled && pool.ready > 0) {
            Some(capacity_rps) => {
                let mean_s = f64::from(pool.ready) / capacity_rps;
                let count = admitted as f64;
                // Nothing is known of the variation here: that of exponential times.
                Moments { count: admitted, sum_s: count * mean_s, squares_s2: 2.0 * count * mean_s * mean_s }
            }
            None => Moments::default(),
        };
        let application = ApplicationSample {
            classes: vec![ClassCounts { offered, admitted, refused, service }],
            pool: Some(pool),
            quantile_factor: reading.quantile_factor,
            ..ApplicationSample::default()
        };
        Some(Sample { from, to: now, applications: vec![application] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(offered: u64, admitted: u64, capacity_rps: f64) -> Value {
        serde_json::json!({
            "requests": { "unique_offered": offered, "admitted": admitted, "shed": offered - admitted },
            "services": [{ "sentry": { "plan": { "capacity_rps": capacity_rps, "quantile_over_mean": null } } }],
        })
    }

    #[test]
    fn samples_are_the_difference_of_two_readings() {
        let mut readings = Readings::default();
        let pool = PoolState { ready: 2, ..PoolState::default() };
        let mut at = |second, offered, admitted, pool| {
            let reading = Reading::of(&status(offered, admitted, 100.0)).expect("a gateway's");
            readings.sample(Instant::from_secs(second), reading, pool)
        };
        assert_eq!(at(0, 1_000, 1_000, pool), None);
        let early = at(10, 2_000, 1_500, pool).expect("a sample").applications.remove(0).classes[0];
        assert_eq!((early.offered, early.admitted, early.refused, early.service.count), (1_000, 500, 500, 0));
        let settled = at(20, 3_000, 2_000, pool).expect("a sample").applications.remove(0).classes[0];
        assert!((settled.service.mean_s().expect("known") - 0.02).abs() < 1e-12);
        // Another copy serves: what the gateway knows is of two.
        let more = PoolState { ready: 3, ..PoolState::default() };
        assert_eq!(at(30, 3_100, 2_100, more).expect("a sample").applications[0].classes[0].service.count, 0);
        assert_eq!(at(40, 50, 50, more), None, "the gateway was restarted");
        assert!(at(50, 60, 60, more).is_some());
    }

    #[test]
    fn what_is_no_gateway_is_not_read() {
        assert_eq!(Reading::of(&serde_json::json!({ "requests": { "admitted": 3 } })), None);
        assert_eq!(Reading::of(&Value::Null), None);
    }
}
