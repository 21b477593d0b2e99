//! Goal: quiet hours demote no client. Method: the quiet hours of all recordings beside the product,
//! squeezed to minutes and scaled so that their busiest second stays below what the site can do; a third of
//! the requests comes from one address without sessions.

use crate::fairness::plant::{CAPACITY_RPS, Protection, policy};
use flashweir_core::Duration;
use flashweir_sim::request::{ClassModel, NetworkModel, Scenario, ServerModel, SignModel, Work, run};
use flashweir_testkit::trace_counts;
use flashweir_workload::people::{Habits, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::num::NonZeroU32;

/// Recordings and the column that counts.
const TRACES: [(&str, usize); 5] = [
    ("nasa_jul95_requests_per_second.txt.gz", 0),
    ("nasa_sts70_launch_19950713_0500_1400_per_second.csv.gz", 1),
    ("wc98_brazil_netherlands_19980707.csv", 1),
    ("wc98_brazil_scotland_19980610.csv", 1),
    ("wc98_abrupt_burst_19980512.csv", 1),
];
/// Rates of a run, a second each.
const RATES: usize = 120;
/// Runs of each recording at most.
const STRETCHES: usize = 12;

#[test]
fn quiet_hours_of_all_recordings_demote_no_client() {
    let (mut looked_at, mut demoted, mut requests) = (0, 0, 0);
    for (file, column) in TRACES {
        let Some(counts) = trace_counts(file, column, "quiet_hours_of_all_recordings") else { return };
        // The quieter half of a recording: its stretches by their sums.
        let together = (counts.len() / RATES / (2 * STRETCHES)).clamp(1, 60);
        let mut stretches: Vec<&[f64]> = counts.chunks(RATES * together).collect();
        stretches.sort_by(|one, other| {
            let mean = |counts: &[f64]| counts.iter().sum::<f64>() / counts.len() as f64;
            mean(one).total_cmp(&mean(other))
        });
        stretches.truncate(stretches.len().div_ceil(2).min(STRETCHES));
        for (seed, stretch) in (101..).zip(stretches) {
            let rates: Vec<f64> = stretch.chunks(together).map(|bin| bin.iter().sum::<f64>()).collect();
            let busiest = rates.iter().copied().fold(0.0, f64::max);
            if busiest <= 0.0 {
                continue;
            }
            let scaled: Vec<f64> = rates.iter().map(|rate| rate * 0.9 * CAPACITY_RPS / busiest).collect();
            looked_at += 1;
            let outcome = run(&scenario(&scaled, seed)).expect("a run");
            requests += outcome.totals().offered;
            let of_all = outcome.classes.iter().flat_map(|class| &class.demotions.by_second);
            demoted += of_all.sum::<u64>();
        }
        println!("{file}: {demoted} of {requests} requests demoted so far, in {looked_at} stretches");
    }
    assert!(looked_at >= 20, "{looked_at}");
    assert_eq!(demoted, 0, "of {requests}");
}

fn scenario(rates: &[f64], seed: u64) -> Scenario {
    let arrivals = |part: f64| {
        let profile = RateProfile::from_bins(Duration::from_secs(1), rates.iter().map(|rate| rate * part));
        ArrivalProcess::Poisson(profile.expect("a profile"))
    };
    // A person makes four requests at once.
    let streams = [arrivals(2.0 / 3.0 / 4.0), arrivals(1.0 / 3.0)].into_iter().zip(0..);
    let streams =
        streams.map(|(arrivals, class)| Stream { arrivals, classes: vec![Share { class, weight: 1.0 }] });
    let schedule = Schedule::new(streams.collect(), seed).expect("a schedule");
    let work = Work::Exponential { mean: Duration::from_secs_f64(1.0 / CAPACITY_RPS) };
    let session =
        Session { requests: "4".parse().expect("a length"), think: "exp:5s".parse().expect("a wait") };
    let people = ClassModel {
        habits: Habits { session, patience: None, retry: None },
        signs: Some(SignModel::people(3)),
        ..ClassModel::new("people", work)
    };
    let crawler = ClassModel {
        signs: Some(SignModel::crawler(NonZeroU32::MIN)),
        ..ClassModel::new("a quiet crawler", work)
    };
    Scenario {
        policy: policy(Protection::Default),
        seed,
        classes: vec![people.clone(), crawler],
        network: NetworkModel::Delay(Duration::from_millis(1)),
        ..Scenario::new(schedule, people, ServerModel::processor_sharing(1))
    }
}
