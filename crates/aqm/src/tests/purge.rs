//! Goal: the repaired rule keeps its promises with any traffic: flows within their share are not cut, those
//! over it get it, the price stays in its range, no clock and no number of flows breaks it. Method: random
//! traffic beside exact rates; literal cases for each edge.

use crate::purge::TOLERANCE;
use crate::{Arrival, CountedPeriod, Fate, FlowHasher, FlowIdentity, HeavyFlows, Purge, PurgeSettings, Rem};
use flashweir_core::{Duration, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

const LINK_BITS_PER_S: u64 = 10_000_000;
const PACKET_BYTES: u32 = 1_000;

fn purge() -> Purge {
    Purge::new(&PurgeSettings::over(Rem { target_packets: 250.0, ..Rem::default() }), LINK_BITS_PER_S)
}

/// Counts of one flow's packets in the second half of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u64,
    dropped: u64,
}

/// Flows of these constant rates (packets a second, jittered phases), for `seconds`, through a queue that
/// stays at its target.
fn run(purge: &mut Purge, rates: &[f64], seconds: f64, seed: u64) -> Vec<Flow> {
    let hasher = FlowHasher::new(seed, 9, FlowIdentity::FiveTuple);
    let mut rng = Rng::new(seed);
    let mut flows = vec![Flow::default(); rates.len()];
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (flow, rate) in rates.iter().enumerate() {
        let phase = rng.unit_f64();
        let times = (0..).map(|n| (f64::from(n) + phase) / rate).take_while(|at| *at < seconds);
        arrivals.extend(times.map(|at| ((at * 1e9) as u64, flow)));
    }
    arrivals.sort_unstable();
    for (at_ns, flow) in arrivals {
        let hash = hasher.hash_number(flow as u64);
        let packet = Arrival { flow: hash, bytes: PACKET_BYTES, is_markable: true };
        let fate = purge.arrive(Instant::from_nanos(at_ns), 250, packet, &mut rng);
        if at_ns as f64 > seconds * 0.5e9 {
            flows[flow].sent += 1;
            flows[flow].dropped += u64::from(fate == Fate::Drop);
        }
    }
    flows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A flow that keeps to 1.15 of C/N is never cut at any load of the others.
    #[test]
    fn a_flow_within_its_share_is_never_cut(
        others in vec(0.01f64..20.0, 1..60),
        within in 0.05f64..1.15,
        seed in any::<u64>(),
    ) {
        let count = others.len() as f64 + 1.0;
        let share = LINK_BITS_PER_S as f64 / 8.0 / f64::from(PACKET_BYTES) / count;
        let mut rates: Vec<f64> = others.iter().map(|part| part * share).collect();
        rates.push(within * share);
        let flows = run(&mut purge(), &rates, 12.0, seed);
        for (flow, rate) in flows.iter().zip(&rates) {
            // Slow ones are seen in some windows only; then the share is larger, not smaller.
            if rate / share <= TOLERANCE {
                prop_assert_eq!(flow.dropped, 0, "at {} of its share", rate / share);
            }
        }
    }

    /// A flow far over its share gets the share.
    #[test]
    fn a_flow_over_its_share_is_cut_to_it(times in 2.0f64..40.0, others in 3usize..60, seed in any::<u64>()) {
        let share = LINK_BITS_PER_S as f64 / 8.0 / f64::from(PACKET_BYTES) / (others as f64 + 1.0);
        let mut rates = vec![share; others];
        rates.push(times * share);
        let flows = run(&mut purge(), &rates, 40.0, seed);
        let heavy = flows[others];
        let got = (heavy.sent - heavy.dropped) as f64 / 20.0;
        // Draws of single packets: five standard deviations.
        let slack = 0.06 + 5.0 / (20.0 * share).sqrt();
        prop_assert!((got / share - 1.0).abs() < slack, "{} of its share, sent {}", got / share, times);
    }

    /// Price, probabilities and shares stay in their ranges with any clock, queue and sizes.
    #[test]
    fn any_clock_and_any_queue_keep_all_numbers_in_range(
        steps in vec((0u64..u64::MAX, 0usize..5_000, 0u64..20, 0u32..70_000, any::<bool>()), 1..300),
    ) {
        let mut purge = purge();
        let mut rng = Rng::new(1);
        let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
        for (at, queue, flow, bytes, is_markable) in steps {
            let now = Instant::from_nanos(at);
            let packet = Arrival { flow: hasher.hash_number(flow), bytes, is_markable };
            purge.arrive(now, queue, packet, &mut rng);
            purge.depart(now, queue, is_markable, &mut rng);
            prop_assert!(purge.price() >= 0.0 && purge.price() <= 4_608.0, "{}", purge.price());
            prop_assert!(purge.active_flows().is_finite() && purge.active_flows() >= 0.0);
            prop_assert!(purge.share_bytes_per_s() > 0.0);
            prop_assert!(purge.share_bytes_per_s() <= LINK_BITS_PER_S as f64 / 8.0);
            for flow in purge.heavy_flows().iter() {
                prop_assert!((0.0..1.0).contains(&flow.drop_probability), "{}", flow.drop_probability);
            }
        }
    }

    /// The table never reports more of a flow than the flow sent, and never loses one with over an eighth of
    /// its set.
    #[test]
    fn the_cache_of_heavy_flows_is_honest(flows in vec(0u64..60, 1..3_000), key in any::<u64>()) {
        let hasher = FlowHasher::new(key, 1, FlowIdentity::FiveTuple);
        let mut table = HeavyFlows::new(8);
        let mut truth = std::collections::HashMap::<u64, u64>::new();
        for flow in flows {
            let hash = hasher.hash_number(flow);
            table.record(hash, 10);
            *truth.entry(hash).or_default() += 10;
        }
        let total: u64 = truth.values().sum();
        let found: std::collections::HashMap<u64, u64> =
            table.iter().map(|flow| (flow.flow, flow.bytes)).collect();
        for (flow, bytes) in &found {
            prop_assert!(*bytes <= truth[flow]);
        }
        for (flow, bytes) in &truth {
            prop_assert!(*bytes <= total / 8 || found.contains_key(flow), "{} bytes lost", bytes);
        }
    }
}

