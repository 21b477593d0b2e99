//! Readings of several gateways about one service, as the planner's sample. No I/O.
//!
//! **The rule.** Counts are differences of a gateway's totals, summed over gateways; a gateway that is new or
//! was restarted counts from its first reading on. One that does not answer is taken to have counted what it
//! last did, for `REPEATED_MAX` readings: else its silence, under overload, would look like falling demand.
//! **Refused for want of capacity** are the reasons of [`FOR_CAPACITY`]; what was refused for another reason
//! is subtracted from what was offered, because more servers would not serve it. Attempts of the same person
//! count once: each class is scaled by the gateway's ratio of unique to all requests. **A server's time** for
//! one request is the number of servers over the capacity that the sentries have learned, where
//! [`ServiceTimes`] takes it.

use crate::service_time::{ServiceTime, ServiceTimes};
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationSample, ClassCounts, Moments, PoolState, SentryLoad};
use serde_json::Value;
use std::collections::BTreeMap;

/// Reasons of refusals that more servers would answer. Not among them: an abuser's share, limits on
/// connections, and a gateway that stops.
pub const FOR_CAPACITY: [&str; 10] = [
    "flash_crowd",
    "requests_in_flight",
    "upstream_connections",
    "capacity",
    "deadline",
    "reserved",
    "threshold",
    "batch",
    "ladder",
    "upstream_feedback",
];
/// Readings for which a silent gateway is taken to go on as it was: beyond that it is gone.
const REPEATED_MAX: u32 = 3;
/// Totals of one gateway since it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewayReading {
    /// By class, in the configuration's order.
    pub classes: Vec<ClassTotals>,
    /// Unique attempts over all attempts, of the whole gateway.
    pub offered: u64,
    /// Unique attempts of the whole gateway.
    pub unique_offered: u64,
    /// Requests a second that the service is known to carry through this gateway; none where nothing is
    /// known.
    pub capacity_rps: Option<f64>,
    /// 95th percentile over mean of response times.
    pub quantile_factor: Option<f64>,
    /// Processor time that the gateway has used, seconds; none where it does not say.
    pub processor_s: Option<f64>,
    /// Processors that it may use: one for each worker, or less by a quota.
    pub processors: f64,
}

/// Totals of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTotals {
    /// As the configuration calls it.
    pub name: String,
    /// Offered, all attempts.
    pub offered: u64,
    /// Admitted.
    pub admitted: u64,
    /// Refused for want of capacity.
    pub refused: u64,
    /// Refused for another reason.
    pub refused_otherwise: u64,
}

impl GatewayReading {
    /// Reads a service's counts from `/status`; without a name, of the only service.
    ///
    /// # Errors
    /// Names the missing part.
    pub fn of(status: &Value, service: Option<&str>) -> Result<Self, String> {
        let services =
            status.get("services").and_then(Value::as_array).ok_or("its /status has no services")?;
        let name_of = |it: &Value| it.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = match service {
            Some(name) => services.iter().find(|it| name_of(it) == name),
            None if services.len() == 1 => services.first(),
            None => None,
        };
        let Some(found) = found else {
            let known: Vec<_> = services.iter().map(name_of).collect();
            let wanted =
                service.map_or_else(|| "the only service".to_owned(), |name| format!("service `{name}`"));
            return Err(format!("{wanted} is not there: it has {}", known.join(", ")));
        };
        let demand =
            found.get("demand").and_then(Value::as_array).ok_or("its /status has no demand by class")?;
        let count = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
        let requests = status.get("requests").ok_or("its /status has no counts of requests")?;
        let plan = found.pointer("/sentry/plan");
        let number = |key: &str| plan?.get(key)?.as_f64().filter(|number| *number > 0.0);
        Ok(Self {
            classes: demand.iter().map(class_totals).collect(),
            offered: count(requests, "offered"),
            unique_offered: count(requests, "unique_offered"),
            capacity_rps: number("capacity_rps"),
            quantile_factor: number("quantile_over_mean"),
            processor_s: status.get("processor_s").and_then(Value::as_f64),
            processors: status
                .get("processors")
                .and_then(Value::as_f64)
                .unwrap_or_else(|| count(status, "workers") as f64),
        })
    }

