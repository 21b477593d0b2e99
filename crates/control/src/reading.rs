//! What a gateway's `/status` says of demand, as the planner's samples.

use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationSample, ClassCounts, Moments, PoolState};
use serde_json::Value;

/// While requests are refused the gateway measures its capacity anew within two seconds; a fresh copy's share grows meanwhile.
const MEASURED_AFTER: Duration = Duration::from_secs(5);
/// In calm it only learns what a few requests at a time tell: the number of copies has to be the same for longer.
const ESTIMATED_AFTER: Duration = Duration::from_secs(20);
/// Requests are refused where at least this part of them is; less is chance or a bound of the gateway.
const REFUSED_MIN: f64 = 0.01;

/// Totals of a gateway since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Unique offered; of a service that is read by its name, offered.
    pub offered: u64,
    /// Unique offered and offered of the whole gateway, where the service's own retries are not told from other requests.
    pub whole: Option<(u64, u64)>,
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
    /// What `/status` says of all requests of a gateway, or of those to one of its services; none if it is not a gateway's, or has no
    /// such service.
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
    /// How many copies serve, and since when.
    ready: Option<(u32, Instant)>,
    /// Whether a capacity was measured while requests were refused.
    is_measured: bool,
}

impl Readings {
    /// What happened since the reading before, for a sample of this length; none of the first one, and of one after the gateway's restart.
    /// Where the gateway was not heard for longer, its counts are scaled down to the sample's.
    ///
    /// A copy's time for one request is copies over capacity. What the gateway measures while it refuses counts for each request admitted.
    /// What it estimates in calm can be three times too high, so it counts as one request, and no more once a capacity was measured.
    pub fn sample(
        &mut self,
        now: Instant,
        span: Duration,
        reading: Reading,
        pool: PoolState,
    ) -> Option<ApplicationSample> {
        if self.ready.is_none_or(|(ready, _)| ready != pool.ready) {
            self.ready = Some((pool.ready, now));
        }
        let same_for = self.ready.map_or(Duration::ZERO, |(_, since)| now.saturating_since(since));
        let (from, before) = self.last.replace((now, reading))?;
        let part = (span.as_secs_f64() / now.saturating_since(from).as_secs_f64().max(1e-9)).min(1.0);
        let since = |after: u64, before: u64| Some((after.checked_sub(before)? as f64 * part).round() as u64);
        let offered =
            (since(reading.offered, before.offered)? as f64 * unique_part(&reading, &before)).round() as u64;
        let admitted = since(reading.admitted, before.admitted)?;
        let refused = since(reading.refused, before.refused)?;
        let is_refusing = refused as f64 > REFUSED_MIN * offered.max(refused) as f64;
        let count = match () {
            () if is_refusing && same_for >= MEASURED_AFTER => admitted,
            () if !self.is_measured && same_for >= ESTIMATED_AFTER => admitted.min(1),
            () => 0,
        };
        let service = match reading.capacity_rps.filter(|_| count > 0 && pool.ready > 0) {
            Some(capacity_rps) => {
                self.is_measured |= is_refusing;
                let (mean_s, requests) = (f64::from(pool.ready) / capacity_rps, count as f64);
                // Nothing is known of the variation here: that of exponential times.
                Moments { count, sum_s: requests * mean_s, squares_s2: 2.0 * requests * mean_s * mean_s }
            }
            None => Moments::default(),
        };
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

    /// Goal: an order in a crowd rests on what was measured in it, not on the calm before. It failed when estimates in calm counted for
    /// each request: a crowd of four times the capacity then got its servers one after the other, for half a minute.
    #[test]
    fn what_is_measured_in_a_crowd_outweighs_what_was_estimated_before() {
        let mut readings = Readings::default();
        let pool = PoolState { ready: 1, ..PoolState::default() };
        let (mut offered, mut admitted) = (0, 0);
        let mut service = |second, more_offered, more_admitted, capacity_rps| {
            (offered, admitted) = (offered + more_offered, admitted + more_admitted);
            let reading = Reading::of(&status(offered, admitted, capacity_rps), None).expect("a gateway's");
            let sample = readings.sample(Instant::from_secs(second), Duration::from_secs(1), reading, pool);
            sample.map(|sample| sample.classes[0].service).unwrap_or_default()
        };
        for second in 0..20 {
            assert_eq!(service(second, 20, 20, 120.0).count, 0, "the number of copies is new");
        }
        let estimated: Vec<_> = (20..30).map(|second| service(second, 20, 20, 120.0)).collect();
        let measured: Vec<_> = (30..32).map(|second| service(second, 160, 40, 40.0)).collect();
        let all = estimated.iter().chain(&measured);
        let [count, sum_s] =
            all.fold([0.0, 0.0], |[count, sum_s], it| [count + it.count as f64, sum_s + it.sum_s]);
        assert!(
            (0.9..=1.0).contains(&(sum_s / count * 40.0)),
            "{} s a request instead of 0.025",
            sum_s / count
        );
        assert_eq!(service(32, 20, 20, 120.0).count, 0, "what was measured stays in force");
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
