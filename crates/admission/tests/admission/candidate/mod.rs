//! Goal: the report of a candidate is what it would have done. Method: a crowd before an origin in virtual
//! time, a live policy with a candidate beside it; then the same crowd with the candidate in force, and both
//! are compared.

mod plant;

use flashweir_admission::sentry::{ClassCounts, ClassPolicy, Policing, Policy};
use flashweir_core::{Duration, Rate};
use plant::{Crowd, Outcome, run};

fn policy(revenues: &[f64], target_ms: u64) -> Policy {
    let class = |&revenue: &f64| ClassPolicy { revenue, ..ClassPolicy::default() };
    Policy {
        classes: revenues.iter().map(class).collect(),
        ..Policy::single(Duration::from_millis(target_ms))
    }
}

/// Four servers and 20 ms of work: 200 requests a second, and two and a half times that are offered.
fn crowd(seed: u64, gates: usize) -> Crowd {
    Crowd { classes: vec![(250.0, 0.02), (250.0, 0.02)], servers: 4.0, gates, seed }
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn admitted(counts: &ClassCounts) -> f64 {
    share(counts.admitted, counts.offered)
}

fn good(counts: &ClassCounts) -> f64 {
    share(counts.good, counts.offered)
}

/// The share of requests on which live policy and candidate agree.
fn agreement(outcome: &Outcome) -> f64 {
    let (mut same, mut all) = (0, 0);
    for compared in &outcome.compared {
        same += compared.both + compared.neither;
        all += compared.both + compared.neither + compared.only_live + compared.only_candidate;
    }
    share(same, all)
}

/// With the same plan the two decide alike, to the last request (proven beside the gate). Here each has its
/// own plan, and these differ by what each estimates that requests take: so which of two equal requests gets
/// the last place may differ, and then who is there at the next decision, but neither how many are let in nor
/// of which class.
#[test]
fn a_candidate_that_is_the_live_policy_lets_in_as_many_of_each_class() {
    let mean = |runs: &[Outcome], value: &dyn Fn(&Outcome) -> f64| {
        runs.iter().map(value).sum::<f64>() / runs.len() as f64
    };
    for gates in [1, 4] {
        for (revenues, least) in [(&[1.0, 1.0][..], 0.5), (&[10.0, 1.0], 0.85)] {
            let policy = policy(revenues, 1_000);
            let runs: Vec<_> =
                CROWDS.map(|seed| run(&crowd(seed, gates), &policy, &policy)).into_iter().collect();
            let agreement = mean(&runs, &agreement);
            println!("{gates} gates, {revenues:?}: agreement {agreement:.3}");
            assert!(agreement >= least, "{gates} gates, {revenues:?}: agreement {agreement:.3}");
            for class in 0..revenues.len() {
                for value in [admitted, good] {
                    let live = mean(&runs, &|run| value(&run.live[class]));
                    let candidate = mean(&runs, &|run| value(&run.candidate[class]));
                    println!("  class {class}: {live:.3} live, {candidate:.3} candidate");
                    assert!((live - candidate).abs() < 0.02, "{gates} gates, {revenues:?}, class {class}");
                }
            }
        }
    }
}

/// Seeds of the crowds that means are taken over: of six, two estimates of the same share differ by 0.02 by
/// chance.
const CROWDS: [u64; 18] = [1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 101, 111, 121, 131, 141, 151, 161, 171];

#[test]
fn while_there_is_room_every_candidate_agrees() {
    let quiet = Crowd { classes: vec![(60.0, 0.02), (60.0, 0.02)], ..crowd(7, 4) };
    let outcome = run(&quiet, &policy(&[10.0, 1.0], 1_000), &policy(&[1.0, 5.0], 500));
    let all: u64 = outcome.compared.iter().map(|compared| compared.both).sum();
    assert!(all > 2_000 && agreement(&outcome) >= 1.0, "{all}: {outcome:?}");
}

/// Compares the report of a candidate beside the live policy with what it does when it is in force.
fn check(what: &str, crowd: &Crowd, live: &Policy, candidate: &Policy, within: f64) {
    check_mean(what, core::slice::from_ref(crowd), live, candidate, within);
}

/// The same of the means over several crowds: in each the limit is learned again, and one crowd's limits
/// differ by chance.
fn check_mean(what: &str, crowds: &[Crowd], live: &Policy, candidate: &Policy, within: f64) {
    let runs: Vec<_> =
        crowds.iter().map(|crowd| (run(crowd, live, candidate), run(crowd, candidate, candidate))).collect();
    for class in 0..live.classes.len() {
        let mean = |value: &dyn Fn(&(Outcome, Outcome)) -> f64| {
            runs.iter().map(value).sum::<f64>() / runs.len() as f64
        };
        let admitted_beside = mean(&|(beside, _)| admitted(&beside.candidate[class]));
        let admitted_real = mean(&|(_, real)| admitted(&real.live[class]));
        let good_beside = mean(&|(beside, _)| good(&beside.candidate[class]));
        let good_real = mean(&|(_, real)| good(&real.live[class]));
        let line = format!(
            "{what}, class {class}: admitted {admitted_beside:.3} beside, {admitted_real:.3} real; \
             good {good_beside:.3} beside, {good_real:.3} real"
        );
        println!("{line}");
        assert!((admitted_beside - admitted_real).abs() <= within, "{line}");
        assert!((good_beside - good_real).abs() <= within, "{line}");
    }
}

#[test]
fn another_order_of_importance_is_told_as_it_would_be() {
    for gates in [1, 4] {
        let what = format!("gold to the other class, {gates} gates");
        let crowds = [2, 12, 22, 32, 42, 52, 62, 72, 82, 92, 102, 112].map(|seed| crowd(seed, gates));
        check_mean(&what, &crowds, &policy(&[10.0, 1.0], 1_000), &policy(&[1.0, 10.0], 1_000), 0.065);
    }
}

#[test]
fn classes_where_there_were_none_and_none_where_there_were_some_are_told_as_they_would_be() {
    let (equal, ordered) = (policy(&[1.0, 1.0], 1_000), policy(&[10.0, 1.0], 1_000));
    let crowds = [3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 103, 113].map(|seed| crowd(seed, 2));
    check_mean("ordered, from equal", &crowds, &equal, &ordered, 0.04);
    check_mean("equal, from ordered", &crowds, &ordered, &equal, 0.04);
}

#[test]
fn a_guarantee_is_told_as_it_would_be() {
    let live = policy(&[10.0, 1.0], 1_000);
    let mut candidate = live.clone();
    candidate.classes[1].guaranteed_rate = Rate::from_per_second(50.0);
    let crowds = [4, 14, 24, 34].map(|seed| crowd(seed, 2));
    check_mean("50/s guaranteed to the least", &crowds, &live, &candidate, 0.06);
}

/// Small requests of the one class, large ones of the other: what never ran is estimated by its own class's
/// cost.
#[test]
fn costs_of_what_never_ran_are_its_own() {
    let crowds =
        [5, 15, 25, 35].map(|seed| Crowd { classes: vec![(300.0, 0.01), (150.0, 0.04)], ..crowd(seed, 2) });
    let (live, candidate) = (policy(&[10.0, 1.0], 1_000), policy(&[1.0, 10.0], 1_000));
    check_mean("dear before cheap", &crowds, &live, &candidate, 0.08);
}

#[test]
fn another_target_and_another_way_to_decide_are_told_as_they_would_be() {
    let live = policy(&[10.0, 1.0], 1_000);
    check("half the target", &crowd(6, 2), &live, &policy(&[10.0, 1.0], 500), 0.06);
    let threshold = Policy { policing: Policing::Threshold, ..live.clone() };
    check("threshold", &crowd(6, 2), &live, &threshold, 0.08);
}