#[test]
fn no_flow_and_one_flow_are_never_policed() {
    let mut purge = purge();
    purge.depart(Instant::from_secs(10), 0, true, &mut Rng::new(1));
    assert_eq!((purge.active_flows(), purge.share_bytes_per_s()), (0.0, 1_250_000.0));
    // A single flow at ten times the link: the buffer drops, not Purge.
    let flows = run(&mut purge, &[12_500.0], 15.0, 1);
    assert_eq!((purge.active_flows(), flows[0].dropped), (1.0, 0));
}

#[test]
fn a_window_without_samples_and_a_jump_of_the_clock_start_afresh() {
    let mut purge = purge();
    run(&mut purge, &[5_000.0, 100.0], 10.0, 1);
    assert!(purge.heavy_flows().iter().any(|flow| flow.drop_probability > 0.8));
    // Eleven years of silence: one period ends, and nothing is left of the flood.
    purge.depart(Instant::from_secs(350_000_000), 0, true, &mut Rng::new(1));
    assert_eq!((purge.active_flows(), purge.price()), (0.0, 0.0));
    assert!(purge.heavy_flows().iter().all(|flow| flow.drop_probability == 0.0 && flow.bytes == 0));
    // A clock that was set back changes nothing.
    purge.depart(Instant::from_secs(5), 0, true, &mut Rng::new(1));
    assert_eq!((purge.active_flows(), purge.price()), (0.0, 0.0));
}

/// P-10: nothing about the queue is asked before a flow is cut.
#[test]
fn a_flood_is_cut_though_the_queue_stays_empty() {
    let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let (mut purge, mut rng) = (purge(), Rng::new(1));
    let mut dropped = 0;
    for n in 0..20_000_u64 {
        let now = Instant::from_nanos(n * 200_000);
        let flow = if n % 4 == 0 { 1 + n / 4 % 9 } else { 0 };
        let packet = Arrival { flow: hasher.hash_number(flow), bytes: 1_000, is_markable: true };
        dropped += u64::from(purge.arrive(now, 0, packet, &mut rng) == Fate::Drop && n > 10_000);
    }
    // 3750 packets a second of a share of 125.
    assert!(dropped > 7_000, "{dropped} of 7500");
}

/// Goal: unused shares are not wasted. Method: of ten flows one wants half of the link and the others
/// hardly anything.
#[test]
fn a_flow_may_use_what_others_leave() {
    let rates = [vec![600.0], vec![2.0; 9]].concat();
    let mut purge = purge();
    let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let mut rng = Rng::new(1);
    let mut last = [0_u64; 2];
    for tick in 0..60_000_u64 {
        let now = Instant::from_millis(tick);
        for (flow, rate) in rates.iter().enumerate() {
            if rng.unit_f64() < rate / 1_000.0 {
                let hash = hasher.hash_number(flow as u64);
                let packet = Arrival { flow: hash, bytes: 1_000, is_markable: true };
                let fate = purge.arrive(now, 0, packet, &mut rng);
                if flow == 0 && tick > 50_000 {
                    last[usize::from(fate == Fate::Drop)] += 1;
                }
            }
        }
    }
    assert!(last[1] * 50 < last[0], "{last:?} kept and dropped");
}

/// P-1: with 2000 slow flows one packet is several times the share of a second; none of them is cut for it.
#[test]
fn a_single_packet_proves_nothing() {
    let mut purge = purge();
    let flows = run(&mut purge, &vec![0.625; 2_000], 30.0, 3);
    let dropped: u64 = flows.iter().map(|flow| flow.dropped).sum();
    assert_eq!(dropped, 0);
    assert!((purge.active_flows() / 2_000.0 - 1.0).abs() < 0.05, "{}", purge.active_flows());
}

