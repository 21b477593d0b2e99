//! Goal: every invariant of docs/algorithms/provisioning.md, for any samples. Method: random sequences of
//! samples, time included, against the real planner behind the driver that the shells use.

use crate::{
    ApplicationPolicy, ApplicationSample, ClassCounts, ClassValue, Mode, Moments, Plan, Policy, PoolState,
    ProvisioningPlanner, Rule, Sample, SentryLoad,
};
use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::LadderStep;
use flashweir_core::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;

/// One interval of one application.
#[derive(Clone, Debug)]
struct Interval {
    offered: [u64; 2],
    refused_percent: u64,
    service_s: f64,
    ready: u32,
    starting: u32,
    busy: f64,
}

fn intervals(applications: usize) -> impl Strategy<Value = Vec<(u64, Vec<Interval>)>> {
    let service_s = prop_oneof![8 => 0.001f64..0.1, 1 => Just(f64::NAN), 1 => Just(0.0), 1 => Just(5.0)];
    let interval = (
        [0u64..20_000, 0u64..2_000],
        prop_oneof![2 => Just(0u64), 1 => 0u64..=100],
        service_s,
        0u32..60,
        0u32..10,
        prop_oneof![4 => 0.0f64..1.2, 1 => Just(f64::NAN)],
    )
        .prop_map(|(offered, refused_percent, service_s, ready, starting, busy)| Interval {
            offered,
            refused_percent,
            service_s,
            ready,
            starting,
            busy,
        });
    let gap_ms = prop_oneof![6 => Just(10_000u64), 1 => 0u64..120_000, 1 => Just(0)];
    vec((gap_ms, vec(interval, applications)), 1..60)
}

fn sample(from: Instant, to: Instant, intervals: &[Interval]) -> Sample {
    let application = |it: &Interval| {
        let class = |&offered: &u64| {
            let refused = offered * it.refused_percent / 100;
            let count = offered - refused;
            let sum_s = count as f64 * it.service_s;
            let service = Moments { count, sum_s, squares_s2: 2.0 * sum_s * it.service_s };
            ClassCounts { offered, admitted: count, refused, service }
        };
        ApplicationSample {
            classes: it.offered.iter().map(class).collect(),
            pool: Some(PoolState { ready: it.ready, starting: it.starting, ..PoolState::default() }),
            sentries: Some(SentryLoad { count: 1 + it.ready % 4, busiest: it.busy, mean: it.busy * 0.9 }),
            ..ApplicationSample::default()
        }
    };
    Sample { from, to, applications: intervals.iter().map(application).collect() }
}

fn policy(mode: Mode, pool: u32, bounds: &[(u32, u32)]) -> Policy {
    let seconds = Duration::from_secs;
    let step = |below_rps, target| LadderStep { below_rps, target: seconds(target) };
    let application = |&(servers_min, more): &(u32, u32)| ApplicationPolicy {
        classes: vec![
            ClassValue { revenue: 3.0, guaranteed_rps: 10.0, ..ClassValue::default() },
            ClassValue { target: Some(seconds(4)), ..ClassValue::default() },
        ],
        ladder: vec![step(1_000.0, 1), step(10_000.0, 2), step(f64::INFINITY, 3)],
        servers_min,
        servers_max: servers_min + more,
        ..ApplicationPolicy::single(seconds(1))
    };
    Policy { mode, ..Policy::new(pool, bounds.iter().map(application).collect()) }
}

fn drive(policy: Policy, intervals: &[(u64, Vec<Interval>)]) -> Vec<Plan> {
    let mut now = Instant::from_secs(5);
    let mut planner = PlannerDriver::new(ProvisioningPlanner::new(policy).expect("a right policy"), now);
    let mut plans = Vec::new();
    for (gap_ms, each) in intervals {
        let from = now;
        now += Duration::from_millis(*gap_ms);
        planner.observe(now, &sample(from, now, each));
        let plan = planner.plan(now);
        assert_eq!(planner.plan(now), plan, "early calls change nothing");
        plans.push(plan);
    }
    plans
}

