//! Goal: the invariants of routing and placement hold under any sequence of operations. Method: random
//! sequences of requests, reports, failures, plans and silence on one redirector, with its tables examined
//! after each step; random rings; random weights.

use crate::distribution::{Distribution, Policy, ServerLoad, fill};
use crate::placement::published::PublishedRule;
use crate::placement::{DocumentLoad, Watermarks, achievable_loads, spread};
use crate::servers::{LearningSettings, SHARE_ONE};
use crate::{Redirector, RedirectorSettings, Ring, ServerIndex, ServerReport, ServerSettings};
use flashweir_core::{Duration, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

const POLICIES: [Policy; 5] = [
    Policy::Acdn { memory: 0.0 },
    Policy::Integrator { gain: 0.6 },
    Policy::WaterFilling,
    Policy::TwoChoices,
    Policy::BoundedLoad { excess: 0.25 },
];
const DOCUMENTS: u64 = 40;

#[derive(Clone, Debug)]
enum Step {
    Requests { count: u16, document: u64 },
    Report { server: ServerIndex, load_rps: f64 },
    Fail { server: ServerIndex, times: u8 },
    Ask { document: u64, source: ServerIndex, relief_rps: f64 },
    Plan,
    Wait { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u16..200, 0..DOCUMENTS).prop_map(|(count, document)| Step::Requests { count, document }),
        3 => (0u16..5, 0.0f64..600.0).prop_map(|(server, load_rps)| Step::Report { server, load_rps }),
        1 => (0u16..5, 1u8..8).prop_map(|(server, times)| Step::Fail { server, times }),
        1 => (0..DOCUMENTS, 0u16..5, 0.0f64..200.0)
            .prop_map(|(document, source, relief_rps)| Step::Ask { document, source, relief_rps }),
        3 => Just(Step::Plan),
        2 => (1u64..40_000).prop_map(|millis| Step::Wait { millis }),
    ]
}

fn redirector(policy: Policy, servers: u16, learning: bool) -> Redirector {
    let servers_settings = ServerSettings {
        slow_start: Duration::from_secs(5),
        learning: learning.then_some(LearningSettings::LOAD),
        ..ServerSettings::default()
    };
    let settings = RedirectorSettings { policy, servers: servers_settings, ..RedirectorSettings::default() };
    let mut redirector = Redirector::new(settings).expect("valid settings");
    for _ in 0..servers {
        redirector.add_server(Instant::ZERO, 1.0, true).expect("room");
    }
    redirector
}

