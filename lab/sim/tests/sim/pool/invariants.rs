//! Goal: what holds in every pool. Method: random applications, crowds, pools and scalers.

use flashweir_core::Duration;
use flashweir_provisioning::{ApplicationPolicy, Mode, Policy};
use flashweir_sim::pool::{
    ApplicationModel, AutoscalerSettings, PoolOutcome, Scaler, Scenario, StartUp, run,
};
use flashweir_workload::RateProfile;
use proptest::collection::vec;
use proptest::prelude::*;

fn scenarios() -> impl Strategy<Value = Scenario> {
    let application = (0.0f64..2_000.0, 0.0f64..8.0, 0u64..900, 1u32..6);
    let scaler = prop_oneof![
        Just(Scaler::Planner),
        Just(Scaler::Autoscaler(AutoscalerSettings::default())),
        Just(Scaler::Oracle),
        Just(Scaler::Fixed),
    ];
    let mode = prop_oneof![Just(Mode::Repaired), Just(Mode::Published)];
    (vec(application, 1..4), scaler, mode, 20u32..80, 0u64..90, 0u64..1_000).prop_map(
        |(applications, scaler, mode, pool, start_up_s, seed)| {
            let second = Duration::from_secs(1);
            let model = |&(rate, times, at_s, servers): &(f64, f64, u64, u32)| {
                let profile = RateProfile::step(rate, rate * times, second * at_s as u32, second * 900);
                ApplicationModel::new(profile.expect("rates"), servers)
            };
            let models: Vec<_> = applications.iter().map(model).collect();
            let policies = models.iter().map(|_| ApplicationPolicy::single(second)).collect();
            let policy = Policy { mode, ..Policy::new(pool, policies) };
            let start_up = StartUp { mean: Duration::from_secs(start_up_s), spread: 0.5 };
            Scenario { start_up, seed, ..Scenario::new(policy, models, scaler) }
        },
    )
}

fn check(scenario: &Scenario, outcome: &PoolOutcome) {
    let pool = f64::from(scenario.policy.pool);
    let bins = outcome.applications[0].bins.len();
    for bin in 0..bins {
        let ready_s: f64 = outcome.applications.iter().map(|it| it.bins[bin].ready_s).sum();
        assert!(ready_s <= pool * 60.0 + 1e-6, "{ready_s} server-seconds in a minute of {pool} servers");
    }
    for it in &outcome.applications {
        for bin in &it.bins {
            assert!(
                bin.admitted <= bin.offered && bin.late <= bin.admitted && bin.worked_s <= bin.ready_s + 1e-6
            );
        }
        assert!(it.orders.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let busy_hours = it.bins.iter().map(|bin| bin.ready_s).sum::<f64>() / 3_600.0;
        assert!(it.server_hours >= busy_hours - 1e-6, "servers that serve are paid for");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn servers_never_exceed_the_pool_and_requests_are_conserved(scenario in scenarios()) {
        let outcome = run(&scenario).expect("a right scenario");
        check(&scenario, &outcome);
        let again = run(&scenario).expect("a right scenario");
        for (one, other) in outcome.applications.iter().zip(&again.applications) {
            prop_assert_eq!(&one.bins, &other.bins);
        }
    }
}

/// Goal: wrong scenarios say what is wrong.
#[test]
fn a_wrong_scenario_says_what_is_wrong() {
    let second = Duration::from_secs(1);
    let profile = RateProfile::constant(1.0, second * 60).expect("a rate");
    let policy = Policy::new(3, vec![ApplicationPolicy::single(second)]);
    let right = Scenario::new(policy, vec![ApplicationModel::new(profile, 1)], Scaler::Fixed);
    let error = |scenario: Scenario| run(&scenario).expect_err("wrong").to_string();
    let mut crowded = right.clone();
    crowded.applications[0].servers = 4;
    assert_eq!(error(crowded), "servers at the beginning: 4, expected at most the pool's");
    let none = Scenario { applications: Vec::new(), ..right.clone() };
    assert_eq!(error(none), "applications: 0, expected as many as the policy has");
    let mut empty = right;
    empty.policy.pool = 0;
    assert_eq!(error(empty), "policy: servers of the pool: 0, expected 1 to 1000000");
}