fn check(policy: &Policy, plans: &[Plan]) {
    assert!(
        plans.windows(2).all(|pair| pair[0].epoch <= pair[1].epoch && pair[1].epoch <= pair[0].epoch + 1)
    );
    for plan in plans {
        let total: u64 = plan.applications.iter().map(|it| u64::from(it.servers)).sum();
        assert!(plan.epoch == 0 || plan.applications.len() == policy.applications.len());
        assert!(total <= u64::from(policy.pool), "{total} of {}", policy.pool);
        for (it, of) in plan.applications.iter().zip(&policy.applications) {
            assert!(it.servers <= of.servers_max, "{it:?}");
            assert!(plan.is_short_of_minimum || it.servers >= of.servers_min, "{it:?} {of:?}");
            assert!(it.sentries >= 1 && it.ladder_step < of.ladder.len());
            assert_eq!(it.target, of.ladder[it.ladder_step].target);
            let explained = it.explanation;
            let numbers = [explained.offered_rps, explained.forecast_rps, explained.refused_share];
            assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{explained:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_bound_in_both_modes(
        intervals in intervals(3), pool in 12u32..80, bounds in [(1u32..4, 0u32..60), (0u32..4, 1u32..60), (1u32..4, 0u32..9)]
    ) {
        for mode in [Mode::Published, Mode::Repaired] {
            let policy = policy(mode, pool, &bounds);
            let mut intervals = intervals.clone();
            // The published rules keep what there is: it has to fit.
            let first = intervals[0].1.iter_mut().zip(&bounds);
            first.for_each(|(it, &(min, _))| (it.ready, it.starting) = (min.max(1), 0));
            let plans = drive(policy.clone(), &intervals);
            check(&policy, &plans);
            prop_assert_eq!(drive(policy, &intervals), plans, "the same samples give the same plans");
        }
    }

    /// A lone application with a pool that is large enough: it gets what it needs, gives nothing back while
    /// requests are refused, and relaxes no target while servers are free.
    #[test]
    fn a_lone_application_gets_what_it_needs(intervals in intervals(1)) {
        const POOL: u32 = 100_000;
        let policy = policy(Mode::Repaired, POOL, &[(1, POOL - 1)]);
        let plans = drive(policy, &intervals);
        for (place, plan) in plans.iter().enumerate().filter(|(_, plan)| plan.epoch > 0) {
            let it = &plan.applications[0];
            prop_assert!(it.explanation.servers_needed.is_none_or(|needed| it.servers >= needed.min(POOL)));
            let before = place.checked_sub(1).map(|before| &plans[before]).filter(|before| before.epoch > 0);
            if let Some(before) = before.filter(|_| it.explanation.refused_share > 0.0) {
                prop_assert!(it.servers >= before.applications[0].servers, "{it:?}");
            }
            let is_feasible = it.explanation.rule != Rule::TargetInfeasible && it.servers < POOL;
            prop_assert!(!is_feasible || it.ladder_step == 0, "{it:?}");
        }
    }
}

/// Goal: the ladder is the last resort, announced with the servers, and taken back with a margin. Method:
/// one application, a pool that is nearly large enough; a tight first target that only more servers keep.
#[test]
fn the_target_is_relaxed_only_where_servers_run_out() {
    let step = |below_rps, millis| LadderStep { below_rps, target: Duration::from_millis(millis) };
    let ladder = vec![step(100.0, 50), step(350.0, 100), step(f64::INFINITY, 3_000)];
    let application = ApplicationPolicy { ladder, ..ApplicationPolicy::single(Duration::from_millis(50)) };
    let plans_at = |pool: u32, rate: u64| {
        let one = Interval {
            offered: [rate * 10, 0],
            refused_percent: 0,
            service_s: 0.0155,
            ready: pool,
            starting: 0,
            busy: 0.0,
        };
        let intervals: Vec<(u64, Vec<Interval>)> = (0..40).map(|_| (10_000, vec![one.clone()])).collect();
        drive(Policy::new(pool, vec![application.clone()]), &intervals).pop().expect("plans").applications[0]
            .clone()
    };
    // 400/s need 6.2 servers' work.
    let ample = plans_at(40, 400);
    assert_eq!((ample.ladder_step, ample.explanation.rule), (0, Rule::Keep));
    let needed = ample.explanation.servers_needed.expect("measured");
    assert!(needed >= 8 && ample.servers >= needed, "{ample:?}");
    let short = plans_at(7, 400);
    assert_eq!((short.servers, short.explanation.rule), (7, Rule::Short));
    assert!(short.ladder_step > 0 && short.target > Duration::from_millis(50), "{short:?}");
    let far_too_few = plans_at(3, 400);
    assert_eq!(far_too_few.target, Duration::from_millis(3_000));
    // What is permitted at a rate is a contract, however few servers there are.
    assert_eq!(plans_at(1, 300).target, Duration::from_millis(100));
    assert_eq!(plans_at(1, 80).target, Duration::from_millis(50));
}

/// Goal: gateways add up. Method: the same counts from one gateway and from three.
#[test]
fn three_gateways_plan_as_one() {
    let plan = |gateways: u64| {
        let application = ApplicationPolicy::single(Duration::from_secs(1));
        let planner = ProvisioningPlanner::new(Policy::new(100, vec![application])).expect("a right policy");
        let mut planner = PlannerDriver::new(planner, Instant::ZERO);
        for tick in 1..20 {
            let now = Instant::from_secs(10 * tick);
            let part = Interval {
                offered: [12_000 / gateways, 0],
                refused_percent: 25,
                service_s: 0.01,
                ready: 9,
                starting: 0,
                busy: 0.5,
            };
            (0..gateways).for_each(|_| planner.observe(now, &sample(now, now, std::slice::from_ref(&part))));
            planner.plan(now);
        }
        planner.plan(Instant::from_secs(200))
    };
    assert_eq!(plan(1), plan(3));
}

/// Goal: servers that are kept only for what has passed go to the application that refuses requests, and of
/// those that keep some the one gives them up whose servers earn least. Method: two applications whose
/// crowds have ended, the cheaper one first, and a third that needs three servers more than are free. Once
/// all of the last minute's demand counted, and the first application in the file kept its servers.
#[test]
fn servers_of_passed_demand_go_where_requests_are_refused() {
    let applications: Vec<_> = [1.0, 5.0, 3.0].map(of_worth).to_vec();
    // Five servers each, then one.
    let interval = ten_seconds;
    let crowd = || vec![interval(200, 0, 5), interval(200, 0, 5), interval(50, 0, 2)];
    let after = || vec![interval(30, 0, 5), interval(30, 0, 5), interval(200, 50, 2)];
    let intervals: Vec<_> =
        (0..20).map(|_| crowd()).chain((0..2).map(|_| after())).map(|each| (10_000, each)).collect();
    let plans = drive(Policy::new(12, applications), &intervals);
    let servers = |plan: &Plan| plan.applications.iter().map(|it| it.servers).collect::<Vec<_>>();
    let (before, last) = (servers(&plans[19]), servers(plans.last().expect("plans")));
    println!("{before:?} {last:?}");
    assert_eq!(before[..2], [5, 5]);
    assert!(last[2] >= 5, "{last:?}");
    assert_eq!((last[1], last.iter().sum::<u32>()), (5, 12), "the dearer one keeps its servers: {last:?}");
}

/// An application whose requests are worth this much; its servers start in 10 s.
fn of_worth(revenue: f64) -> ApplicationPolicy {
    ApplicationPolicy {
        classes: vec![ClassValue { revenue, ..ClassValue::default() }],
        start_up: Duration::from_secs(10),
        ..ApplicationPolicy::single(Duration::from_secs(1))
    }
}

/// Ten seconds of requests that take 20 ms: 50/s and server.
fn ten_seconds(rate_rps: u64, refused_percent: u64, ready: u32) -> Interval {
    Interval { offered: [rate_rps * 10, 0], refused_percent, service_s: 0.02, ready, starting: 0, busy: 0.0 }
}

/// Servers of each application by plan: `before` for 200 s, then `after` for 200 s.
fn servers_by_plan(policy: Policy, before: &[Interval], after: &[Interval]) -> Vec<Vec<u32>> {
    let each = |intervals: &[Interval]| vec![(10_000, intervals.to_vec()); 20];
    let plans = drive(policy, &[each(before), each(after)].concat());
    plans.iter().map(|plan| plan.applications.iter().map(|it| it.servers).collect()).collect()
}

/// Goal: the release window begins when demand falls. Method: demand falls from five servers' to one's; the
/// window is 60 s, so that one more plan gives all back. Once the window began when the level of the last
/// minute had followed, a minute later.
#[test]
fn servers_are_given_back_one_window_after_demand_has_fallen() {
    let policy = Policy::new(12, vec![of_worth(1.0)]);
    let servers = servers_by_plan(policy, &[ten_seconds(200, 0, 5)], &[ten_seconds(30, 0, 5)]);
    let servers: Vec<u32> = servers.iter().map(|each| each[0]).collect();
    let last = servers[39];
    let given_back = servers[20..].iter().position(|&each| each == last);
    assert_eq!((servers[19], last, given_back), (5, 1, Some(6)), "{servers:?}");
}

/// Goal: demand that has passed orders nothing. Method: the cheaper of two applications has too few servers
/// throughout its crowd, because the dearer one needs them; both crowds end at once. Once the level of the
/// last minute ordered servers for the cheaper crowd after it had left.
#[test]
fn demand_that_has_passed_orders_no_servers() {
    let policy = Policy::new(10, vec![of_worth(5.0), of_worth(1.0)]);
    let crowd = [ten_seconds(390, 0, 9), ten_seconds(200, 75, 1)];
    let servers = servers_by_plan(policy, &crowd, &[ten_seconds(30, 0, 9), ten_seconds(30, 0, 1)]);
    assert!(servers[19][1] <= 2, "it has too few servers in its crowd: {servers:?}");
    assert!(servers[20..].iter().all(|each| each[1] <= servers[19][1]), "{servers:?}");
}