/// Every document has a host, each host once, the probabilities of its hosts sum to one if any of them is
/// usable.
fn check_documents(redirector: &Redirector) -> Result<(), TestCaseError> {
    for place in 0..redirector.documents().len() {
        let hosts = redirector.documents().hosts(place);
        prop_assert!(!hosts.is_empty(), "document {place} has no host");
        let mut sorted = hosts.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), hosts.len());
        prop_assert!(sorted.iter().all(|&it| usize::from(it) < redirector.servers().len()));
        let shares = redirector.servers().shares();
        if let Some(probabilities) = redirector.distribution().probabilities(hosts, shares) {
            let sum: f64 = probabilities.sum();
            let has_usable = hosts.iter().any(|&it| shares[usize::from(it)] > 0);
            let expected = if has_usable { 1.0 } else { 0.0 };
            prop_assert!((sum - expected).abs() < 1e-6, "{sum} for {hosts:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn requests_go_to_current_usable_hosts_and_documents_keep_one(
        steps in vec(step(), 1..120), policy in 0usize..5, servers in 1u16..5, learning: bool, seed: u64,
    ) {
        let mut redirector = redirector(POLICIES[policy], servers, learning);
        let (mut rng, mut now) = (Rng::new(seed), Instant::ZERO);
        for step in steps {
            match step {
                Step::Requests { count, document } => {
                    for _ in 0..count {
                        now += Duration::from_millis(1);
                        let home = (document % u64::from(servers)) as ServerIndex;
                        let shares = redirector.servers().shares().to_vec();
                        let chosen = redirector.route(now, document, home, &mut rng);
                        let place = redirector.documents().find(document).expect("it was offered");
                        let hosts = redirector.documents().hosts(place);
                        let usable = |it: &ServerIndex| shares[usize::from(*it)] > 0;
                        prop_assert_eq!(chosen.is_some(), hosts.iter().any(usable));
                        prop_assert!(chosen.is_none_or(|it| hosts.contains(&it) && usable(&it)));
                    }
                }
                Step::Report { server, load_rps } => {
                    redirector.report(now, server, ServerReport { load_rps, response_ms: None, utilisation: None });
                }
                Step::Fail { server, times } => {
                    (0..times).for_each(|_| redirector.finished(now, server, false));
                }
                Step::Ask { document, source, relief_rps } => {
                    redirector.accept(now, document, source, relief_rps, PublishedRule::ESSER);
                }
                Step::Plan => {
                    let load = |redirector: &Redirector, it| redirector.servers().load_rps(it);
                    let all = || 0..redirector.servers().len() as ServerIndex;
                    let is_usable = |it: &ServerIndex| redirector.servers().is_usable(now, *it);
                    let has_room = all().filter(is_usable).any(|it| load(&redirector, it) < 270.0);
                    let round = redirector.plan(now);
                    prop_assert!(round.created.is_empty() || has_room, "nothing helps a full cluster");
                    for placed in &round.created {
                        let after = load(&redirector, placed.server);
                        prop_assert!(after <= 270.0 + 1e-6, "a target was filled to {}", after);
                        prop_assert!(redirector.servers().is_usable(now, placed.server));
                    }
                    for placed in &round.deleted {
                        let place = redirector.documents().find(placed.document).expect("known");
                        prop_assert!(!redirector.documents().hosts(place).contains(&placed.server));
                    }
                    prop_assert!(round.deleted.is_empty() || !redirector.is_engaged());
                }
                Step::Wait { millis } => now += Duration::from_millis(millis),
            }
            check_documents(&redirector)?;
        }
    }

    /// The k-th redirector takes about 1/k of the documents, and only it gets any. 20,000 documents: the
    /// bound of 1.25/k is five standard deviations from 1/k at k = 50.
    #[test]
    fn a_new_redirector_moves_its_part_of_the_documents(names in vec(any::<u64>(), 2..50), salt: u64) {
        let mut names = names;
        names.sort_unstable();
        names.dedup();
        prop_assume!(names.len() >= 2);
        let before = Ring::new(names[..names.len() - 1].iter().copied()).expect("valid");
        let after = Ring::new(names.iter().copied()).expect("valid");
        let reversed = Ring::new(names.iter().rev().copied()).expect("valid");
        let newcomer = names.len() - 1;
        let mut moved = 0;
        for document in 0..20_000u64 {
            let document = salt.wrapping_add(document);
            let (old, new) = (before.owner(document), after.owner(document));
            prop_assert!(new < names.len());
            prop_assert!(old == new || new == newcomer);
            prop_assert_eq!(after.name(new), reversed.name(reversed.owner(document)));
            moved += u32::from(old != new);
        }
        let k = names.len() as f64;
        prop_assert!(f64::from(moved) <= 1.25 / k * 20_000.0, "{} of 20000 move to the {k}th", moved);
        prop_assert!(f64::from(moved) >= 0.75 / k * 20_000.0, "{} of 20000 move to the {k}th", moved);
    }

    #[test]
    fn water_is_level_and_none_is_lost(
        bases in vec((0.0f64..500.0, 0.0f64..3.0), 1..20), amount in 0.0f64..2_000.0,
    ) {
        let parts = fill(&bases, amount);
        let has_capacity = bases.iter().any(|it| it.1 > 0.0);
        let sum: f64 = parts.iter().sum();
        prop_assert!(!has_capacity || (sum - amount).abs() < 1e-6 * amount.max(1.0), "{} of {}", sum, amount);
        let levels: Vec<f64> = bases
            .iter()
            .zip(&parts)
            .filter(|(_, part)| **part > 1e-9)
            .map(|((base, capacity), part)| (base + part) / capacity)
            .collect();
        let level = levels.iter().copied().fold(0.0, f64::max);
        prop_assert!(levels.iter().all(|it| (it - level).abs() < 1e-6 * level.max(1.0)), "{:?}", levels);
        for ((base, capacity), part) in bases.iter().zip(&parts) {
            prop_assert!(*part > 1e-9 || *capacity == 0.0 || base / capacity >= level - 1e-6);
        }
    }

    /// ACDN's, the integrator's and water-filling's probabilities are a distribution over the usable hosts
    /// for any loads.
    #[test]
    fn probabilities_sum_to_one(
        loads in vec((0.0f64..2_000.0, 0.0f64..500.0, 0.01f64..100.0), 1..30), policy in 0usize..3, flexible in 0.0f64..3_000.0,
        rounds in 1usize..30, out in 0usize..30,
    ) {
        let mut distribution = Distribution::new(POLICIES[policy], Watermarks::default()).expect("valid");
        let mut shares = vec![SHARE_ONE; loads.len()];
        let mut server_loads: Vec<ServerLoad> = loads
            .iter()
            .map(|&(load_rps, exclusive_rps, weight)| ServerLoad { load_rps, exclusive_rps, weight })
            .collect();
        if let Some(share) = shares.get_mut(out) {
            *share = 0;
            server_loads[out].weight = 0.0;
        }
        loads.iter().for_each(|_| distribution.add_server());
        (0..rounds).for_each(|_| distribution.update(&server_loads, flexible));
        let hosts: Vec<ServerIndex> = (0..loads.len() as ServerIndex).collect();
        let probabilities: Vec<f64> = distribution.probabilities(&hosts, &shares).expect("fixed").collect();
        let sum: f64 = probabilities.iter().sum();
        let expected = if shares.iter().any(|&share| share > 0) { 1.0 } else { 0.0 };
        prop_assert!((sum - expected).abs() < 1e-6, "{}", sum);
        prop_assert!(probabilities.iter().zip(&shares).all(|(it, &share)| *it >= 0.0 && (share > 0 || *it == 0.0)));
    }

    /// No server is far above its part: (1 + ε) of the mean and the rounding of one request, over the last
    /// second.
    #[test]
    fn bounded_loads_stay_bounded(
        documents in vec(0u64..50, 500..1_500), servers in 2u16..12, seed: u64,
    ) {
        let policy = Policy::BoundedLoad { excess: 0.25 };
        let mut distribution = Distribution::new(policy, Watermarks::default()).expect("valid");
        (0..servers).for_each(|_| distribution.add_server());
        let hosts: Vec<ServerIndex> = (0..servers).collect();
        let shares = vec![SHARE_ONE; usize::from(servers)];
        let (mut rng, mut now) = (Rng::new(seed), Instant::ZERO);
        for document in documents {
            now += Duration::from_millis(1);
            let rate = |it| distribution.rate_rps(now, it);
            let before: Vec<f64> = hosts.iter().map(|&it| rate(it)).collect();
            let sum: f64 = before.iter().sum();
            let chosen = distribution.choose(now, document, &hosts, &shares, &mut rng).expect("a host");
            let limit = 1.26 * sum / f64::from(servers);
            prop_assert!(before[usize::from(chosen)] <= limit + 1e-9, "{before:?}, chosen {chosen}");
        }
    }

    /// Copies only ever lower the highest load that a router has to accept, and go where they are not yet.
    #[test]
    fn copies_lower_the_highest_achievable_load(
        rates in vec(0.01f64..300.0, 1..60), homes in vec(0u16..4, 60), room in vec(0.0f64..400.0, 4),
    ) {
        let mut hosts: Vec<Vec<ServerIndex>> =
            rates.iter().zip(&homes).map(|(_, &home)| vec![home]).collect();
        let highest = |hosts: &[Vec<ServerIndex>]| {
            let loads: Vec<DocumentLoad<'_>> = document_loads(&rates, hosts);
            achievable_loads(&loads, &[1.0; 4], 1.0).0.into_iter().fold(0.0, f64::max)
        };
        let before = highest(&hosts);
        let loads: Vec<DocumentLoad<'_>> = document_loads(&rates, &hosts);
        let copies = spread(&loads, &[1.0; 4], &room, 50);
        prop_assert!(copies.len() <= 50);
        let mut filled = [0.0; 4];
        for copy in &copies {
            prop_assert!(!hosts[copy.document].contains(&copy.target), "{copy:?}");
            filled[usize::from(copy.target)] += copy.moved_rps;
        }
        prop_assert!(filled.iter().zip(&room).all(|(it, room)| *it <= room + 1e-6));
        copies.iter().for_each(|copy| hosts[copy.document].push(copy.target));
        let after = highest(&hosts);
        // The router pours documents in one order, which is not always the best one.
        prop_assert!(after <= before * 1.1 + 1e-6, "{} before, {} after", before, after);
    }
}

