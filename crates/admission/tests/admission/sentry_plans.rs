//! Goal: for any reports of gates and any policy, the plan is one that gates can follow. Method: random
//! policies and samples.

use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{
    ClassCounts, ClassPolicy, LadderStep, LongRequests, Plan, Policing, Policy, Published, PublishedRule,
    Sample, SentryPlanner, UrlSum,
};
use flashweir_core::limits::{CLASSES, REQUESTS_HELD, SENTRY_IN_FLIGHT};
use flashweir_core::{Duration, Instant, Rate};
use flashweir_limit::{CLASSES_MAX, Row};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn policing() -> impl Strategy<Value = Policing> {
    let rule = prop_oneof![
        any::<bool>()
            .prop_map(|is_whole| PublishedRule::Batch { delay_step: Duration::from_millis(50), is_whole }),
        any::<bool>().prop_map(|is_capped| PublishedRule::Threshold {
            period: Duration::from_secs(1),
            newest_milli: 700,
            utilisation_milli: 950,
            is_capped
        }),
        (0u32..5).prop_map(|step| PublishedRule::Reservation { step }),
    ];
    let published =
        (rule, 0u32..5, 0u64..100_000, 0u32..6_000).prop_map(|(rule, servers, us, quantile_milli)| {
            Policing::Published(Published {
                rule,
                servers,
                service_time: Duration::from_micros(us),
                quantile_milli,
            })
        });
    prop_oneof![
        2 => Just(Policing::Reservation), 2 => Just(Policing::Batch), 2 => Just(Policing::Threshold),
        2 => Just(Policing::Auto), 1 => published,
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let class = (
        1u32..5,
        prop_oneof![Just(0.0), 0.0f64..1e6],
        proptest::option::of(0u64..5_000),
        proptest::option::of(0u32..50_000),
    );
    let class = class.prop_map(|(revenue, rate, target_ms, queue)| ClassPolicy {
        revenue: f64::from(revenue),
        guaranteed_rate: Rate::from_per_second(rate),
        target: target_ms.map(Duration::from_millis),
        queue,
    });
    (vec(class, 1..=CLASSES), policing(), any::<bool>()).prop_map(|(classes, policing, has_ladder)| {
        let step = |below_rps, secs| LadderStep { below_rps, target: Duration::from_secs(secs) };
        let ladder = if has_ladder { vec![step(50.0, 1), step(f64::INFINITY, 3)] } else { Vec::new() };
        Policy { classes, policing, ladder, ..Policy::single(Duration::from_secs(1)) }
    })
}

/// By class: offered, of them admitted and completed; the time each took, and the number in flight.
type Tick = (Vec<(u64, u64)>, u64, u64, u64);

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let classes = vec((0u64..500, 0u64..500), CLASSES);
    vec((classes, 0u64..3_000_000, 0u64..500, prop_oneof![Just(20u64), Just(0), 1u64..3_000]), 1..60)
}

fn sample(from: Instant, to: Instant, classes: usize, tick: &Tick) -> Sample {
    let (counts, service_us, in_flight, gap_ms) = tick;
    let mut sample =
        Sample { from, to, in_flight_nanos: in_flight * gap_ms * 1_000_000, ..Sample::default() };
    for (index, &(offered, completed)) in counts.iter().take(classes).enumerate() {
        let counts = ClassCounts {
            offered,
            admitted: completed.min(offered),
            shed: offered.saturating_sub(completed),
            completed,
            service_us: service_us * completed,
            oldest_held_us: *service_us,
            held: (offered / 2) as u32,
            ..ClassCounts::default()
        };
        sample.offered += offered;
        sample.shed += counts.shed;
        sample.completed += completed;
        sample.classes.push(counts);
        sample.latency_us.record_many(*service_us, completed);
        if completed > 0 {
            let latency_us = service_us * completed;
            sample.urls.push(UrlSum {
                url_class: index as u16,
                count: completed as u32,
                latency_us,
                latency_us_squared: service_us.saturating_pow(2).saturating_mul(completed),
                shared_us: latency_us / 2,
                ..UrlSum::default()
            });
        }
        // Any times, of classes without number, as another gateway might send.
        sample.rows.push(Row {
            class: (index as u32).wrapping_mul(offered as u32),
            bin: (service_us >> (index % 8)) as u8,
            completed: completed as u32,
            left: if offered % 7 == 0 { u32::MAX } else { 0 },
            in_flight: (*in_flight as u32).wrapping_mul(offered as u32),
        });
    }
    sample
}

