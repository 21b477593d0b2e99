//! Goal: with all stages of the gateway's pipeline no request is lost or counted twice, and a run is a
//! function of its scenario. Method: crowds of three to ten times what a CPU-bound origin serves, one to
//! four workers, clients that retry and clients that leave; the simulator's checkers look after every step,
//! and the totals are compared at the end.

use flashweir_admission::sentry::{ClassPolicy, Policy as Classes};
use flashweir_core::{Duration, Rng};
use flashweir_sim::request::{
    ClassModel, FlashCrowdPolicy, GateCounts, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work,
    run,
};
use flashweir_workload::people::{Habits, Retry};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

const SEEDS: u64 = 20;
const CALM_S: u64 = 10;
const CROWD_S: u64 = 15;
/// Two processors, 10 ms a request.
const CAPACITY_RPS: f64 = 200.0;

fn scenario(seed: u64) -> Scenario {
    let mut rng = Rng::new(seed);
    let times = 3.0 + 7.0 * rng.unit_f64();
    let crowd = RateProfile::step(
        0.5 * CAPACITY_RPS,
        times * CAPACITY_RPS,
        Duration::from_secs(CALM_S),
        Duration::from_secs(CALM_S + CROWD_S),
    );
    let arrivals = ArrivalProcess::Poisson(crowd.expect("a valid profile"));
    let classes = [(0, 0.3), (1, 0.7)].map(|(class, weight)| Share { class, weight }).to_vec();
    let schedule = Schedule::new(vec![Stream { arrivals, classes }], seed).expect("a valid schedule");
    let worth = |revenue| ClassPolicy { revenue, ..ClassPolicy::default() };
    let policy = Classes { classes: vec![worth(2.0), worth(1.0)], ..Classes::single(Duration::from_secs(1)) };
    let sentry = SentryPolicy { workers: 1 + rng.below(4) as usize, ..SentryPolicy::new(policy) };
    let habits = Habits {
        patience: (rng.below(2) == 0).then(|| "exp:2s".parse().expect("a valid wait")),
        retry: (rng.below(2) == 0).then(Retry::default),
        ..Habits::default()
    };
    let work = Work::Exponential { mean: Duration::from_millis(10) };
    let class = |(name, policy_class)| ClassModel { policy_class, habits, ..ClassModel::new(name, work) };
    let shared = rng.below(2) == 0;
    let server = if shared { ServerModel::processor_sharing(2) } else { ServerModel::first_come(2, 64) };
    Scenario {
        seed,
        classes: [("gold", 0), ("bronze", 1)].map(class).to_vec(),
        policy: Policy::default_composition(FlashCrowdPolicy::default(), sentry),
        ..Scenario::new(schedule, class(("replaced", 0)), server)
    }
}

fn check_conservation(seed: u64, outcome: &RunOutcome) {
    let gates = outcome.classes.iter().map(|class| &class.gate).chain([&outcome.gate]);
    for gate in gates {
        let GateCounts { received, admitted, shed, held, left, ended, .. } = *gate;
        assert_eq!(received, admitted + shed + left, "seed {seed}: {gate:?}");
        assert_eq!((held, admitted), (0, ended), "seed {seed}: {gate:?}");
    }
    let totals = outcome.totals();
    assert_eq!((totals.offered, totals.in_flight()), (totals.settled(), 0), "seed {seed}: {totals:?}");
    let by_class: u64 = outcome.classes.iter().map(|class| class.gate.received).sum();
    assert_eq!(by_class, outcome.gate.received, "seed {seed}");
}

#[test]
fn all_stages_together_lose_nothing_and_the_same_seed_is_the_same_run() {
    for seed in 1..=SEEDS {
        let outcomes = [(); 2].map(|()| run(&scenario(seed)).expect("a valid scenario"));
        let [one, other] = &outcomes;
        assert_eq!((one.events, one.event_hash), (other.events, other.event_hash), "seed {seed}");
        check_conservation(seed, one);
        let totals = one.totals();
        assert!(totals.goodput > 0 && totals.shed_total() > 0, "seed {seed}: {totals:?}");
    }
}
