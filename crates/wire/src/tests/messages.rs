//! Goal: every message comes back bit for bit, alone and as a change of another, and no bytes make reading
//! panic. Method: samples drained from real gates and plans of real planners over random traffic, and plans
//! with random fields.

use crate::{Message, decode, differences, encode};
use flashweir_admission::flash_crowd::{
    Baseline, Cause, CeilingPriority, Explanation, FlashCrowdPlanner, HotSpotLimit, Limit, Mode, Plan,
    Response, Rule, Sample, Settings,
};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::{Flow, PlannerDriver, sentry};
use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant, Rate, Rng};
use flashweir_limit::Row;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// Back and forth, and what is cut off or changed gives an error or another value, never a panic.
fn check<T: Message + core::fmt::Debug>(message: &T, damage: u64) {
    let bytes = encode(message);
    let back: T = decode(&bytes).expect("what was written");
    assert_eq!(differences(message, &back), [], "bit for bit");
    assert_eq!(encode(&back), bytes);
    let mut rng = Rng::new(damage);
    let end = rng.below(bytes.len() as u64) as usize;
    let error = decode::<T>(&bytes[..end]).expect_err("cut off").to_string();
    assert!(error.starts_with(T::NAME) && error.ends_with("the bytes end here (truncated?)"), "{error}");
    for _ in 0..20 {
        let mut damaged = bytes.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        damaged[at] = rng.next_u64() as u8;
        let _ = decode::<T>(&damaged);
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(
        decode::<T>(&longer).expect_err("one byte too many").to_string().ends_with("1 bytes too many follow")
    );
}

/// Samples and plans of a crowd of some ticks.
fn flash_crowd(seed: u64, ticks: u64) -> Vec<(Sample, Plan)> {
    let mut rng = Rng::new(seed);
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(Settings::default(), &Baseline::default()), Instant::ZERO);
    let slow = 1.0 + rng.below(20) as f64;
    let of_tick = (1..=ticks).map(|tick| {
        let now = Instant::from_millis(100 * tick) + Duration::from_nanos(rng.below(1_000_000));
        let (count, slow) = if tick > 50 { (200, slow) } else { (40, 1.0) };
        for _ in 0..count {
            let person_key = rng.next_u64();
            gate.arrive(now, person_key % 5, person_key, CeilingPriority::LAST);
            gate.completed();
            gate.observe_response(Response {
                started: now - Duration::from_millis(rng.below(200)),
                bytes: rng.below(100_000),
                latency_s: (rng.exponential(0.02) * slow) as f32,
                rate_bytes_per_s: (rng.below(3) == 0).then(|| rng.exponential(1e6) as f32),
                url_class: rng.below(30) as u32,
            });
        }
        let sample = gate.drain(now);
        planner.observe(now, &sample);
        let plan = planner.plan(now);
        gate.apply(now, &plan);
        (sample, plan)
    });
    of_tick.collect()
}

fn sentry_sample(rng: &mut Rng) -> sentry::Sample {
    let histogram = |rng: &mut Rng| {
        let mut histogram = Histogram::new();
        (0..rng.below(50))
            .for_each(|_| histogram.record_many(rng.next_u64() >> rng.below(64), 1 + rng.below(9)));
        histogram
    };
    let mut odd = |most: u64| (rng.next_u64() >> rng.below(64)) % (most + 1);
    let class = |odd: &mut dyn FnMut(u64) -> u64| sentry::ClassCounts {
        offered: odd(u64::MAX - 1),
        unique_offered: odd(u64::MAX - 1),
        shed_elsewhere: odd(99),
        good: odd(9),
        services: core::array::from_fn(|at| if at % 3 == 0 { odd(u32::MAX.into()) as u32 } else { 0 }),
        oldest_held_us: odd(1 << 40),
        ..sentry::ClassCounts::default()
    };
    let classes = (0..odd(16)).map(|_| class(&mut odd)).collect();
    let url = |odd: &mut dyn FnMut(u64) -> u64| sentry::UrlSum {
        url_class: odd(1_023) as u16,
        count: odd(u32::MAX.into()) as u32,
        latency_us: odd(u64::MAX - 1),
        latency_us_squared: odd(u64::MAX - 1),
        shared_us: odd(u64::MAX - 1),
        measured_count: 1 + odd(5) as u32,
        measured_us: odd(u64::MAX - 1),
    };
    let level = |odd: &mut dyn FnMut(u64) -> u64| sentry::LevelSum {
        level: odd(464) as u16,
        nanos: odd(u64::MAX - 1),
        in_flight_nanos: odd(u64::MAX - 1),
        completed: odd(99),
    };
    let row = |odd: &mut dyn FnMut(u64) -> u64| Row {
        class: odd(u32::MAX.into()) as u32,
        bin: odd(223) as u8,
        completed: odd(u32::MAX.into()) as u32,
        left: odd(9) as u32,
        in_flight: odd(u32::MAX.into()) as u32,
    };
    let rows = (0..odd(40)).map(|_| row(&mut odd)).collect();
    let long = sentry::LongCounts { in_flight: odd(u32::MAX.into()) as u32, completed: odd(u64::MAX - 1) };
    let (urls, levels) =
        ((0..odd(40)).map(|_| url(&mut odd)).collect(), (0..odd(40)).map(|_| level(&mut odd)).collect());
    let (from, offered, in_flight) = (odd(u64::MAX - 1), odd(u64::MAX - 1), odd(u32::MAX.into()) as u32);
    let flow = Flow {
        offered,
        admitted: odd(u64::MAX - 1),
        refused_by_self: odd(99),
        refused_by_earlier: odd(99),
        refused_by_later: odd(99),
    };
    let deciding_milli = odd(1_000) as u32;
    sentry::Sample {
        from: Instant::from_nanos(from),
        to: Instant::from_nanos(from),
        flow,
        offered,
        in_flight,
        deciding_milli,
        latency_us: histogram(rng),
        age_us: histogram(rng),
        classes,
        urls,
        levels,
        long,
        rows,
        ..sentry::Sample::default()
    }
}

