//! Goal: every invariant of docs/algorithms/news.md, for any input. Method: random sequences of operations,
//! time included, against the real gate, bucket and planner.

use crate::common::drained_responses;

use flashweir_admission::flash_crowd::{
    Baseline, Cause, CeilingPriority, FlashCrowdPlanner, HostCount, HotSpotLimit, Limit, Mode, Plan,
    PlannerMode, Response, Sample, Settings,
};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_admission::{Flow, PlannerDriver};
use flashweir_core::{Duration, Instant, Rate, Rng, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

const MODES: [PlannerMode; 3] = [PlannerMode::Paper, PlannerMode::Scoreboard, PlannerMode::Repaired];

/// One tick's circumstances, drawn at random: how much arrives, how it fares, how long the tick is.
#[derive(Clone, Debug)]
struct Tick {
    offered: u64,
    admitted_percent: u64,
    slowness: f64,
    gap_ms: u64,
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let tick = (0u64..3_000, 0u64..=100, 0.2f64..50.0, prop_oneof![Just(100u64), 1u64..5_000, Just(0)])
        .prop_map(|(offered, admitted_percent, slowness, gap_ms)| Tick {
            offered,
            admitted_percent,
            slowness,
            gap_ms,
        });
    vec(tick, 1..60)
}

/// Feeds the ticks to a planner; returns every plan with its time.
fn drive(mode: PlannerMode, ticks: &[Tick], reversed: bool) -> Vec<(Instant, Plan)> {
    let settings = Settings { mode, gates: 2, ..Settings::default() };
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(settings, &Baseline::default()), Instant::ZERO);
    let mut now = Instant::from_secs(1);
    let mut plans = Vec::new();
    for (n, tick) in ticks.iter().enumerate() {
        let from = now;
        now += Duration::from_millis(tick.gap_ms);
        let admitted = tick.offered * tick.admitted_percent / 100;
        let mut rng = Rng::new(n as u64);
        let mut responses: Vec<Response> = (0..admitted)
            .map(|_| Response {
                started: from,
                bytes: 1 + rng.below(200_000),
                latency_s: (0.01 * tick.slowness * (0.5 + rng.unit_f64())) as f32,
                rate_bytes_per_s: (rng.below(3) > 0).then(|| (1e6 / tick.slowness * rng.unit_f64()) as f32),
                url_class: rng.below(3) as u32,
            })
            .collect();
        if reversed {
            responses.reverse();
        }
        planner.observe(
            now,
            &Sample {
                gate: n % 2,
                from,
                to: now,
                evidence_from: from,
                flow: Flow { offered: tick.offered, admitted, ..Flow::default() },
                unique_offered: tick.offered,
                entered: admitted,
                handed_over: 0,
                completed: admitted,
                hosts: vec![
                    HostCount { key: 1, hits: tick.offered / 3 },
                    HostCount { key: 2, hits: tick.offered / 2 },
                ],
                ..drained_responses::of_responses(responses)
            },
        );
        plans.push((now, planner.plan(now)));
    }
    plans
}

