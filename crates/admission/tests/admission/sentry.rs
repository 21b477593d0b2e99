//! Goal: what the sentry's gate and planner promise, for any input. Method: random operations, time
//! included, against the real ones, with a count of our own beside them.

use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{
    Arrived, ClassPlan, Common, Ending, Permit, Plan, Policy, Released, Sample, SentryGate, SentryPlanner,
    SentryRequest, Ticket, UrlSum,
};
use flashweir_core::limits::{REQUESTS_HELD, SENTRY_IN_FLIGHT};
use flashweir_core::{Duration, Instant, Reason, Shed};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const TARGET: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Step {
    Arrive,
    End(usize),
    Leave(usize),
    Wait(u64),
    Limit(u32, u32, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Arrive),
        3 => (0usize..100).prop_map(Step::End),
        1 => (0usize..100).prop_map(Step::Leave),
        2 => (0u64..400).prop_map(Step::Wait),
        1 => (1u32..20, 0u32..30, 1u64..1_000).prop_map(|(limit, len, ms)| Step::Limit(limit, len, ms)),
    ];
    vec(step, 1..300)
}

fn plan(epoch: u64, limit: u32, hold_len: u32, hold_ms: u64) -> Plan {
    let mut plan = SentryPlanner::new(Arc::new(Policy::single(TARGET))).current().clone();
    let hold_for = Duration::from_millis(hold_ms);
    plan.classes[0] =
        ClassPlan { limit, hold_len, hold_for, newest_first_after: hold_for / 2, ..plan.classes[0] };
    Plan { epoch, limit, ..plan }
}

fn gate<T>(plan: &Plan) -> SentryGate<T> {
    SentryGate::new(Arc::new(Common::new(1)), 0, &Policy::single(TARGET), plan)
}

const ANSWERED: Ending = Ending { completed: true, withdrawn: false, measured_us: None };

/// Everybody's whereabouts, kept beside the gate.
#[derive(Default)]
struct Ledger {
    in_flight: Vec<Permit>,
    held: BTreeMap<u64, (Instant, Ticket)>,
    decided: u64,
}

impl Ledger {
    fn release(
        &mut self,
        gate: &mut SentryGate<u64>,
        now: Instant,
        plan: &Plan,
    ) -> Result<(), TestCaseError> {
        while let Some(released) = gate.next(now) {
            self.decided += 1;
            match released {
                Released::Admit(request, permit) => {
                    let (since, _) = self.held.remove(&request).expect("it was held");
                    prop_assert!(
                        now.saturating_since(since) < plan.classes[0].hold_for,
                        "expired, and admitted"
                    );
                    self.in_flight.push(permit);
                    prop_assert!(self.in_flight.len() <= plan.limit as usize);
                }
                Released::Shed(request, _) => {
                    let (since, _) = self.held.remove(&request).expect("it was held");
                    prop_assert!(
                        now.saturating_since(since) >= plan.classes[0].hold_for,
                        "refused before its time"
                    );
                }
            }
        }
        Ok(())
    }
}

