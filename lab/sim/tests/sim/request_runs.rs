//! Goal: people, gate, server and faults do what their documentation says, and every run is a function of
//! its scenario. Method: small runs with a known answer. The checkers of the simulator run after every step
//! of all of them.

use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant, Rate, Reason};
use flashweir_sim::request::{
    ClassModel, Counts, Departed, Fault, FaultKind, FlashCrowdPolicy, Memory, NetworkModel, Overflow, Policy,
    RunError, RunOutcome, Scenario, ServerModel, ShedReason, Work, run,
};
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::{Habits, Retry, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

const MS: Duration = Duration::from_millis(1);

fn steady(rate_rps: f64, length_s: u64) -> ArrivalProcess {
    ArrivalProcess::Poisson(RateProfile::constant(rate_rps, Duration::from_secs(length_s)).unwrap())
}

/// A service of 200 requests a second.
fn class() -> ClassModel {
    ClassModel::new("all", Work::Constant(5 * MS))
}

fn scenario(arrivals: ArrivalProcess, class: ClassModel) -> Scenario {
    let network = NetworkModel::Delay(10 * MS);
    Scenario { network, ..Scenario::new(Schedule::one(arrivals, 3), class, ServerModel::first_come(1, 1)) }
}

fn during(kind: FaultKind, from_s: u64, to_s: u64) -> Vec<Fault> {
    vec![Fault { kind, during: Instant::from_secs(from_s)..Instant::from_secs(to_s) }]
}

fn reader(requests: &str, think: &str) -> Session {
    Session { requests: requests.parse().unwrap(), think: think.parse().unwrap() }
}

/// Everything at once: two classes on two hosts, sessions, patience, retries, NEWS, every fault.
fn everything(seed: u64) -> Scenario {
    let crowd = RateProfile::step(60.0, 500.0, Duration::from_secs(10), Duration::from_secs(20)).unwrap();
    let streams = [ArrivalProcess::Poisson(crowd), steady(20.0, 30)].into_iter().zip(0..);
    let streams = streams.map(|(arrivals, class)| {
        let classes = vec![Share { class, weight: 1.0 }];
        Stream { arrivals, classes }
    });
    let habits = Habits {
        patience: Some("exp:5s".parse().unwrap()),
        session: reader("geometric:2", "exp:1s"),
        retry: Some(Retry::default()),
    };
    let popularity = Popularity::zipf(0.8, 100).unwrap();
    let hot = ClassModel { habits, popularity, ..ClassModel::new("hot", Work::Exponential { mean: 5 * MS }) };
    let other = ClassModel { host: 1, goes_on_unserved: true, ..hot.clone() };
    let memory =
        Memory { memory_bytes: 100 << 20, base_bytes: 50 << 20, request_bytes: 1 << 20, penalty: 3.0 };
    let faults = [
        during(FaultKind::Slow(2.0), 5, 6),
        during(FaultKind::LinkCut, 7, 8),
        during(FaultKind::LostFeedback(0.5), 9, 15),
        during(FaultKind::Crash, 17, 18),
    ];
    Scenario {
        schedule: Schedule::new(streams.collect(), seed).unwrap(),
        classes: vec![hot, other],
        seed,
        network: NetworkModel::Delay(15 * MS),
        policy: Policy::flash_crowd(FlashCrowdPolicy::default()),
        requests_in_flight: Some(300),
        server: ServerModel { memory: Some(memory), ..ServerModel::processor_sharing(1) },
        faults: faults.concat(),
        bin: Duration::from_secs(1),
    }
}

/// Goal: the same seed gives the same events, and a change of a rule shows what it changed. Method: two
/// runs of one seed have one event hash; the counts are compared with the committed table, which holds
/// every machine and build profile to the same run.
#[test]
fn the_same_seed_is_the_same_run_and_has_the_committed_table() {
    let outcomes = [1, 1, 2].map(|seed| run(&everything(seed)).unwrap());
    for outcome in &outcomes {
        let totals = outcome.totals();
        assert_eq!((totals.in_flight(), outcome.gate.lost()), (0, 0));
        assert!(
            [totals.goodput, totals.shed_total(), totals.timed_out, totals.abandoned, totals.broken]
                .iter()
                .all(|&count| count > 0),
            "{totals:?}"
        );
    }
    let [one, again, other] = &outcomes;
    assert_eq!((one.events, one.event_hash), (again.events, again.event_hash));
    assert_ne!(one.event_hash, other.event_hash);
    let table = table(&[(1, one), (2, other)]);
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"),
        prepend_module_to_snapshot => false,
    }, { insta::assert_snapshot!("request_runs", table) });
}