fn explanation() -> impl Strategy<Value = Explanation> {
    let some = || prop::option::of(any::<u64>().prop_map(f64::from_bits));
    let one = || any::<u64>().prop_map(f64::from_bits);
    let words = (0..Mode::ALL.len(), 0..Cause::ALL.len(), 0..Rule::ALL.len());
    (words, [some(), some(), some(), some()], [one(), one(), one()], any::<usize>()).prop_map(
        |(
            (mode, cause, rule),
            [ceiling_rps, quality, fast_rate_bytes_per_s, fast_score],
            [margin, offered_rps, admitted_rps],
            responses,
        )| {
            Explanation {
                mode: Mode::ALL[mode],
                cause: Cause::ALL[cause],
                rule: Rule::ALL[rule],
                ceiling_rps,
                quality,
                fast_rate_bytes_per_s,
                fast_score,
                margin,
                offered_rps,
                admitted_rps,
                responses,
                ..Plan::open(1).explanation
            }
        },
    )
}

fn limit() -> impl Strategy<Value = Limit> {
    let spot = (any::<u64>(), any::<u64>())
        .prop_map(|(key, rate)| HotSpotLimit { key, rate: Rate::from_milli(rate) });
    prop_oneof![
        Just(Limit::Open),
        any::<u64>().prop_map(|rate| Limit::All(Rate::from_milli(rate))),
        vec(spot, 0..4).prop_map(Limit::HotSpots),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plans_with_any_fields_come_back(
        explanation in explanation(), limit in limit(), epoch in any::<u64>(), shares in vec(any::<u32>(), 0..256), seed in any::<u64>(),
    ) {
        let plan = Plan { epoch, limit, gate_shares_milli: shares, explanation, ..Plan::open(1) };
        check(&plan, seed);
        check(&explanation, seed);
    }

    #[test]
    fn samples_of_gates_and_plans_of_planners_come_back(seed in any::<u64>()) {
        for (sample, plan) in flash_crowd(seed, 60) {
            check(&sample, seed);
            check(&plan, seed);
        }
    }

    #[test]
    fn samples_and_plans_of_the_sentry_come_back(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let sample = sentry_sample(&mut rng);
        check(&sample, seed);
        let policy = sentry::Policy::single(Duration::from_millis(200));
        let mut planner = PlannerDriver::new(sentry::SentryPlanner::new(Arc::new(policy)), Instant::ZERO);
        let plan = planner.plan(Instant::from_millis(20));
        check(&plan, seed);
        check(&plan.explanation, seed);
    }

    #[test]
    fn garbage_is_an_error_and_no_panic(mut bytes in vec(any::<u8>(), 0..2_000), kind in 0u8..8) {
        if let [version, of, ..] = &mut bytes[..] {
            (*version, *of) = (crate::VERSION, kind);
        }
        let _ = (decode::<Sample>(&bytes), decode::<Plan>(&bytes), decode::<Explanation>(&bytes));
        let _ = (decode::<sentry::Sample>(&bytes), decode::<sentry::Plan>(&bytes), decode::<sentry::Explanation>(&bytes));
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let plan = Plan::open(2);
    let error = |bytes: &[u8]| decode::<Plan>(bytes).expect_err("no plan").to_string();
    let mut bytes = encode(&plan);
    assert_eq!(error(&[]), "flash-crowd plan: byte 0: the bytes end here (truncated?)");
    assert_eq!(
        error(&encode(&plan.explanation)),
        "flash-crowd plan: byte 2: kind 3, where flash-crowd plan is wanted"
    );
    bytes[3] = 7;
    assert_eq!(error(&bytes), "flash-crowd plan: byte 4, limit: there is no value 7");
    bytes[0] = 10;
    assert_eq!(
        error(&bytes),
        "flash-crowd plan: byte 1: version 10 of the encoding; this build reads version 9"
    );
}

/// Goal: the sizes that are stated. Method: the largest sample a gate can drain.
#[test]
fn a_sample_is_as_small_as_stated_however_many_responses() {
    let (mut gate, mut rng) = (ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default())), Rng::new(1));
    let mut sizes = Vec::new();
    for responses in [100, 1_000, 10_000, 1_000_000] {
        for _ in 0..responses {
            gate.observe_response(Response {
                started: Instant::ZERO,
                bytes: rng.next_u64() >> rng.below(64),
                latency_s: rng.exponential(1.0) as f32,
                rate_bytes_per_s: Some(rng.exponential(1e6) as f32),
                url_class: rng.next_u64() as u32,
            });
        }
        sizes.push(encode(&gate.drain(Instant::from_secs(1))).len());
    }
    println!(
        "bytes of a sample of 100, 1,000, 10,000 and 1,000,000 responses of a thousand classes: {sizes:?}"
    );
    assert!(sizes.iter().all(|&size| size < 75_000), "{sizes:?}");
}