/// Hash flooding: flows chosen to share one set of the cache under a guessed key do not push a heavy flow out
/// under the true one.
#[test]
fn chosen_keys_do_not_hide_a_heavy_flow() {
    let guess = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let heavy = 4_242;
    let set = |hash: u64| hash & 511;
    let chosen: Vec<u64> = (10_000..)
        .filter(|&flow| set(guess.hash_number(flow)) == set(guess.hash_number(heavy)))
        .take(64)
        .collect();
    let bytes_of_heavy = |hasher: FlowHasher| {
        let mut table = HeavyFlows::new(4_096);
        for n in 0..20_000 {
            let flow = if n % 20 == 0 { heavy } else { chosen[n % 64] };
            table.record(hasher.hash_number(flow), 1_000);
        }
        table.iter().find(|flow| flow.flow == hasher.hash_number(heavy)).map_or(0, |flow| flow.bytes)
    };
    assert!(bytes_of_heavy(guess) < 100_000);
    for key in 100..120 {
        assert_eq!(bytes_of_heavy(FlowHasher::new(key, 2, FlowIdentity::FiveTuple)), 1_000_000, "key {key}");
    }
}

/// Memory is flat: nothing is allocated for ten million distinct flows, and the heavy one is still known.
#[test]
fn ten_million_flows_allocate_nothing() {
    let (mut purge, mut rng) = (purge(), Rng::new(1));
    let heavy = rng.next_u64();
    let counted = allocation_counter::measure(|| {
        for n in 0..10_000_000_u64 {
            let flow = if n % 10 == 0 { heavy } else { rng.next_u64() };
            let packet = Arrival { flow, bytes: 1_000, is_markable: true };
            purge.arrive(Instant::from_nanos(n * 1_000), 100, packet, &mut rng);
            if n % 16 == 0 {
                purge.depart(Instant::from_nanos(n * 1_000), 100, true, &mut rng);
            }
        }
    });
    assert_eq!(counted.count_total, 0);
    let cut = purge.heavy_flows().iter().find(|flow| flow.flow == heavy).map(|flow| flow.drop_probability);
    assert!(cut.is_some_and(|cut| cut > 0.99), "{cut:?}");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let usual = PurgeSettings::over(Rem::default());
    let error = |settings: PurgeSettings| settings.check().unwrap_err().to_string();
    assert_eq!(usual.check(), Ok(()));
    let no_target = PurgeSettings::over(Rem { target_packets: 0.0, ..Rem::default() });
    assert_eq!(error(no_target), "Purge target_packets is 0; expected above 0");
    let no_flows = PurgeSettings { cached_flows: 0, ..usual };
    assert_eq!(error(no_flows), "Purge cached_flows is 0; expected 1 to 65536");
    let hasty = PurgeSettings { averaging: Duration::from_millis(100), ..usual };
    assert_eq!(error(hasty), "Purge averaging is 0.1; expected at least one period");
    let wrong_price = PurgeSettings::over(Rem { phi: 1.0, ..Rem::default() });
    assert_eq!(error(wrong_price), "REM phi is 1; expected above 1");
}

/// Goal: counting elsewhere and deciding here gives what counting here gives. Method: the same packets to
/// one that sees each, and to one that gets periods of a quarter of a second.
#[test]
fn periods_counted_elsewhere_cut_the_same_flows() {
    let settings = PurgeSettings::of_link(10_000_000, Duration::from_millis(100));
    settings.check().expect("settings of a link");
    let [mut whole, mut counted] = [Purge::new(&settings, 10_000_000), Purge::new(&settings, 10_000_000)];
    let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let mut rng = Rng::new(3);
    let mut bytes_of = std::collections::BTreeMap::<u64, u64>::new();
    let mut sketch = crate::MinSketch::new();
    for n in 0..20_000_u64 {
        let now = Instant::from_nanos(n * 500_000);
        let flow = hasher.hash_number(if n % 2 == 0 { 0 } else { 1 + n / 2 % 9 });
        whole.arrive(now, 84, Arrival { flow, bytes: 1_000, is_markable: true }, &mut rng);
        *bytes_of.entry(flow).or_default() += 1_000;
        sketch.insert(flow);
        if n % 500 == 499 {
            let flows: Vec<_> = std::mem::take(&mut bytes_of).into_iter().collect();
            let period = CountedPeriod {
                sketches: &[sketch.residues()],
                flows: &flows,
                queued_packets: 300,
                queue_packets: 84,
            };
            counted.take_period(now, &period);
            sketch.clear();
        }
    }
    assert_eq!((whole.active_flows(), counted.active_flows()), (10.0, 10.0));
    let cut = |purge: &Purge| {
        let cut: Vec<_> = purge.heavy_flows().iter().filter(|flow| flow.drop_probability > 0.0).collect();
        assert_eq!(cut.len(), 1, "{cut:?}");
        assert_eq!(cut[0].flow, hasher.hash_number(0));
        cut[0].drop_probability
    };
    // 8 Mb/s are cut to the share.
    let share = |purge: &Purge| purge.share_bytes_per_s() / 1_000_000.0;
    assert!((cut(&whole) - (1.0 - share(&whole))).abs() < 0.02, "{} {}", cut(&whole), share(&whole));
    assert!((cut(&counted) - (1.0 - share(&counted))).abs() < 0.02, "{} {}", cut(&counted), share(&counted));
}
