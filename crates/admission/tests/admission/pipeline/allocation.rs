//! Goal: a decision allocates nothing once queues have grown. Method: the same crowd twice; the second time
//! is counted.

use crate::pipeline::ops::SentryMode;
use flashweir_admission::flash_crowd::{self, CeilingPriority, Limit};
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, OriginReport, Permit, Pipeline, Released, RequestOutcome, ServiceKey,
    ServiceSettings, SharedByWorkers,
};
use flashweir_admission::sentry::{CandidateGate, Common, Plan, Policy, SentryPlanner, SentryRequest};
use flashweir_core::{Duration, Instant, Rate};
use std::sync::Arc;

const CROWD: u64 = 20_000;

/// One service with eight slots and sixteen places in its queue, under a ceiling that refuses some.
fn pipeline(mode: SentryMode, has_candidate: bool) -> (Pipeline<u64>, ServiceKey) {
    let policy = Policy::single(Duration::from_secs(1));
    let mut plan: Plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (8, 8, 16);
    let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
    let common = Arc::new(Common::new(1));
    let sentry = (mode != SentryMode::Off).then_some((&common, &policy, &plan, mode == SentryMode::Shadow));
    let key = pipeline.add_service(ServiceSettings { sentry, upstream_capacity: 100 });
    if has_candidate {
        pipeline.set_candidate(key, Some(CandidateGate::new(Arc::new(Common::new(1)), 0, &policy, &plan)));
    }
    let limit = Limit::All(Rate::from_per_second(500.0));
    let ceiling = flash_crowd::Plan { epoch: 1, limit, ..flash_crowd::Plan::open(1) };
    pipeline.apply_flash_crowd(Instant::ZERO, &ceiling);
    if has_candidate {
        let other = Limit::All(Rate::from_per_second(400.0));
        let other = flash_crowd::Plan { limit: other, ..ceiling };
        pipeline.set_flash_crowd_candidate(Instant::ZERO, Some(&other));
    }
    (pipeline, key)
}

/// A request each millisecond, by one of a hundred clients; `permits` has room for all that are admitted.
fn crowd(
    pipeline: &mut Pipeline<u64>,
    key: ServiceKey,
    from: Instant,
    permits: &mut Vec<Permit>,
) -> [u64; 3] {
    let [mut admitted, mut queued, mut refused] = [0; 3];
    for n in 0..CROWD {
        let now = from + Duration::from_millis(n);
        let (client_key, url_class) = ((n % 100) << 40, (n % 7) as u32);
        let request = AdmissionRequest {
            service: key,
            class: 0,
            ceiling_priority: CeilingPriority::LAST,
            client_key,
            url_class,
            host_key: n % 200,
            person_key: client_key | (n % 100),
            candidate: Some(SentryRequest { class: 0, url_class, client_key, ..SentryRequest::default() }),
            is_beyond_sender_share: false,
            deadline: None,
            closed: None,
            signs: Default::default(),
            asking: Default::default(),
        };
        match pipeline.arrive(now, request, n) {
            Arrival::Admitted(permit, _) => {
                admitted += 1;
                permits.push(permit);
            }
            Arrival::Queued(..) => queued += 1,
            Arrival::Refused(_) => refused += 1,
        }
        if n % 3 == 0
            && let Some(permit) = permits.pop()
        {
            pipeline.finish(now, permit, RequestOutcome::Completed(OriginReport::default()));
        }
        while let Some(released) = pipeline.next(now, key) {
            match released {
                Released::Admitted(_, permit, _) => {
                    admitted += 1;
                    permits.push(permit);
                }
                Released::Refused(..) => refused += 1,
            }
        }
    }
    [admitted, queued, refused]
}

#[test]
fn a_decision_allocates_nothing_once_queues_have_grown() {
    for mode in [SentryMode::Off, SentryMode::Shadow, SentryMode::Live] {
        for has_candidate in [false, true] {
            let (mut pipeline, key) = pipeline(mode, has_candidate);
            let mut permits = Vec::with_capacity(2 * CROWD as usize);
            // Twice: only the second finds clients that are over their share from its beginning.
            crowd(&mut pipeline, key, Instant::from_secs(1), &mut permits);
            let before = crowd(&mut pipeline, key, Instant::from_secs(30), &mut permits);
            let mut after = [0; 3];
            let counted = allocation_counter::measure(|| {
                after = crowd(&mut pipeline, key, Instant::from_secs(60), &mut permits);
            });
            let case = format!("{mode:?}, a candidate: {has_candidate}: {before:?}, then {after:?}");
            assert_eq!(counted.count_total, 0, "{case}");
            assert!(after[0] > 0 && after[2] > 0 && (after[1] > 0 || mode != SentryMode::Live), "{case}");
        }
    }
}