proptest! {
    /// Bounds hold, no request is lost, none waits while there is room, and none beyond its time.
    #[test]
    fn the_gate_keeps_its_bounds_and_loses_nobody(steps in steps()) {
        let mut plan = plan(1, 5, 10, 500);
        let mut gate = gate(&plan);
        let mut ledger = Ledger::default();
        let (mut now, mut requests, mut left) = (Instant::from_secs(1), 0u64, 0u64);
        for (epoch, step) in steps.into_iter().enumerate() {
            match step {
                Step::Arrive => {
                    requests += 1;
                    let was_free = gate.held() == 0 && gate.in_flight() < plan.limit;
                    match gate.arrive(now, SentryRequest::default(), requests) {
                        Arrived::Admit(_, permit) => {
                            prop_assert!(was_free);
                            ledger.in_flight.push(permit);
                            ledger.decided += 1;
                        }
                        Arrived::Held(ticket) => {
                            prop_assert!(gate.held() <= plan.classes[0].hold_len as usize);
                            ledger.held.insert(requests, (now, ticket));
                        }
                        Arrived::HeldInsteadOf(ticket, displaced, _) => {
                            let (since, _) = ledger.held.remove(&displaced).expect("it was held");
                            prop_assert!(ledger.held.values().all(|(other, _)| since <= *other));
                            ledger.held.insert(requests, (now, ticket));
                            ledger.decided += 1;
                        }
                        Arrived::Shed(..) => {
                            prop_assert!(!was_free && gate.held() >= plan.classes[0].hold_len as usize, "refused with room left");
                            ledger.decided += 1;
                        }
                    }
                }
                Step::End(which) if !ledger.in_flight.is_empty() => {
                    let permit = ledger.in_flight.swap_remove(which % ledger.in_flight.len());
                    gate.end(now, permit, Ending { completed: which % 3 > 0, ..Ending::default() });
                }
                Step::Leave(which) if !ledger.held.is_empty() => {
                    let request = *ledger.held.keys().nth(which % ledger.held.len()).expect("one waits");
                    let (_, ticket) = ledger.held.remove(&request).expect("it was held");
                    prop_assert_eq!(gate.leave(now, ticket), Some(request));
                    prop_assert_eq!(gate.leave(now, ticket), None);
                    left += 1;
                }
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::Limit(limit, len, ms) => {
                    plan = self::plan(epoch as u64 + 2, limit, len, ms);
                    gate.apply(&plan);
                }
                Step::End(_) | Step::Leave(_) => {}
            }
            ledger.release(&mut gate, now, &plan)?;
            prop_assert_eq!(gate.held(), ledger.held.len());
            prop_assert_eq!(gate.in_flight() as usize, ledger.in_flight.len());
            prop_assert_eq!(requests, ledger.decided + left + ledger.held.len() as u64);
            prop_assert!(gate.held() == 0 || gate.in_flight() >= plan.limit, "a request waits and there is room");
        }
        let sample = gate.drain(now);
        prop_assert_eq!((sample.offered, sample.in_flight), (requests, gate.in_flight()));
        prop_assert_eq!(sample.age_us.count(), u64::from(gate.in_flight()));
        prop_assert_eq!(sample.latency_us.count(), sample.completed);
    }

    /// For any samples, plans are within bounds, and the same samples give the same plans.
    #[test]
    fn plans_are_bounded_and_repeatable(
        ticks in vec((0u64..5_000, 0u64..10_000, 0u64..2_000, 0u64..5_000_000, any::<bool>(), 0u64..3_000), 1..80),
    ) {
        let plans = || {
            let mut planner = PlannerDriver::new(SentryPlanner::new(Arc::new(Policy::single(TARGET))), Instant::ZERO);
            let mut now = Instant::from_secs(1);
            ticks.iter().map(|&(completed, in_flight, shed, latency_us, waits, gap_ms)| {
                let from = now;
                now += Duration::from_millis(gap_ms);
                let nanos = gap_ms * 1_000_000;
                let mut sample = Sample { from, to: now, offered: completed + shed, shed, completed, ..Sample::default() };
                sample.in_flight_nanos = nanos * in_flight;
                sample.waiting_nanos = if waits { nanos } else { 0 };
                sample.latency_us.record_many(latency_us, completed);
                sample.age_us.record_many(latency_us / 2, in_flight);
                if completed > 0 {
                    let latency_us_squared = latency_us.pow(2).saturating_mul(completed);
                    let latency_us = latency_us * completed;
                    sample.urls.push(UrlSum { url_class: 7, count: completed as u32, latency_us, latency_us_squared, ..UrlSum::default() });
                }
                planner.observe(now, &sample);
                planner.plan(now)
            }).collect::<Vec<_>>()
        };
        let first = plans();
        for plan in &first {
            prop_assert!((1..=SENTRY_IN_FLIGHT).contains(&plan.limit));
            prop_assert!(plan.classes[0].hold_len >= 1 && plan.classes[0].hold_len as usize <= REQUESTS_HELD);
            // Three times what answers take where these are late by themselves, at most 20 s; else five
            // targets at most.
            prop_assert!(plan.classes[0].hold_for > Duration::ZERO && plan.classes[0].hold_for <= Duration::from_secs(20));
            prop_assert!(plan.classes[0].retry_after >= Duration::from_secs(1) && plan.classes[0].retry_after <= Duration::from_secs(30));
        }
        prop_assert_eq!(format!("{first:?}"), format!("{:?}", plans()));
    }
}

#[test]
fn the_oldest_goes_first_until_the_queue_is_half_its_time_old() {
    let mut gate = gate(&plan(1, 1, 3, 1_000));
    let at = Instant::from_millis;
    let Arrived::Admit(_, running) = gate.arrive(at(0), SentryRequest::default(), 0) else {
        panic!("there is room")
    };
    for request in 1..=3 {
        assert!(matches!(gate.arrive(at(request * 10), SentryRequest::default(), request), Arrived::Held(_)));
    }
    assert!(matches!(gate.arrive(at(40), SentryRequest::default(), 4), Arrived::Shed(4, _)));
    gate.end(at(100), running, ANSWERED);
    let Some(Released::Admit(1, running)) = gate.next(at(100)) else { panic!("the oldest") };
    gate.end(at(600), running, ANSWERED);
    let Some(Released::Admit(3, _)) = gate.next(at(600)) else { panic!("the newest") };
    assert!(matches!(gate.arrive(at(610), SentryRequest::default(), 5), Arrived::Held(_)));
    assert!(matches!(gate.arrive(at(610), SentryRequest::default(), 6), Arrived::Held(_)));
    let Arrived::HeldInsteadOf(_, 2, _) = gate.arrive(at(620), SentryRequest::default(), 7) else {
        panic!("the oldest makes room")
    };
    assert_eq!((gate.next(at(1_000)), gate.next_wake()), (None, Some(at(1_610))));
    assert!(matches!(gate.next(at(1_610)), Some(Released::Shed(5, Shed { reason: Reason::Deadline, .. }))));
}

#[test]
fn who_goes_at_once_does_not_make_the_origin_look_broken_and_who_waited_in_vain_does() {
    let start = Instant::from_secs(1);
    let failed = |ending: Ending, after: Duration| {
        let mut gate = gate::<u64>(&plan(1, 5, 10, 500));
        let Arrived::Admit(_, permit) = gate.arrive(start, SentryRequest::default(), 1) else {
            panic!("there is room")
        };
        gate.end(start + after, permit, ending);
        gate.drain(start + after).failed
    };
    assert_eq!(failed(Ending::WITHDRAWN, TARGET), 0);
    assert_eq!(failed(Ending::WITHDRAWN, TARGET + Duration::from_millis(1)), 1);
    assert_eq!(failed(Ending::default(), Duration::ZERO), 1);
    assert_eq!(failed(ANSWERED, TARGET * 2), 0);
}