    /// The counts since an earlier reading; none if the gateway was started again in between.
    fn since(&self, before: &Self) -> Option<Self> {
        let minus = |now: u64, before: u64| now.checked_sub(before);
        let classes = self.classes.iter().map(|class| {
            let same = before.classes.iter().find(|it| it.name == class.name);
            let old = same.cloned().unwrap_or_default();
            Some(ClassTotals {
                name: class.name.clone(),
                offered: minus(class.offered, old.offered)?,
                admitted: minus(class.admitted, old.admitted)?,
                refused: minus(class.refused, old.refused)?,
                refused_otherwise: minus(class.refused_otherwise, old.refused_otherwise)?,
            })
        });
        let processor_s = self.processor_s.zip(before.processor_s).map(|(now, before)| now - before);
        Some(Self {
            classes: classes.collect::<Option<_>>()?,
            offered: minus(self.offered, before.offered)?,
            unique_offered: minus(self.unique_offered, before.unique_offered)?,
            processor_s: processor_s.filter(|seconds| *seconds >= 0.0),
            ..self.clone()
        })
    }
}

fn class_totals(class: &Value) -> ClassTotals {
    let count = |key: &str| class.get(key).and_then(Value::as_u64).unwrap_or(0);
    let mut totals = ClassTotals {
        name: class.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        offered: count("offered"),
        admitted: count("admitted"),
        ..ClassTotals::default()
    };
    for (reason, count) in class.get("refused").and_then(Value::as_object).into_iter().flatten() {
        let count = count.as_u64().unwrap_or(0);
        if FOR_CAPACITY.contains(&reason.as_str()) {
            totals.refused += count;
        } else {
            totals.refused_otherwise += count;
        }
    }
    totals
}

/// Makes samples of readings of several gateways.
#[derive(Debug, Default)]
pub struct Demand {
    gateways: BTreeMap<String, Gateway>,
    times: ServiceTimes,
    last_at: Option<Instant>,
}

#[derive(Debug)]
struct Gateway {
    totals: GatewayReading,
    /// Its counts between its last two readings, and how long that was.
    counted: Option<(GatewayReading, Duration)>,
    read_at: Instant,
    silent_for: u32,
}

impl Demand {
    /// The sample since the call before; none of the first one, and while no gateway is known. `readings` are
    /// those that answered, `listed` all gateways there are. `classes` are the policy's, in its order; empty:
    /// all are one class.
    pub fn sample(
        &mut self,
        now: Instant,
        readings: Vec<(String, GatewayReading)>,
        listed: usize,
        classes: &[String],
        pool: PoolState,
    ) -> Option<ApplicationSample> {
        self.times.see(now, pool.ready);
        let span = self.last_at.replace(now).map(|before| now.saturating_since(before));
        for gateway in self.gateways.values_mut() {
            gateway.silent_for += 1;
        }
        for (name, totals) in readings {
            let before = self.gateways.remove(&name);
            let counted = before.and_then(|before| {
                let counted = totals.since(&before.totals)?;
                Some((counted, now.saturating_since(before.read_at)))
            });
            self.gateways.insert(name, Gateway { totals, counted, read_at: now, silent_for: 0 });
        }
        self.gateways.retain(|_, gateway| gateway.silent_for <= REPEATED_MAX);
        let span = span.filter(|span| !span.is_zero())?;
        let counted: Vec<_> = self
            .gateways
            .values()
            .filter_map(|gateway| gateway.counted.as_ref().map(|counted| (gateway, counted)))
            .collect();
        if counted.is_empty() {
            return None;
        }
        let mut sums = vec![Counts::default(); classes.len().max(1)];
        for (gateway, (counted, over)) in &counted {
            // A silent one goes on at the rate of its last reading.
            let scale =
                if gateway.silent_for > 0 { span.as_secs_f64() / over.as_secs_f64().max(1e-3) } else { 1.0 };
            add(&mut sums, counted, classes, scale);
        }
        let [offered, refused] = [|sum: &Counts| sum.offered, |sum: &Counts| sum.refused]
            .map(|count| sums.iter().map(count).sum::<f64>().round() as u64);
        let service = self.times.known(now, offered, refused, whole_capacity_rps(&counted));
        let classes = sums.iter().map(|sum| sum.counts(service)).collect();
        let factors: Vec<f64> =
            counted.iter().filter_map(|(_, (counted, _))| counted.quantile_factor).collect();
        Some(ApplicationSample {
            classes,
            pool: Some(pool),
            quantile_factor: (!factors.is_empty())
                .then(|| factors.iter().sum::<f64>() / factors.len() as f64),
            sentries: sentry_load(&counted, listed),
            ..ApplicationSample::default()
        })
    }
}