fn ceilings(limit: &Limit) -> Vec<Rate> {
    match limit {
        Limit::Open => Vec::new(),
        Limit::All(rate) => vec![*rate],
        Limit::HotSpots(spots) => spots.iter().map(|spot| spot.rate).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bucket_never_admits_more_than_burst_and_rate(
        steps in vec((0u64..3_000_000_000, 0u64..2_000_000, 1u64..100), 1..300),
    ) {
        let mut now = Instant::ZERO;
        let (mut rate, mut burst) = (Rate::from_milli(5_000), 10);
        let mut bucket = TokenBucket::full(now, rate, burst);
        let mut allowance = burst as f64;
        for (gap_nanos, new_rate_milli, new_burst) in steps {
            now += Duration::from_nanos(gap_nanos);
            allowance = (allowance + rate.per_second() * gap_nanos as f64 / 1e9).min(burst as f64);
            if new_burst % 7 == 0 {
                // The rate changes mid-bucket: what was earned so far was earned at the old rate.
                (rate, burst) = (Rate::from_milli(new_rate_milli), new_burst);
                bucket.set_rate(now, rate, burst);
                allowance = allowance.min(burst as f64);
            }
            for _ in 0..3 {
                if bucket.admit(now) {
                    allowance -= 1.0;
                    prop_assert!(allowance > -1e-6, "admitted {} too many", -allowance);
                } else {
                    prop_assert!(allowance < 1.0 + 1e-6, "refused with {allowance} tokens earned");
                }
            }
            prop_assert!(bucket.whole_tokens() <= burst);
        }
    }

    #[test]
    fn bucket_earns_nothing_when_time_steps_back(times in vec(0u64..10_000_000_000, 1..200)) {
        let mut bucket = TokenBucket::full(Instant::ZERO, Rate::from_per_second(10.0), 5);
        let latest = times.iter().copied().max().unwrap_or(0);
        let admitted = times.iter().filter(|&&nanos| bucket.admit(Instant::from_nanos(nanos))).count();
        prop_assert!(admitted as f64 <= 5.0 + 10.0 * latest as f64 / 1e9 + 1e-9);
    }

    #[test]
    fn plans_are_sound_in_every_mode(ticks in ticks()) {
        for mode in MODES {
            for (_, plan) in drive(mode, &ticks, false) {
                for rate in ceilings(&plan.limit) {
                    prop_assert!(rate > Rate::ZERO, "a ceiling of nothing: {plan:?}");
                }
                prop_assert!(plan.gate_shares_milli.iter().sum::<u32>() <= 1_000);
                let explained = plan.explanation;
                prop_assert!(explained.fast_rate_bytes_per_s.is_none_or(|rate| rate >= 0.0));
                prop_assert_eq!(explained.ceiling_rps.is_some(), plan.limit != Limit::Open);
                prop_assert!(plan.retry_after >= Duration::from_secs(1));
                // Only a crowd limits (the published forms keep their ceiling for ever: flaw N-8).
                if mode == PlannerMode::Repaired && explained.mode != Mode::Normal {
                    prop_assert_eq!(explained.cause, Cause::Popular);
                }
                prop_assert!(explained.margin >= 0.10 && explained.margin <= 0.5);
            }
        }
    }

    #[test]
    fn replayed_samples_give_the_same_plans_bit_for_bit(ticks in ticks()) {
        for mode in MODES {
            prop_assert_eq!(drive(mode, &ticks, false), drive(mode, &ticks, false));
        }
    }

    #[test]
    fn the_order_of_flows_within_a_tick_does_not_change_the_aggregate(ticks in ticks()) {
        let measured = |reversed| {
            let plans = drive(PlannerMode::Paper, &ticks, reversed);
            plans.iter().map(|(_, plan)| plan.explanation.fast_rate_bytes_per_s).collect::<Vec<_>>()
        };
        for (one, other) in measured(false).iter().zip(measured(true)) {
            prop_assert_eq!(one.is_some(), other.is_some());
            if let (Some(one), Some(other)) = (*one, other) {
                prop_assert!((one - other).abs() <= 1e-9 * one.abs().max(1.0), "{one} and {other}");
            }
        }
    }

    #[test]
    fn the_alarm_changes_only_at_ticks(ticks in ticks()) {
        let settings = Settings { interval: Duration::from_secs(1), ..Settings::default() };
        let mut planner = PlannerDriver::new(FlashCrowdPlanner::new(settings, &Baseline::default()), Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut last = planner.plan(now);
        for tick in &ticks {
            now += Duration::from_millis(tick.gap_ms);
            let due = planner.next_plan_at() <= now;
            planner.observe(now, &Sample { flow: Flow { offered: tick.offered, ..Flow::default() }, ..Sample::default() });
            let plan = planner.plan(now);
            if !due {
                prop_assert_eq!(&plan, &last);
            }
            last = plan;
        }
    }

    #[test]
    fn baselines_stand_still_while_limiting(ticks in ticks()) {
        let plans = drive(PlannerMode::Repaired, &ticks, false);
        for pair in plans.windows(2) {
            let (before, after) = (&pair[0].1.explanation, &pair[1].1.explanation);
            let adopted = after.rule == flashweir_admission::flash_crowd::Rule::Rebase;
            if before.mode != Mode::Normal && after.mode != Mode::Normal && !adopted {
                prop_assert_eq!(before.fast_score_reference, after.fast_score_reference);
                prop_assert_eq!(before.fast_rate_reference, after.fast_rate_reference);
                prop_assert_eq!(before.unique_offered_reference_rps, after.unique_offered_reference_rps);
            }
        }
    }

    #[test]
    fn nothing_arriving_changes_nothing_but_by_timeout(idle_ticks in 1u64..100) {
        let busy = vec![Tick { offered: 200, admitted_percent: 100, slowness: 1.0, gap_ms: 1_000 }; 20];
        let quiet = Tick { offered: 0, admitted_percent: 0, slowness: 1.0, gap_ms: 1_000 };
        let all: Vec<Tick> = busy.iter().cloned().chain(std::iter::repeat_n(quiet, idle_ticks as usize)).collect();
        let plans = drive(PlannerMode::Repaired, &all, false);
        let (before, after) = (&plans[busy.len()].1.explanation, &plans[all.len() - 1].1.explanation);
        prop_assert_eq!(before.unique_offered_reference_rps, after.unique_offered_reference_rps);
        prop_assert_eq!(after.mode, Mode::Normal);
    }

    #[test]
    fn bystanders_are_never_refused_while_a_hot_spot_is_named(arrivals in vec((0u64..5, 0u64..50), 1..500)) {
        let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
        let spot = HotSpotLimit { key: 3, rate: Rate::from_per_second(1.0) };
        let plan = Plan { epoch: 1, limit: Limit::HotSpots(vec![spot]), ..Plan::open(1) };
        gate.apply(Instant::ZERO, &plan);
        let mut now = Instant::ZERO;
        let mut admitted = 0u64;
        for &(host_key, gap_ms) in &arrivals {
            now += Duration::from_millis(gap_ms);
            let verdict = gate.arrive(now, host_key, now.as_nanos(), CeilingPriority::LAST);
            prop_assert!(host_key == 3 || verdict == Verdict::Admit);
            admitted += u64::from(verdict == Verdict::Admit);
        }
        let sample = gate.drain(now);
        prop_assert_eq!(sample.flow.offered, arrivals.len() as u64);
        prop_assert_eq!(sample.flow.admitted, admitted);
        prop_assert!(sample.unique_offered <= sample.flow.offered);
    }

    #[test]
    fn gates_together_stay_under_the_ceiling(rate_rps in 1u64..1_000, gates in 1usize..5, seed in 0u64..1_000) {
        let attempts = Arc::new(RefusedAttempts::default());
        let plan = Plan { epoch: 1, limit: Limit::All(Rate::from_milli(rate_rps * 1_000)), ..Plan::open(gates) };
        let mut all: Vec<_> = (0..gates).map(|n| ConnectionPipeline::new(n, Arc::clone(&attempts))).collect();
        all.iter_mut().for_each(|gate| gate.apply(Instant::ZERO, &plan));
        let mut rng = Rng::new(seed);
        let mut now = Instant::ZERO;
        let mut admitted = 0u64;
        for person_key in 0..5_000 {
            now += Duration::from_micros(rng.below(2_000));
            let gate = rng.below(gates as u64) as usize;
            let verdict = all[gate].arrive(now, 1, person_key, CeilingPriority::LAST);
            admitted += u64::from(verdict == Verdict::Admit);
        }
        let burst = (rate_rps / 4).max(10) as f64 + gates as f64;
        prop_assert!(admitted as f64 <= burst + rate_rps as f64 * now.as_secs_f64() + 1.0);
    }

    #[test]
    fn the_important_go_first_under_a_ceiling_and_all_stay_under_it(
        rate_rps in 20u64..1_000, important_percent in 0u64..60, seed in 0u64..1_000,
    ) {
        let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
        gate.apply(Instant::ZERO, &Plan { epoch: 1, limit: Limit::All(Rate::from_milli(rate_rps * 1_000)), ..Plan::open(1) });
        let mut rng = Rng::new(seed);
        let mut now = Instant::ZERO;
        // The important alone ask for a part of the rate, the others for ten times it.
        let gap_us = 1_000_000 / (rate_rps * 11);
        let important_of_1100 = important_percent;
        let (mut first, mut last) = ([0u64; 2], [0u64; 2]);
        for person_key in 0..20_000u64 {
            now += Duration::from_micros(rng.below(2 * gap_us + 1));
            let is_important = rng.below(1_100) < important_of_1100;
            let (priority, counts) = if is_important { (CeilingPriority::FIRST, &mut first) } else { (CeilingPriority::LAST, &mut last) };
            let verdict = gate.arrive(now, 1, person_key, priority);
            counts[0] += 1;
            counts[1] += u64::from(verdict == Verdict::Admit);
        }
        let (burst, rate) = ((rate_rps / 4).max(10) as f64, rate_rps as f64 * now.as_secs_f64());
        prop_assert!((first[1] + last[1]) as f64 <= 2.0 * burst + rate + 1.0);
        prop_assert!((first[1] + last[1]) as f64 >= rate - burst - 1.0, "nothing of the ceiling is left unused");
        prop_assert!(first[0] - first[1] <= first[0] / 50 + 1, "of {} important {} came in", first[0], first[1]);
    }
}

#[test]
fn the_exempt_go_by_a_ceiling_and_take_nothing_of_it() {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    gate.apply(
        Instant::ZERO,
        &Plan { epoch: 1, limit: Limit::All(Rate::from_milli(1_000)), ..Plan::open(1) },
    );
    for n in 0..100 {
        assert_eq!(gate.arrive(Instant::from_millis(n), 1, n, CeilingPriority::Exempt), Verdict::Admit);
    }
    let after = Instant::from_secs(1);
    assert_eq!(gate.arrive(after, 1, 100, CeilingPriority::LAST), Verdict::Admit);
    assert!(matches!(gate.arrive(after, 1, 101, CeilingPriority::LAST), Verdict::Shed(_)));
    let sample = gate.drain(after);
    assert_eq!((sample.flow.offered, sample.flow.admitted), (102, 101));
}

#[test]
fn folds_a_persons_retries_into_one_attempt() {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    gate.apply(Instant::ZERO, &Plan { epoch: 1, limit: Limit::All(Rate::from_milli(1)), ..Plan::open(1) });
    for retry in 0..10 {
        let now = Instant::from_secs(retry);
        assert!(matches!(gate.arrive(now, 1, 42 << 32, CeilingPriority::LAST), Verdict::Shed(_)));
    }
    let sample = gate.drain(Instant::from_secs(10));
    assert_eq!((sample.flow.offered, sample.unique_offered, sample.flow.admitted), (10, 1, 0));
}

#[test]
fn the_gate_path_allocates_nothing() {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let spot = HotSpotLimit { key: 3, rate: Rate::from_per_second(100.0) };
    gate.apply(Instant::ZERO, &Plan { epoch: 1, limit: Limit::HotSpots(vec![spot]), ..Plan::open(1) });
    let response = |n: u64| Response {
        started: Instant::ZERO,
        bytes: n % 100_000,
        latency_s: (n % 7_919) as f32 / 1_000.0,
        rate_bytes_per_s: Some(n as f32),
        url_class: n as u32 % 400,
    };
    let info = allocation_counter::measure(|| {
        for n in 0..100_000u64 {
            if gate.arrive(Instant::from_nanos(n * 1_000), n % 200, n, CeilingPriority::LAST)
                == Verdict::Admit
            {
                gate.completed();
                gate.observe_response(response(n));
            }
        }
    });
    assert_eq!(info.count_total, 0, "the gate allocated {} times", info.count_total);
}