fn document_loads<'a>(rates: &[f64], hosts: &'a [Vec<ServerIndex>]) -> Vec<DocumentLoad<'a>> {
    let of = |(document, (&rate_rps, hosts)): (usize, (&f64, &'a Vec<ServerIndex>))| DocumentLoad {
        document,
        rate_rps,
        hosts,
    };
    rates.iter().zip(hosts).enumerate().map(of).collect()
}

/// Goal: a choice allocates nothing, with any policy and 256 hosts.
#[test]
fn a_choice_allocates_nothing() {
    for policy in POLICIES {
        let mut distribution = Distribution::new(policy, Watermarks::default()).expect("valid");
        (0..256).for_each(|_| distribution.add_server());
        let hosts: Vec<ServerIndex> = (0..256).collect();
        let shares = vec![SHARE_ONE; 256];
        let mut rng = Rng::new(1);
        let info = allocation_counter::measure(|| {
            for request in 0..10_000u64 {
                distribution.choose(Instant::from_millis(request), request % 7, &hosts, &shares, &mut rng);
            }
        });
        assert_eq!(info.count_total, 0, "{policy:?}");
    }
}

/// Goal: a server silent for three reports gets nothing, its documents get another home, and it is used
/// again when it reports.
#[test]
fn a_silent_server_is_out_until_it_reports_again() {
    let mut redirector = redirector(Policy::TwoChoices, 2, false);
    let (mut rng, report) =
        (Rng::new(1), ServerReport { load_rps: 100.0, response_ms: None, utilisation: None });
    for second in 0..=30 {
        let now = Instant::from_secs(second);
        (0..2).for_each(|server| redirector.report(now, server, report));
        redirector.plan(now);
        assert_eq!(redirector.route(now, 7, 0, &mut rng), Some(0));
    }
    let mut rehomed = Vec::new();
    for second in 31..=61 {
        let now = Instant::from_secs(second);
        redirector.report(now, 1, report);
        rehomed.extend(redirector.plan(now).rehomed);
        let expected = if second <= 60 { 0 } else { 1 };
        assert_eq!(redirector.route(now, 7, 0, &mut rng), Some(expected), "at {second} s");
    }
    assert_eq!(rehomed.len(), 1);
    redirector.report(Instant::from_secs(62), 0, report);
    assert!(redirector.servers().is_usable(Instant::from_secs(62), 0));
    let place = redirector.documents().find(7).expect("known");
    assert_eq!(redirector.documents().hosts(place), [1, 0]);
}