fn check(policy: &Policy, plan: &Plan) -> Result<(), TestCaseError> {
    let is_published = matches!(policy.policing, Policing::Published(_));
    prop_assert!(plan.limit <= SENTRY_IN_FLIGHT && (is_published || plan.limit >= 1));
    prop_assert!(plan.long.url_classes.is_sorted() && plan.long.url_classes.len() <= CLASSES_MAX);
    prop_assert!(!is_published || plan.long == LongRequests::default());
    prop_assert!(plan.price >= 0.0 && plan.price.is_finite());
    prop_assert!((1.0..=6.0).contains(&plan.explanation.quantile_over_mean));
    prop_assert!(plan.explanation.capacity_rps.is_finite() && plan.explanation.capacity_rps >= 0.0);
    let held: u64 = plan.classes.iter().map(|class| u64::from(class.hold_len)).sum();
    // No class is left without a place, so that rounding up is allowed for.
    prop_assert!(held <= (REQUESTS_HELD + CLASSES) as u64, "{held} may wait");
    for (class, asked) in plan.classes.iter().zip(&policy.classes) {
        prop_assert!(class.limit <= plan.limit && (is_published || class.limit >= 1));
        prop_assert!(class.guaranteed_rate <= asked.guaranteed_rate);
        prop_assert!(is_published || asked.queue.is_none_or(|queue| class.hold_len <= queue.max(1)));
        prop_assert!(class.hold_for <= Duration::from_secs(25) && class.delay <= Duration::from_secs(1));
        prop_assert!((Duration::from_secs(1)..=Duration::from_secs(30)).contains(&class.retry_after));
        for (other, others) in plan.classes.iter().zip(&policy.classes) {
            let is_dearer = asked.revenue > others.revenue;
            prop_assert!(!is_dearer || class.rank < other.rank);
            // The published cap follows each class's own target.
            prop_assert!(!is_dearer || is_published || class.limit >= other.limit);
            prop_assert!(!is_dearer || class.delay <= other.delay);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn plans_can_be_followed_and_are_repeatable(policy in policy(), ticks in ticks()) {
        let run = || -> Result<Vec<Plan>, TestCaseError> {
            let mut planner = PlannerDriver::new(SentryPlanner::new(Arc::new(policy.clone())), Instant::ZERO);
            let (mut now, mut plans) = (Instant::from_secs(1), Vec::new());
            check(&policy, planner.planner().current())?;
            for (index, tick) in ticks.iter().enumerate() {
                let from = now;
                now += Duration::from_millis(tick.3);
                let deciding_milli = (index as u32 % 40) * 33;
                let sample = sample(from, now, policy.classes.len(), tick);
                planner.observe(now, &Sample { deciding_milli, ..sample });
                let plan = planner.plan(now);
                check(&policy, &plan)?;
                plans.push(plan);
            }
            Ok(plans)
        };
        prop_assert_eq!(format!("{:?}", run()?), format!("{:?}", run()?));
    }
}

/// Four servers of 20 ms each, as many requests as the limit always there, and some that wait.
fn busy(limit: u32) -> Tick {
    let completed = u64::from(limit.min(4));
    (vec![(completed + 1, completed)], u64::from(limit.max(4)) * 5_000, limit.into(), 20)
}

/// The limits that are found in five seconds of a crowd, after a crowd, ten idle seconds, and more of these
/// evaluated each `look_ms`; first the limit at the end of the idle time.
fn limits_after_idle(idle_s: u64, look_ms: u64) -> Vec<u32> {
    let mut planner = PlannerDriver::new(
        SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1)))),
        Instant::ZERO,
    );
    let mut now = Instant::from_secs(1);
    let mut look = |tick: fn(u32) -> Tick, count: u64, ms: u64| -> Vec<u32> {
        let plans = (0..count).map(|_| {
            let (from, limit) = (now, planner.planner().current().limit);
            now += Duration::from_millis(ms);
            planner.observe(now, &sample(from, now, 1, &tick(limit)));
            planner.plan(now).limit
        });
        plans.collect()
    };
    let no_load = |_| (vec![(0, 0)], 0, 0, 0);
    let _learned = look(busy, 500, 20);
    let _idle = look(no_load, 500, 20);
    let mut limits = look(no_load, idle_s * 1_000 / look_ms, look_ms)
        .split_off(idle_s as usize * 1_000 / look_ms as usize - 1);
    limits.extend(look(busy, 250, 20));
    limits
}

#[test]
fn what_was_learned_does_not_suffer_when_the_planner_rests() {
    for idle_s in [1, 7, 60] {
        let (awake, rested) = (limits_after_idle(idle_s, 20), limits_after_idle(idle_s, 1_000));
        assert_eq!(rested[0], awake[0], "after {idle_s} s");
        // The knee is at four: nothing is lost, and no more is tried than is tried anyway.
        let most = awake.iter().max();
        assert!(
            rested.iter().all(|limit| *limit >= 4 && Some(limit) <= most),
            "after {idle_s} s: {rested:?}"
        );
    }
}
