//! Sequences that once went wrong, by name.

use flashweir_admission::flash_crowd::{self, CeilingPriority, Limit};
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, Asking, OriginReport, Permit, Pipeline, Released, RequestOutcome, ServiceKey,
    ServiceSettings, SharedByWorkers, StageName, Ticket,
};
use flashweir_admission::sentry::{Common, Plan, Policy, SentryPlanner};
use flashweir_core::{Duration, Instant, Rate, Reason};
use std::sync::Arc;

const NOW: Instant = Instant::from_secs(1_000);

/// One slot at the origin, one place in the queue.
fn add_service(pipeline: &mut Pipeline<u64>) -> ServiceKey {
    let policy = Policy::single(Duration::from_secs(1));
    let mut plan: Plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (1, 1, 1);
    let common = Arc::new(Common::new(1));
    let sentry = Some((&common, &policy, &plan, false));
    pipeline.add_service(ServiceSettings { sentry, upstream_capacity: 9 })
}

fn request(service: ServiceKey) -> AdmissionRequest {
    AdmissionRequest {
        service,
        class: 0,
        ceiling_priority: CeilingPriority::LAST,
        client_key: 1,
        url_class: 1,
        host_key: 1,
        person_key: 1,
        candidate: None,
        is_beyond_sender_share: false,
        deadline: None,
        closed: None,
        signs: Default::default(),
        asking: Asking::First,
    }
}

/// A service with a request at the origin and one that waits.
fn busy(pipeline: &mut Pipeline<u64>) -> (ServiceKey, Permit, Ticket) {
    let key = add_service(pipeline);
    let Arrival::Admitted(permit, _) = pipeline.arrive(NOW, request(key), 1) else {
        panic!("a slot is free")
    };
    let Arrival::Queued(ticket, None) = pipeline.arrive(NOW, request(key), 2) else { panic!("none is free") };
    (key, permit, ticket)
}

/// A reload that came after a service had gone gave its place to the next one: the old key named the new
/// service, and an old ticket the request that waited there.
#[test]
fn keys_and_tickets_of_a_service_that_is_gone_find_none_though_its_place_is_used_again() {
    let completed = RequestOutcome::Completed(OriginReport::default());
    let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
    let (old, permit, old_ticket) = busy(&mut pipeline);
    pipeline.retire_service(old);
    pipeline.finish(NOW, permit, completed);
    let Some(Released::Admitted(2, permit, _)) = pipeline.next(NOW, old) else { panic!("its turn") };
    pipeline.finish(NOW, permit, completed);
    assert!(!pipeline.has_service(old));

    let (new, permit, ticket) = busy(&mut pipeline);
    assert_eq!(pipeline.leave(NOW, old_ticket), None);
    pipeline.retire_service(old);
    pipeline.set_upstream_capacity(old, 0);
    assert!(!pipeline.has_service(old) && pipeline.service_ledger(old).is_none());
    assert_eq!(pipeline.leave(NOW, ticket), Some(2));
    pipeline.finish(NOW, permit, completed);
    assert!(
        pipeline.has_service(new) && matches!(pipeline.arrive(NOW, request(new), 3), Arrival::Admitted(..))
    );
}

/// A class's guarantee raised its requests' priority under a ceiling even where the sentry only recorded.
#[test]
fn what_a_sentry_in_shadow_guarantees_does_not_raise_a_request_under_a_ceiling() {
    let is_admitted = |sentry_is_shadow: Option<bool>| {
        let mut policy = Policy::single(Duration::from_secs(1));
        policy.classes[0].guaranteed_rate = Rate::from_per_second(10.0);
        let plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        let common = Arc::new(Common::new(1));
        let sentry = sentry_is_shadow.map(|is_shadow| (&common, &policy, &plan, is_shadow));
        let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
        let key = pipeline.add_service(ServiceSettings { sentry, upstream_capacity: 9 });
        let limit = Limit::All(Rate::from_per_second(0.001));
        pipeline.apply_flash_crowd(NOW, &flash_crowd::Plan { epoch: 1, limit, ..flash_crowd::Plan::open(1) });
        matches!(pipeline.arrive(NOW, request(key), 1), Arrival::Admitted(..))
    };
    assert_eq!([None, Some(true), Some(false)].map(is_admitted), [false, false, true]);
}