/// Goal: a home that is out does not stay the one host that is never deleted. Method: a document with a
/// copy loses its home, and then its demand: the copy that is there stays.
#[test]
fn a_copy_that_is_there_becomes_the_home_of_one_that_is_out() {
    let mut redirector = redirector(Policy::TwoChoices, 3, false);
    let report = ServerReport { load_rps: 1.0, response_ms: None, utilisation: None };
    let mut rng = Rng::new(1);
    redirector.offer(Instant::ZERO, 7, 0);
    // The last one: where all are out, the first that is usable would be taken.
    redirector.place_copy(Instant::ZERO, 7, 0, 2);
    (0..3).for_each(|server| redirector.report(Instant::ZERO, server, report));
    let mut rehomed = Vec::new();
    for second in 1..=300 {
        let now = Instant::from_secs(second);
        (1..3).for_each(|server| redirector.report(now, server, report));
        rehomed.extend(redirector.plan(now).rehomed);
        // Something is asked for, so that the document is not forgotten.
        redirector.offer(now, 7, 0);
    }
    let homes: Vec<_> = rehomed.iter().map(|it| (it.document, it.server)).collect();
    assert_eq!(homes, [(7, 2)]);
    let place = redirector.documents().find(7).expect("known");
    assert_eq!(redirector.documents().hosts(place).first(), Some(&2));
    assert_eq!(redirector.route(Instant::from_secs(300), 7, 0, &mut rng), Some(2));
}

