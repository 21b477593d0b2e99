//! Weeks without a crowd: how many servers run idle, and how often there are too few.

use flashweir_core::Duration;
use flashweir_provisioning::{ApplicationPolicy, Policy};
use flashweir_sim::pool::{ApplicationModel, AutoscalerSettings, Scaler, Scenario, run};
use flashweir_testkit::trace_counts;
use flashweir_workload::{RateProfile, Segment};

/// Straight lines between the middles of bins, `scale` times as high.
pub(crate) fn linear(bin: Duration, counts: &[f64], scale: f64) -> RateProfile {
    let segment =
        |pair: &[f64]| Segment { length: bin, from_per_s: pair[0] * scale, to_per_s: pair[1] * scale };
    RateProfile::new(counts.windows(2).map(segment)).expect("rates")
}

/// Time that a request takes alone: 60/s and server.
pub(crate) const SERVICE_S: f64 = 0.0155;

struct Found {
    /// Server-hours over the oracle's.
    hours: f64,
    kept: f64,
}

/// Each scaler over one profile: server hours over the oracle's, and the share of minutes in which no request
/// was refused and targets were kept.
fn compare(name: &str, profile: &RateProfile, seed: u64) -> [Found; 3] {
    let scalers = [Scaler::Oracle, Scaler::Planner, Scaler::Autoscaler(AutoscalerSettings::default())];
    let policy = Policy::new(1_000, vec![ApplicationPolicy::single(Duration::from_secs(1))]);
    let outcomes = scalers.map(|scaler| {
        let servers = (profile.rate_at(Duration::ZERO) * SERVICE_S * 1.3) as u32 + 1;
        let model = ApplicationModel::new(profile.clone(), servers);
        let scenario = Scenario {
            seed,
            tick: Duration::from_secs(1),
            ..Scenario::new(policy.clone(), vec![model], scaler)
        };
        run(&scenario).expect("a right scenario").applications.remove(0)
    });
    let oracle_hours = outcomes[0].server_hours;
    let found = outcomes.map(|it| {
        let kept = it.kept_share();
        Found { hours: it.server_hours / oracle_hours, kept }
    });
    let shown: Vec<String> = found.iter().map(|it| format!("{:.3} {:.5}", it.hours, it.kept)).collect();
    println!(
        "{name}, seed {seed}: server hours of the oracle's, and minutes kept: oracle, planner, processors: {shown:?}"
    );
    found
}

/// Demand by five minutes, with a mean of `servers` servers' work.
fn by_five_minutes(counts: &[f64], seconds_per_count: usize, servers: f64) -> RateProfile {
    let together = 300 / seconds_per_count;
    let bins: Vec<f64> =
        counts.chunks(together).map(|bin| bin.iter().sum::<f64>() / bin.len() as f64).collect();
    let mean = bins.iter().sum::<f64>() / bins.len() as f64;
    linear(Duration::from_secs(300), &bins, servers / SERVICE_S / mean)
}

/// Bars: at most 1.15 of the oracle's server hours, targets kept in 99.9 % of minutes. Four weeks of NASA's
/// server, by five minutes, with a mean of 20 and of 80 servers' work; seeds that nothing was chosen by.
/// Outages of NASA's server are in them: most minutes that are missed are those after one.
#[test]
fn quiet_weeks_cost_little_more_than_one_who_knew_them() {
    let Some(counts) = trace_counts("nasa_jul95_requests_per_second.txt.gz", 0, "quiet_weeks") else {
        return;
    };
    for (servers, seed) in [(20.0, 101), (20.0, 102), (80.0, 101)] {
        let profile = by_five_minutes(&counts, 1, servers);
        let [_, planner, _] = compare(&format!("nasa_jul95, {servers} servers"), &profile, seed);
        assert!(planner.hours <= 1.15, "{}", planner.hours);
        assert!(planner.kept >= 0.999, "{}", planner.kept);
    }
}

/// Shown, because it misses a bar: a service of four servers (targets kept in 99.88 % of minutes; the
/// oracle's 99.91 %), and two months of tweets about a company, with a burst every few hours. What is
/// required: fewer server hours than the autoscaler.
#[test]
fn small_and_restless_services_cost_less_than_processors_at_seventy_percent() {
    let test = "small_and_restless_services";
    let Some(nasa) = trace_counts("nasa_jul95_requests_per_second.txt.gz", 0, test) else { return };
    let Some(tweets) = trace_counts("nab_twitter_volume_FB_5min.csv.gz", 1, test) else { return };
    for (name, profile) in [
        ("nasa_jul95, 4 servers", by_five_minutes(&nasa, 1, 4.0)),
        ("tweets, 20 servers", by_five_minutes(&tweets, 300, 20.0)),
    ] {
        let [_, planner, processors] = compare(name, &profile, 101);
        assert!(planner.hours < processors.hours, "{name}: {} {}", planner.hours, processors.hours);
    }
}