/// One row per seed, class and part of the run: the quiet start, the crowd, the time after it.
fn table(runs: &[(u64, &RunOutcome)]) -> String {
    let mut table = String::new();
    for (seed, outcome) in runs {
        let (events, ended_s, plans) = (outcome.events, outcome.ended_at.as_secs_f64(), outcome.plans.len());
        table += &format!("seed {seed}: {events} events in {ended_s:.4} s, {plans} plans\n");
        table += &format!("{:?}\n{:?}\n", outcome.gate, outcome.server);
        for (number, class) in outcome.classes.iter().enumerate() {
            let [p50, p95] = [0.5, 0.95].map(|share| tenths_of_ms(&class.latency_us, share));
            let refused_p95 = tenths_of_ms(&class.refusal_us, 0.95);
            table += &format!("class {number}: p50 {p50} ms, p95 {p95} ms, refusals p95 {refused_p95} ms\n");
        }
    }
    table += "\nseed class from_s unique offered admitted completed goodput refused timed_out abandoned broken mean_ms shed_by_reason\n";
    for (seed, outcome) in runs {
        for (number, class) in outcome.classes.iter().enumerate() {
            for part in [0..10, 10..20, 20..usize::MAX] {
                let mut counts = Counts::default();
                class.bins.iter().take(part.end).skip(part.start).for_each(|bin| counts.add(bin));
                let mean_ms = counts.mean_latency_s().unwrap_or(0.0) * 1e3;
                let shed: Vec<String> = ShedReason::all()
                    .filter(|reason| counts.shed[reason.index()] > 0)
                    .map(|reason| format!("{}={}", reason.as_str(), counts.shed[reason.index()]))
                    .collect();
                table += &format!(
                    "{seed:>4} {number:>5} {:>6} {:>6} {:>7} {:>8} {:>9} {:>7} {:>7} {:>9} {:>9} {:>6} {mean_ms:>7.1} {}\n",
                    part.start,
                    counts.unique_offered,
                    counts.offered,
                    counts.admitted,
                    counts.completed,
                    counts.goodput,
                    counts.refused,
                    counts.timed_out,
                    counts.abandoned,
                    counts.broken,
                    if shed.is_empty() { "-".to_owned() } else { shed.join(" ") },
                );
            }
        }
    }
    table
}

fn tenths_of_ms(histogram: &Histogram, share: f64) -> String {
    format!("{:.1}", histogram.quantile(share).unwrap_or(0) as f64 / 1e3)
}

/// Goal: the crowd is that of `flashweir load`. Method: walk through the very same people by hand and
/// compare every second's count; the service answers at once, so that nothing else decides when they ask.
#[test]
fn the_people_are_those_of_the_load_tool() {
    let habits = Habits { session: reader("geometric:3", "exp:2s"), ..Habits::default() };
    let class = ClassModel { habits, ..ClassModel::new("all", Work::Constant(Duration::ZERO)) };
    let scenario = Scenario {
        seed: 11,
        network: NetworkModel::Delay(Duration::ZERO),
        ..scenario(steady(200.0, 20), class)
    };
    let mut expected = [0; 20];
    for arrival in scenario.schedule.arrivals() {
        let mut person = habits.person(11, arrival.class, arrival.person);
        let mut asks_at = arrival.moment;
        while person.next_request().is_some() && asks_at < Duration::from_secs(20) {
            expected[asks_at.as_secs() as usize] += 1;
            asks_at += person.think();
        }
    }
    let outcome = run(&scenario).unwrap();
    let offered: Vec<u64> = outcome.classes[0].bins.iter().take(20).map(|bin| bin.offered).collect();
    assert_eq!(offered, expected);
}

