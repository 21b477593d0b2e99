//! Demand in a gateway's `/status`, as the planner's samples.

use crate::service_time::ServiceTimes;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationSample, ClassCounts, Moments, PoolState};
use serde_json::Value;

/// Totals of a gateway since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Unique offered; of a service that is read by its name, offered.
    pub offered: u64,
    /// Unique offered and offered of the whole gateway, where the service's own retries are not counted
    /// separately.
    pub whole: Option<(u64, u64)>,
    /// Admitted.
    pub admitted: u64,
    /// Refused, for any reason of the gateway.
    pub refused: u64,
    /// Requests a second that the service is known to carry; none where nothing is known.
    pub capacity_rps: Option<f64>,
    /// 95th percentile over mean of response times.
    pub quantile_factor: Option<f64>,
}

impl Reading {
    /// Reads the counts of all requests of a gateway, or of those to one of its services, from `/status`;
    /// none if it is not a gateway's, or has no such service.
    #[must_use]
    pub fn of(status: &Value, service: Option<&str>) -> Option<Self> {
        let services = status.get("services").and_then(Value::as_array);
        let named = |name: &str| services?.iter().find(|service| service["name"] == name);
        let (requests, of_service) = match service {
            Some(name) => (named(name)?.get("requests")?, named(name)),
            None => (status.get("requests")?, services.and_then(|services| services.first())),
        };
        let count = |key: &str| requests.get(key)?.as_u64();
        let plan = of_service.and_then(|service| service.pointer("/sentry/plan"));
        let number = |key: &str| plan?.get(key)?.as_f64().filter(|number| *number > 0.0);
        let of_all = |key: &str| status.pointer("/requests")?.get(key)?.as_u64();
        let (offered, whole) = match service {
            Some(_) => (count("offered")?, of_all("unique_offered").zip(of_all("offered"))),
            None => (count("unique_offered")?, None),
        };
        Some(Self {
            offered,
            whole,
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
    times: ServiceTimes,
}

impl Readings {
    /// The counts since the reading before, for a sample of this length; none of the first one, and of one
    /// after the gateway's restart. Where the gateway was not heard for longer, its counts are scaled down to
    /// the sample's.
    ///
    /// A copy's time for one request is copies over capacity, where [`ServiceTimes`] takes it.
    pub fn sample(
        &mut self,
        now: Instant,
        span: Duration,
        reading: Reading,
        pool: PoolState,
    ) -> Option<ApplicationSample> {
        self.times.see(now, pool.ready);
        let (from, before) = self.last.replace((now, reading))?;
        let part = (span.as_secs_f64() / now.saturating_since(from).as_secs_f64().max(1e-9)).min(1.0);
        let since = |after: u64, before: u64| Some((after.checked_sub(before)? as f64 * part).round() as u64);
        let offered =
            (since(reading.offered, before.offered)? as f64 * unique_part(&reading, &before)).round() as u64;
        let admitted = since(reading.admitted, before.admitted)?;
        let refused = since(reading.refused, before.refused)?;
        let known = self.times.known(now, offered, refused, reading.capacity_rps);
        let service = known.map_or_else(Moments::default, |known| known.moments(admitted));
        let application = ApplicationSample {
            classes: vec![ClassCounts { offered, admitted, refused, service }],
            pool: Some(pool),
            quantile_factor: reading.quantile_factor,
            ..ApplicationSample::default()
        };
        Some(application)
    }
}

/// The part of the requests between two readings that are no retries.
fn unique_part(after: &Reading, before: &Reading) -> f64 {
    let (Some(after), Some(before)) = (after.whole, before.whole) else { return 1.0 };
    match (after.0.checked_sub(before.0), after.1.checked_sub(before.1)) {
        (Some(unique), Some(offered @ 1..)) => (unique as f64 / offered as f64).min(1.0),
        _ => 1.0,
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
            let reading = Reading::of(&status(offered, admitted, 100.0), None).expect("a gateway's");
            readings.sample(Instant::from_secs(second), Duration::from_secs(10), reading, pool)
        };
        assert_eq!(at(0, 1_000, 1_000, pool), None);
        let early = at(10, 2_000, 1_500, pool).expect("a sample").classes[0];
        assert_eq!(
            (early.offered, early.admitted, early.refused, early.service.count),
            (1_000, 500, 500, 500)
        );
        let later = at(20, 3_000, 2_000, pool).expect("a sample").classes[0];
        assert!((later.service.mean_s().expect("known") - 0.02).abs() < 1e-12);
        // Another copy serves: what the gateway knows is of two.
        let more = PoolState { ready: 3, ..PoolState::default() };
        assert_eq!(at(30, 3_100, 2_100, more).expect("a sample").classes[0].service.count, 0);
        assert_eq!(at(40, 50, 50, more), None, "the gateway was restarted");
        assert!(at(50, 60, 60, more).is_some());
    }

    #[test]
    fn what_is_no_gateway_is_not_read() {
        assert_eq!(Reading::of(&serde_json::json!({ "requests": { "admitted": 3 } }), None), None);
        assert_eq!(Reading::of(&Value::Null, None), None);
    }

    #[test]
    fn a_service_is_read_by_its_name() {
        let of = |name: &str, offered: u64| serde_json::json!({ "name": name, "requests": { "offered": offered, "admitted": 5, "shed": 0 } });
        let status = serde_json::json!({ "services": [of("shop", 7), of("search", 9)] });
        let offered = |name| Reading::of(&status, Some(name)).map(|reading| reading.offered);
        assert_eq!([offered("search"), offered("shop"), offered("blog")], [Some(9), Some(7), None]);
    }
}
