//! A crowd of four times the usual demand for ten minutes, and the crowds of real days.

use crate::pool::quiet::{SERVICE_S, linear};
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::queueing::{ArrivalStream, Dispatch, size};
use flashweir_provisioning::{ApplicationPolicy, Policy};
use flashweir_sim::pool::{ApplicationModel, ApplicationOutcome, AutoscalerSettings, Scaler, Scenario, run};
use flashweir_testkit::trace_counts;
use flashweir_workload::RateProfile;
use std::ops::Range;

const CROWD_S: u64 = 600;
const TIMES: f64 = 4.0;
const INTERVAL_S: usize = 10;

/// Demand before and after the crowd, and when it comes.
struct Crowd {
    base_rps: f64,
    /// The crowd comes this long after a plan, so that no seed sees the luckiest moment only.
    begins_ms: u64,
}

impl Crowd {
    fn profile(&self) -> RateProfile {
        let millis = Duration::from_millis;
        let constant = |rate, length| RateProfile::constant(rate, length).expect("a rate");
        constant(self.base_rps, millis(self.begins_ms))
            .then(constant(self.base_rps * TIMES, millis(CROWD_S * 1_000)))
            .then(constant(self.base_rps, millis(1_200_000)))
    }

    fn seconds(&self) -> Range<usize> {
        let begins_s = self.begins_ms as usize / 1_000;
        begins_s..begins_s + CROWD_S as usize
    }
}

fn scenario(profile: RateProfile, servers: u32, pool: u32, scaler: Scaler, seed: u64) -> Scenario {
    let policy = Policy::new(pool, vec![ApplicationPolicy::single(Duration::from_secs(1))]);
    let model = ApplicationModel::new(profile, servers);
    Scenario { seed, bin: Duration::from_secs(1), ..Scenario::new(policy, vec![model], scaler) }
}

fn outcome(scenario: &Scenario) -> ApplicationOutcome {
    run(scenario).expect("a right scenario").applications.remove(0)
}

fn needed(rate_rps: f64, model: &ApplicationModel) -> u32 {
    let stream = ArrivalStream { rate_rps, squared_variation: 1.0 };
    size(stream, model.service, 1.0 / 3.0, Dispatch::SharedQueue, 100_000).expect("feasible").servers
}