/// Known capacity of all gateways together, requests a second.
fn whole_capacity_rps(counted: &[(&Gateway, &(GatewayReading, Duration))]) -> Option<f64> {
    // Gateways that know nothing yet are taken to have as much capacity for what they admit as the others.
    let admitted =
        |reading: &GatewayReading| reading.classes.iter().map(|class| class.admitted).sum::<u64>() as f64;
    let all: f64 = counted.iter().map(|(_, (counted, _))| admitted(counted)).sum();
    let knowing = || counted.iter().filter(|(_, (counted, _))| counted.capacity_rps.is_some());
    let capacity_rps: f64 = knowing().filter_map(|(_, (counted, _))| counted.capacity_rps).sum();
    let theirs: f64 = knowing().map(|(_, (counted, _))| admitted(counted)).sum();
    Some(if theirs > 0.0 { capacity_rps * all / theirs } else { capacity_rps }).filter(|rate| *rate > 0.0)
}

/// Sums of one class over gateways.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    offered: f64,
    admitted: f64,
    refused: f64,
}

impl Counts {
    fn counts(self, service: Option<ServiceTime>) -> ClassCounts {
        let admitted = self.admitted.round() as u64;
        let service = service.map_or_else(Moments::default, |time| time.moments(admitted));
        ClassCounts {
            offered: self.offered.round() as u64,
            admitted,
            refused: self.refused.round() as u64,
            service,
        }
    }
}

/// Adds what one gateway counted to the policy's classes; a class that the policy does not name counts as its
/// last.
fn add(sums: &mut [Counts], counted: &GatewayReading, classes: &[String], scale: f64) {
    let unique =
        if counted.offered > 0 { counted.unique_offered as f64 / counted.offered as f64 } else { 1.0 };
    for class in &counted.classes {
        let last = sums.len() - 1;
        let place = classes.iter().position(|name| *name == class.name).unwrap_or(last);
        let (offered, refused) = (class.offered as f64, class.refused as f64);
        let served = (offered - class.refused_otherwise as f64).max(0.0);
        let sum = &mut sums[place];
        // Admitted requests are never fewer attempts than they are; only refused ones are tried again.
        sum.offered += scale * (served * unique).max((class.admitted as f64).min(served));
        sum.admitted += scale * class.admitted as f64;
        sum.refused += scale * refused * unique;
    }
}