#[test]
fn a_crash_breaks_what_is_there_and_what_comes_and_then_it_is_over() {
    let faults = during(FaultKind::Crash, 10, 12);
    let outcome = run(&Scenario { faults, ..scenario(steady(150.0, 20), class()) }).unwrap();
    let [before, meanwhile, after] = [0..9, 10..12, 13..20].map(|bins| outcome.began_within(bins));
    assert_eq!((before.broken, after.broken), (0, 0));
    assert_eq!((before.completed, after.completed), (before.offered, after.offered));
    // The last ones were on their way when it came up again.
    assert!(meanwhile.offered > 250 && meanwhile.completed < 10, "{meanwhile:?}");
    assert_eq!(outcome.totals().broken + outcome.totals().completed, outcome.totals().offered);
}

#[test]
fn a_cut_link_is_met_by_the_clients_time_limit_only() {
    let faults = during(FaultKind::LinkCut, 5, 8);
    let outcome = run(&Scenario { faults, ..scenario(steady(100.0, 12), class()) }).unwrap();
    let (totals, cut) = (outcome.totals(), outcome.began_within(5..8));
    assert!(cut.timed_out * 100 >= cut.offered * 95, "{cut:?}");
    assert_eq!(totals.timed_out + totals.completed, totals.offered);
    // What the gate never received was neither admitted nor shed.
    assert!(outcome.gate.received < totals.offered);
    assert!(outcome.gate.received + totals.timed_out >= totals.offered);
}

#[test]
fn a_slow_server_takes_so_many_times_longer() {
    let faults = during(FaultKind::Slow(4.0), 10, 20);
    let outcome = run(&Scenario { faults, ..scenario(steady(10.0, 30), class()) }).unwrap();
    let slow_s = outcome.mean_level(10..20).busy / outcome.mean_level(10..20).served_rps;
    let usual_s = outcome.mean_level(20..30).busy / outcome.mean_level(20..30).served_rps;
    assert!((slow_s - 0.020).abs() < 0.001 && (usual_s - 0.005).abs() < 0.001, "{slow_s} {usual_s}");
}

#[test]
fn lost_feedback_leaves_the_planner_blind() {
    let crowd = RateProfile::step(90.0, 600.0, Duration::from_secs(10), Duration::from_secs(20)).unwrap();
    let policy = Policy::flash_crowd(FlashCrowdPolicy::default());
    let seen = Scenario { policy, ..scenario(ArrivalProcess::Poisson(crowd), class()) };
    let blind = Scenario { faults: during(FaultKind::LostFeedback(1.0), 9, 30), ..seen.clone() };
    let [seen, blind] = [seen, blind].map(|scenario| run(&scenario).unwrap());
    let shed = |outcome: &RunOutcome| outcome.totals().shed[ShedReason::Gateway(Reason::FlashCrowd).index()];
    assert!(shed(&seen) > 3_000, "{}", shed(&seen));
    assert_eq!(shed(&blind), 0);
}

#[test]
fn memory_that_runs_short_turns_overload_into_collapse() {
    let memory =
        Memory { memory_bytes: 1 << 30, base_bytes: 500 << 20, request_bytes: 10 << 20, penalty: 20.0 };
    let swapping = ServerModel { memory: Some(memory), ..ServerModel::processor_sharing(1) };
    let served_rps = |server, rate_rps| {
        let patient = ClassModel { timeout: Duration::from_secs(600), ..class() };
        let run = run(&Scenario { server, ..scenario(steady(rate_rps, 60), patient) }).unwrap();
        run.mean_level(10..60).served_rps
    };
    // At half of the capacity a handful of requests fit; at 1.3 times, hundreds of them do not.
    assert!((served_rps(swapping, 100.0) / 100.0 - 1.0).abs() < 0.05);
    let (with_swapping, without) =
        (served_rps(swapping, 260.0), served_rps(ServerModel::processor_sharing(1), 260.0));
    assert!(with_swapping < 0.3 * without, "{with_swapping} {without}");
}

#[test]
fn work_for_those_who_have_gone_is_wasted_unless_it_is_stopped() {
    let habits = Habits { patience: Some("exp:1s".parse().unwrap()), ..Habits::default() };
    let class = ClassModel { habits, timeout: Duration::from_secs(60), ..class() };
    let completed = |departed| {
        let server = ServerModel { departed, ..ServerModel::first_come(1, 1) };
        run(&Scenario { server, ..scenario(steady(400.0, 30), class.clone()) }).unwrap().totals().completed
    };
    let (stopping, working_on) = (completed(Departed::Stops), completed(Departed::WorksOn));
    assert!(stopping > 30 * 180 && working_on < stopping / 3, "{stopping} {working_on}");
}