/// The scalers that are compared.
fn scalers() -> [(&'static str, Scaler); 3] {
    [
        ("oracle", Scaler::Oracle),
        ("planner", Scaler::Planner),
        ("processors at 70 %", Scaler::Autoscaler(AutoscalerSettings::default())),
    ]
}

/// Bars: at least 0.9 of the oracle's share; no refusal later than two intervals after the servers for the
/// crowd are up; one reversal at most. With every seed, 20 of them, at three sizes.
#[test]
fn a_crowd_of_four_times_is_served_nearly_as_by_one_who_knew_it() {
    for base_rps in [50.0, 200.0, 1_500.0] {
        let mut worst: Vec<(&str, f64, f64)> = Vec::new();
        let (mut latest_s, mut reversals, mut hours) = (f64::NEG_INFINITY, 0, Vec::new());
        for seed in 201..=220u64 {
            let crowd = Crowd { base_rps, begins_ms: 900_000 + seed % 20 * 1_300 };
            let profile = crowd.profile();
            let model = ApplicationModel::new(profile.clone(), 0);
            let servers = needed(base_rps * 1.1, &model);
            let of = |scaler| outcome(&scenario(profile.clone(), servers, 1_000, scaler, seed));
            let outcomes = scalers().map(|(name, scaler)| (name, of(scaler)));
            let oracle = outcomes[0].1.served_share(crowd.seconds());
            for (place, (name, it)) in outcomes.iter().enumerate() {
                let share = it.served_share(crowd.seconds());
                if worst.len() <= place {
                    worst.push((name, 1.0, 1.0));
                    hours.push(0.0f64);
                }
                worst[place].1 = worst[place].1.min(share);
                worst[place].2 = worst[place].2.min(share / oracle);
                hours[place] += it.server_hours / 20.0;
            }
            let planner = &outcomes[1].1;
            reversals = reversals.max(turns(planner, &crowd));
            latest_s =
                latest_s.max(refused_after_capacity_s(planner, &crowd, needed(base_rps * TIMES, &model)));
        }
        println!(
            "{base_rps}/s: worst of 20 seeds (share served, of the oracle's) {worst:.3?}, mean server hours {hours:.2?}, last refusal \
             {latest_s} s after capacity, reversals at most {reversals}"
        );
        assert!(worst[1].2 >= 0.9, "{base_rps}/s: {worst:?}");
        assert!(latest_s <= (2 * INTERVAL_S) as f64, "{base_rps}/s: {latest_s} s");
        assert!(reversals <= 1, "{base_rps}/s: {reversals}");
    }
}

/// Number of times that growing turned into shrinking or back, from the crowd's beginning on.
fn turns(it: &ApplicationOutcome, crowd: &Crowd) -> usize {
    let begins = Instant::from_millis(crowd.begins_ms);
    let before = it.orders.iter().rposition(|order| order.at <= begins).unwrap_or(0);
    let directions: Vec<bool> =
        it.orders[before..].windows(2).map(|pair| pair[1].servers > pair[0].servers).collect();
    directions.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Seconds from the moment that the servers for the crowd are up to the last refusal; minus infinity if none
/// is later.
fn refused_after_capacity_s(it: &ApplicationOutcome, crowd: &Crowd, servers: u32) -> f64 {
    let seconds = crowd.seconds();
    let is_up = |second: &usize| it.bins[*second].ready_s >= f64::from(servers) - 0.01;
    let Some(up) = seconds.clone().find(is_up) else { return f64::INFINITY };
    let last = (up..it.bins.len()).rev().find(|&second| it.bins[second].refused() > 0);
    last.map_or(f64::NEG_INFINITY, |last| (last - up) as f64)
}

/// The crowds of real days, as they were by the minute, scaled to a peak of 40 servers' work. Bar: at least
/// 0.9 of the oracle's share over the hour around the peak; an abrupt burst within three minutes included.
#[test]
fn crowds_of_real_days_are_served_nearly_as_by_one_who_knew_them() {
    let crowds = [
        ("wc98_brazil_netherlands_19980707.csv", 1, 1),
        ("wc98_brazil_scotland_19980610.csv", 1, 1),
        ("wc98_abrupt_burst_19980512.csv", 1, 1),
        ("nasa_sts70_launch_19950713_0500_1400_per_second.csv.gz", 1, 60),
    ];
    for (file, column, together) in crowds {
        let Some(counts) = trace_counts(file, column, "crowds_of_real_days") else { return };
        let bins: Vec<f64> = counts.chunks(together).map(|bin| bin.iter().sum()).collect();
        let peak = bins.iter().copied().fold(0.0, f64::max);
        let at = bins.iter().position(|&count| count == peak).expect("a peak");
        let profile = linear(Duration::from_secs(60), &bins, 40.0 / SERVICE_S / peak);
        let hour = at.saturating_sub(30) * 60..(at + 30).min(bins.len()) * 60;
        let servers =
            needed(bins[0] * 40.0 / SERVICE_S / peak * 1.1, &ApplicationModel::new(profile.clone(), 0));
        let mut worst = [1.0f64; 3];
        for seed in 201..=205 {
            let shares = scalers().map(|(_, scaler)| {
                outcome(&scenario(profile.clone(), servers, 1_000, scaler, seed)).served_share(hour.clone())
            });
            worst.iter_mut().zip(shares).for_each(|(worst, share)| *worst = worst.min(share));
        }
        println!(
            "{file}: worst of 5 seeds, share served in the hour around the peak: oracle, planner, processors {worst:.4?}"
        );
        assert!(worst[1] >= 0.9 * worst[0], "{file}: {worst:?}");
    }
}