fn sentry_load(counted: &[(&Gateway, &(GatewayReading, Duration))], listed: usize) -> Option<SentryLoad> {
    let shares: Vec<f64> = counted
        .iter()
        .filter_map(|(_, (counted, over))| {
            let share = counted.processor_s? / over.as_secs_f64() / counted.processors;
            share.is_finite().then(|| share.clamp(0.0, 1.0))
        })
        .collect();
    if shares.is_empty() {
        return None;
    }
    Some(SentryLoad {
        count: u32::try_from(listed).unwrap_or(u32::MAX),
        busiest: shares.iter().copied().fold(0.0, f64::max),
        mean: shares.iter().sum::<f64>() / shares.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(offered: u64, admitted: u64, capacity_rps: f64) -> Value {
        json!({
            "processors": 2.0, "processor_s": offered as f64 / 1_000.0,
            "requests": { "offered": offered * 2, "unique_offered": offered },
            "services": [{
                "name": "shop",
                "demand": [
                    { "name": "gold", "offered": 0, "admitted": 0, "refused": {} },
                    { "name": "other", "offered": offered * 2, "admitted": admitted,
                      "refused": { "capacity": offered * 2 - admitted - 10, "client_share": 10 } },
                ],
                "sentry": { "plan": { "capacity_rps": capacity_rps, "quantile_over_mean": 3.0 } },
            }],
        })
    }

    fn reading(name: &str, offered: u64, admitted: u64) -> (String, GatewayReading) {
        (name.to_owned(), GatewayReading::of(&status(offered, admitted, 50.0), None).expect("a gateway's"))
    }

    fn at(second: u64) -> Instant {
        Instant::from_secs(second)
    }

    const POOL: PoolState =
        PoolState { ready: 2, starting: 0, start_ups: Moments { count: 0, sum_s: 0.0, squares_s2: 0.0 } };

    #[test]
    fn gateways_add_up_and_a_silent_one_goes_on_for_a_while() {
        let mut demand = Demand::default();
        let both = |offered, admitted| vec![reading("a", offered, admitted), reading("b", offered, admitted)];
        assert_eq!(demand.sample(at(0), both(100, 100), 2, &[], POOL), None);
        let sample = demand.sample(at(10), both(1_100, 600), 2, &[], POOL).expect("a sample");
        let counts = sample.classes[0];
        // Unique attempts are half of all: 1,000 of each gateway; 500 of each were admitted, 1,500 attempts
        // refused.
        assert_eq!((counts.offered, counts.admitted, counts.refused), (2_000, 1_000, 1_500));
        assert_eq!(counts.service.count, 1_000, "measured while they refused");
        let load = sample.sentries.expect("known");
        assert!((load.busiest - 0.05).abs() < 1e-9 && load.count == 2);
        let sample = demand.sample(at(20), vec![reading("a", 2_100, 1_100)], 2, &[], POOL).expect("a sample");
        assert_eq!((sample.classes[0].offered, sample.classes[0].admitted), (2_000, 1_000), "b goes on");
        // Two servers carry 50/s through each of two gateways.
        assert!((sample.classes[0].service.mean_s().expect("known") - 0.02).abs() < 1e-9);
        for second in [30, 40, 50, 60] {
            let offered = 100 * second + 100;
            demand.sample(at(second), vec![reading("a", offered, offered / 2)], 2, &[], POOL);
        }
        let sample = demand.sample(at(70), vec![reading("a", 7_100, 3_550)], 1, &[], POOL).expect("a sample");
        assert_eq!(sample.classes[0].offered, 1_000, "b is gone");
    }

    #[test]
    fn a_gateway_that_was_restarted_counts_from_its_first_reading() {
        let mut demand = Demand::default();
        demand.sample(at(0), vec![reading("a", 1_000, 1_000)], 1, &[], POOL);
        assert_eq!(demand.sample(at(10), vec![reading("a", 50, 50)], 1, &[], POOL), None);
        let sample = demand.sample(at(20), vec![reading("a", 150, 150)], 1, &[], POOL).expect("a sample");
        assert_eq!(sample.classes[0].offered, 100);
    }

    #[test]
    fn classes_are_those_of_the_policy() {
        let mut demand = Demand::default();
        let classes = ["gold".to_owned(), "rest".to_owned()];
        demand.sample(at(0), vec![reading("a", 100, 100)], 1, &classes, POOL);
        let sample =
            demand.sample(at(10), vec![reading("a", 300, 200)], 1, &classes, POOL).expect("a sample");
        assert_eq!((sample.classes[0].offered, sample.classes[1].offered), (0, 200));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |status: &Value, service| GatewayReading::of(status, service).unwrap_err();
        assert_eq!(error(&status(100, 100, 1.0), Some("cart")), "service `cart` is not there: it has shop");
        assert_eq!(error(&Value::Null, None), "its /status has no services");
        assert_eq!(
            error(&json!({ "services": [{ "name": "shop" }] }), None),
            "its /status has no demand by class"
        );
    }

    #[test]
    fn reasons_are_those_of_the_gateway() {
        let known: Vec<&str> = flashweir_core::Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        let unknown: Vec<_> = FOR_CAPACITY.iter().filter(|reason| !known.contains(reason)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