#[test]
fn people_leave_when_their_patience_ends_and_retry_when_their_client_gives_up() {
    let retry = Some(Retry { tries_most: 3, pace: "fixed:100ms".parse().unwrap(), ..Retry::default() });
    let habits = Habits { retry, ..Habits::default() };
    let timeout = 300 * MS;
    let never = ServerModel { queue: Some(0), overflow: Overflow::Drop, ..ServerModel::first_come(1, 1) };
    let stuck = ClassModel { habits, timeout, work: Work::Constant(Duration::from_secs(100)), ..class() };
    let outcome =
        run(&Scenario { server: never, ..scenario(steady(50.0, 10), stuck.clone()) }).unwrap().totals();
    // All but those whose next try would begin after the end make three.
    assert!(outcome.offered > 28 * outcome.unique_offered / 10, "{outcome:?}");
    assert_eq!((outcome.timed_out, outcome.completed), (outcome.offered, 0));
    let patience = Some("200ms".parse().unwrap());
    let habits = Habits { patience, ..habits };
    let outcome = run(&scenario(steady(50.0, 10), ClassModel { habits, ..stuck })).unwrap().totals();
    assert_eq!((outcome.abandoned, outcome.unique_offered), (outcome.offered, outcome.offered));
}

#[test]
fn refused_people_come_back_when_they_are_told_to() {
    let retry = Some(Retry { tries_most: 2, pace: "retry-after".parse().unwrap(), ..Retry::default() });
    let habits = Habits { retry, ..Habits::default() };
    let scenario = Scenario {
        requests_in_flight: Some(0),
        policy: Policy::flash_crowd(FlashCrowdPolicy::default()),
        ..scenario(
            ArrivalProcess::given_within([MS], Duration::from_secs(9)).unwrap(),
            ClassModel { habits, ..class() },
        )
    };
    let outcome = run(&scenario).unwrap();
    assert_eq!(outcome.totals().shed[ShedReason::Gateway(Reason::RequestsInFlight).index()], 2);
    // The bound says one second, and `Retry-After` is that or twice as much.
    let tries: Vec<usize> = (0..9).filter(|second| outcome.classes[0].bins[*second].offered > 0).collect();
    assert!(tries == [0, 1] || tries == [0, 2], "{tries:?}");
}

#[test]
fn a_static_bucket_admits_its_rate() {
    let policy = Policy::StaticRate { rate: Rate::from_per_second(150.0), burst: 10 };
    let outcome = run(&Scenario { policy, ..scenario(steady(400.0, 30), class()) }).unwrap();
    let admitted = outcome.totals().admitted;
    assert!(admitted.abs_diff(30 * 150) < 20, "{admitted}");
    assert_eq!(outcome.totals().shed[ShedReason::StaticRate.index()], outcome.gate.shed);
    assert_eq!(outcome.totals().goodput, admitted);
}

#[test]
fn what_makes_no_run_is_told_with_its_name() {
    let good = scenario(steady(1.0, 10), class());
    let error_of = |scenario: &Scenario| match run(scenario) {
        Err(RunError::Scenario(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let class = ClassModel { timeout: Duration::ZERO, ..class() };
    let no_arrivals = ArrivalProcess::given_within([], Duration::from_secs(9)).unwrap();
    let cases = [
        (
            Scenario { classes: Vec::new(), ..good.clone() },
            "schedule: it has people of a class that is not described",
        ),
        (Scenario { classes: vec![class], ..good.clone() }, "class all, timeout: above 0"),
        (Scenario { bin: Duration::ZERO, ..good.clone() }, "bin: at least 1 ms"),
        (
            Scenario { faults: during(FaultKind::Slow(0.5), 1, 2), ..good.clone() },
            "faults[0]: a slowdown by 0.5",
        ),
        (Scenario { faults: during(FaultKind::Crash, 2, 2), ..good.clone() }, "faults[0]: it ends"),
        (Scenario { schedule: Schedule::one(no_arrivals, 1), ..good.clone() }, "schedule: nobody would come"),
        (
            Scenario { schedule: Schedule::one(steady(1.0, 600_000), 1), bin: MS, ..good.clone() },
            "bin: the series",
        ),
    ];
    for (scenario, expected) in cases {
        assert!(error_of(&scenario).starts_with(expected), "{}", error_of(&scenario));
    }
}
