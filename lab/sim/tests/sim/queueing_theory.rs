//! Goal: the server's waiting times are those of queueing theory. Method: systems whose mean delay has a
//! closed form, several seeds each, a warm-up left out; the mean over the seeds within 2 % of the formula.

use flashweir_core::Duration;
use flashweir_sim::request::{ClassModel, RunOutcome, Scenario, ServerModel, Work, run};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

const SEEDS: u64 = 5;
const WARM_UP_S: usize = 20;

/// Mean time in the system, seconds, for each seed: Poisson arrivals at `rate_rps` over `length_s`.
fn mean_delays_s(server: ServerModel, work: Work, rate_rps: f64, length_s: u64) -> Vec<f64> {
    let delay = |seed| {
        let outcome = simulated(server, work, rate_rps, length_s, seed);
        let counts = outcome.began_within(WARM_UP_S..usize::MAX);
        assert_eq!((counts.offered, counts.in_flight()), (counts.completed, 0));
        counts.mean_latency_s().expect("one was served")
    };
    (1..=SEEDS).map(delay).collect()
}

fn simulated(server: ServerModel, work: Work, rate_rps: f64, length_s: u64, seed: u64) -> RunOutcome {
    let profile = RateProfile::constant(rate_rps, Duration::from_secs(length_s)).unwrap();
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), seed);
    let class = ClassModel { timeout: Duration::from_secs(3600), ..ClassModel::new("all", work) };
    run(&Scenario { seed, ..Scenario::new(schedule, class, server) }).unwrap()
}

/// Within 2 % of the formula, and the formula within the confidence interval widened by what the 2 % allow.
fn check(name: &str, delays_s: &[f64], theory_s: f64) {
    let count = delays_s.len() as f64;
    let mean_s = delays_s.iter().sum::<f64>() / count;
    let variance = delays_s.iter().map(|delay| (delay - mean_s).powi(2)).sum::<f64>() / (count - 1.0);
    // Student's t for four degrees of freedom, 95 %.
    let half_width_s = 2.776 * (variance / count).sqrt();
    println!("{name}: {:.4} ms ± {:.4}, theory {:.4} ms", mean_s * 1e3, half_width_s * 1e3, theory_s * 1e3);
    assert!((mean_s / theory_s - 1.0).abs() < 0.02, "{name}: {mean_s} s, theory {theory_s} s");
    assert!(half_width_s < 0.02 * theory_s, "{name}: too few samples to tell ({half_width_s} s)");
}

fn exponential(mean_ms: u64) -> Work {
    Work::Exponential { mean: Duration::from_millis(mean_ms) }
}

#[test]
fn one_exponential_server() {
    // M/M/1 at ρ = 0.6: 1/(μ − λ).
    let delays_s = mean_delays_s(ServerModel::first_come(1, 1), exponential(5), 120.0, 1_000);
    check("M/M/1", &delays_s, 1.0 / (200.0 - 120.0));
}

#[test]
fn one_constant_server() {
    // M/D/1 at ρ = 0.7: s + ρs/(2(1 − ρ)) (Pollaczek–Khinchine).
    let (work_s, load) = (0.005, 0.7);
    let work = Work::Constant(Duration::from_millis(5));
    let delays_s = mean_delays_s(ServerModel::first_come(1, 1), work, load / work_s, 600);
    check("M/D/1", &delays_s, work_s + load * work_s / (2.0 * (1.0 - load)));
}

#[test]
fn processor_sharing_does_not_care_how_work_is_distributed() {
    // M/G/1-PS at ρ = 0.6: s/(1 − ρ), for any distribution. (First come, first served would take 36 % longer
    // than that with the two-point work, and 30 % less with constant work.)
    let works = [
        ("exponential", exponential(5)),
        (
            "two-point",
            Work::TwoPoint {
                short: Duration::from_micros(2_500),
                long: Duration::from_millis(27),
                long_share: 0.1,
            },
        ),
        (
            "Pareto",
            Work::Pareto { shape: 1.6, least: Duration::from_millis(2), most: Duration::from_millis(200) },
        ),
        ("constant", Work::Constant(Duration::from_millis(5))),
    ];
    for (name, work) in works {
        let delays_s =
            mean_delays_s(ServerModel::processor_sharing(1), work, 0.6 / work.mean_s(1_000.0), 800);
        check(&format!("M/G/1-PS, {name}"), &delays_s, work.mean_s(1_000.0) / (1.0 - 0.6));
    }
}

#[test]
fn several_exponential_servers() {
    // M/M/4 at ρ = 0.75: Erlang's C = 0.5094 for 3 Erlang on 4 servers; 1/μ + C/(cμ − λ).
    let (servers, work_s, rate_rps) = (4.0_f64, 0.020_f64, 150.0_f64);
    let erlang = rate_rps * work_s;
    let term = |k: i32| erlang.powi(k) / (1..=k).map(f64::from).product::<f64>();
    let all_busy = term(4) * servers / (servers - erlang);
    let waits = all_busy / ((0..4).map(term).sum::<f64>() + all_busy);
    assert!((waits - 0.5094).abs() < 1e-4, "{waits}");
    let delays_s = mean_delays_s(ServerModel::first_come(4, 4), exponential(20), rate_rps, 800);
    check("M/M/4", &delays_s, work_s + waits / (servers / work_s - rate_rps));
}

#[test]
fn levels_obey_the_utilisation_law_and_little() {
    let outcome = simulated(ServerModel::first_come(1, 1), exponential(5), 120.0, 500, 9);
    let level = outcome.mean_level(0..500);
    let counts = outcome.totals();
    let rate_rps = counts.completed as f64 / 500.0;
    assert!((level.busy / (rate_rps * 0.005) - 1.0).abs() < 0.01, "{level:?}");
    // A request may be present at the end; Little's law holds for the rest.
    let present = level.waiting + level.in_service;
    assert!((present / (rate_rps * counts.mean_latency_s().unwrap()) - 1.0).abs() < 1e-3, "{level:?}");
}