/// The last request of a retired service gave its slot back at one worker, and the request that waited for it
/// at another worker heard nothing of it.
#[test]
fn the_slot_of_a_retired_services_last_request_goes_to_another_worker() {
    let policy = Policy::single(Duration::from_secs(1));
    let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    (plan.limit, plan.classes[0].limit) = (1, 1);
    let (common, shared) = (Arc::new(Common::new(2)), SharedByWorkers::default());
    let settings =
        || ServiceSettings { sentry: Some((&common, &policy, &plan, false)), upstream_capacity: 9 };
    let mut pipelines = [0, 1].map(|worker| Pipeline::new(worker, &shared));
    let keys = [0, 1].map(|worker: usize| pipelines[worker].add_service(settings()));
    let Arrival::Admitted(permit, _) = pipelines[0].arrive(NOW, request(keys[0]), 1) else {
        panic!("a slot")
    };
    assert!(matches!(pipelines[1].arrive(NOW, request(keys[1]), 2), Arrival::Queued(_, None)));
    (0..2).for_each(|worker| pipelines[worker].retire_service(keys[worker]));
    pipelines[0].finish(NOW, permit, RequestOutcome::Completed(OriginReport::default()));
    assert!(pipelines[0].next(NOW, keys[0]).is_none() && !pipelines[0].has_service(keys[0]));
    assert_eq!(pipelines[0].who_waits(keys[0]), Some(1));
    let Some(Released::Admitted(2, permit, _)) = pipelines[1].next(NOW, keys[1]) else { panic!("its turn") };
    pipelines[1].finish(NOW, permit, RequestOutcome::Completed(OriginReport::default()));
    assert_eq!(pipelines[1].who_waits(keys[1]), None);
}

/// A request whose caller can use no answer any more was sent to the origin all the same.
#[test]
fn a_request_that_is_too_late_is_refused_at_its_arrival_before_it_waits_and_at_its_turn() {
    let with_deadline = |key, deadline| AdmissionRequest { deadline: Some(deadline), ..request(key) };
    let completed = RequestOutcome::Completed(OriginReport::default());
    let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
    let (key, permit, ticket) = busy(&mut pipeline);
    let first = key;
    let is_late = |arrival: &Arrival<u64>| matches!(arrival, Arrival::Refused(refusal) if refusal.shed.reason == Reason::CallerDeadline);
    assert!(is_late(&pipeline.arrive(NOW, with_deadline(key, NOW), 3)), "at its arrival");
    // The oldest has waited for 200 ms, so this one waits for 100 ms at least.
    let later = NOW + Duration::from_millis(200);
    let soon = later + Duration::from_millis(100);
    assert!(is_late(&pipeline.arrive(later, with_deadline(key, soon), 4)), "before it waits");
    let in_time = with_deadline(key, soon + Duration::from_millis(100));
    assert_eq!(pipeline.leave(later, ticket), Some(2));
    let Arrival::Queued(other, None) = pipeline.arrive(later, in_time, 5) else { panic!("it has time") };
    // The deadline is over when its turn comes, and the slot stays free for others.
    let over = soon + Duration::from_millis(100);
    pipeline.finish(over, permit, completed);
    let Some(Released::Refused(5, refusal)) = pipeline.next(over, key) else { panic!("it is too late") };
    assert_eq!((refusal.stage, refusal.shed.reason), (StageName::Bounds, Reason::CallerDeadline));
    assert!(pipeline.expire(over, other).is_none(), "it waits no more");
    assert!(pipeline.next(over, key).is_none(), "none waits");
    let Arrival::Admitted(permit, None) = pipeline.arrive(over, request(key), 6) else {
        panic!("a slot is free")
    };
    pipeline.finish(over, permit, completed);
    // In the queue it is refused when its time is over, without a turn.
    let (key, permit, ticket) = busy(&mut pipeline);
    assert_eq!(pipeline.leave(NOW, ticket), Some(2));
    let Arrival::Queued(ticket, None) = pipeline.arrive(NOW, with_deadline(key, over), 7) else {
        panic!("it waits")
    };
    let expired = pipeline.expire(over, ticket).expect("it waits");
    assert_eq!((expired.0, expired.1.shed.reason), (7, Reason::CallerDeadline));
    assert!(pipeline.expire(over, ticket).is_none());
    pipeline.finish(over, permit, completed);
    assert_eq!(pipeline.waiting(key), 0);
    let key = first;
    let ledger = pipeline.service_ledger(key).expect("it is there");
    assert_eq!((ledger.offered, ledger.shed(), ledger.in_flight()), (6, 3, 0));
}