/// Goal: placement looks at what is offered. Method: two documents, of one of which admission refuses nine
/// of ten.
#[test]
fn refused_requests_count_for_placement() {
    let mut redirector = redirector(Policy::TwoChoices, 2, false);
    let (mut rng, mut now) = (Rng::new(1), Instant::ZERO);
    for request in 0..5_000u64 {
        now += Duration::from_millis(2);
        let is_hot = request % 5 != 0;
        redirector.offer(now, u64::from(is_hot), 0);
        if !is_hot || request % 10 == 1 {
            redirector.choose(now, u64::from(is_hot), 0, &mut rng);
        }
    }
    for (server, load_rps) in [(0, 310.0), (1, 0.0)] {
        redirector.report(now, server, ServerReport { load_rps, response_ms: None, utilisation: None });
    }
    let round = redirector.plan(now);
    assert_eq!(round.created.iter().map(|it| it.document).collect::<Vec<_>>(), [1], "{round:?}");
}

/// Goal: copies go when the crowd has gone, not before a minute, one at a time, and the last one stays.
#[test]
fn copies_go_when_demand_has_gone() {
    let mut redirector = redirector(Policy::TwoChoices, 3, false);
    let mut now = Instant::ZERO;
    for _ in 0..4_000 {
        now += Duration::from_millis(2);
        redirector.offer(now, 9, 0);
    }
    let report = |redirector: &mut Redirector, now, load_rps| {
        for (server, load_rps) in [(0, load_rps), (1, 10.0), (2, 10.0)] {
            redirector.report(now, server, ServerReport { load_rps, response_ms: None, utilisation: None });
        }
    };
    report(&mut redirector, now, 500.0);
    assert_eq!(redirector.plan(now).created.len(), 2);
    let mut deleted_s = Vec::new();
    for second in 9..200 {
        let now = Instant::from_secs(second);
        report(&mut redirector, now, 10.0);
        deleted_s.extend(redirector.plan(now).deleted.iter().map(|_| second));
    }
    assert_eq!(deleted_s.len(), 2, "{deleted_s:?}");
    assert!(deleted_s[0] >= 68 && deleted_s[1] > deleted_s[0], "{deleted_s:?}");
    let place = redirector.documents().find(9).expect("known");
    assert_eq!(redirector.documents().hosts(place), [0]);
}
