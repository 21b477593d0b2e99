//! Goal: what was counted once is counted no second time, and what no client sent never: no limit, baseline
//! or share moves by it. Method: the same request over and over, in every way in which it can end; samples
//! and ledgers must be those of one.

use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, Asking, Permit, Pipeline, Released, RequestOutcome, ServiceKey,
    ServiceSettings, SharedByWorkers,
};
use flashweir_admission::sentry::{Common, Plan, Policy, SentryPlanner};
use flashweir_core::{Duration, Instant};
use std::sync::Arc;

const NOW: Instant = Instant::from_secs(1_000);

/// A service with one slot at the origin and one place in the queue, and its slot taken.
struct Busy {
    pipeline: Pipeline<u64>,
    key: ServiceKey,
    permit: Permit,
}

impl Busy {
    fn new() -> Self {
        let policy = Policy::single(Duration::from_secs(1));
        let mut plan: Plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (1, 1, 1);
        let common = Arc::new(Common::new(1));
        let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
        let sentry = Some((&common, &policy, &plan, false));
        let key = pipeline.add_service(ServiceSettings { sentry, upstream_capacity: 9 });
        let Arrival::Admitted(permit, _) = pipeline.arrive(NOW, request(key, Asking::First), 0) else {
            panic!("a slot is free")
        };
        Self { pipeline, key, permit }
    }

    fn arrive(&mut self, asking: Asking) -> Arrival<u64> {
        self.pipeline.arrive(NOW, request(self.key, asking), 1)
    }

    /// All that was counted since the last time.
    fn samples(&mut self) -> String {
        let flash_crowd = self.pipeline.drain_flash_crowd(NOW);
        let mut sentry = self.pipeline.drain_sentry(NOW, self.key).expect("it has one");
        // Who waits is no count.
        sentry.held = 0;
        sentry.classes.iter_mut().for_each(|class| class.held = 0);
        let fairness = self.pipeline.fairness(NOW, self.key);
        format!("{flash_crowd:?} {sentry:?} {fairness:?} {:?}", self.pipeline.ledger())
    }
}

fn request(service: ServiceKey, asking: Asking) -> AdmissionRequest {
    AdmissionRequest {
        service,
        class: 0,
        ceiling_priority: CeilingPriority::LAST,
        client_key: 1,
        url_class: 1,
        host_key: 1,
        person_key: 1 << 20,
        candidate: None,
        is_beyond_sender_share: false,
        deadline: None,
        closed: None,
        signs: Default::default(),
        asking,
    }
}

#[test]
fn a_request_that_is_refused_over_and_over_is_one_request_and_one_refusal() {
    let mut busy = Busy::new();
    let Arrival::Queued(..) = busy.arrive(Asking::First) else { panic!("there is a place to wait") };
    let Arrival::Refused(_) = busy.arrive(Asking::First) else { panic!("there is none") };
    let ledger = *busy.pipeline.ledger();
    assert_eq!((ledger.offered, ledger.unique_offered, ledger.shed()), (3, 3, 1));
    // Those who come after the others have a place of their own to wait.
    let Arrival::Queued(..) = busy.arrive(Asking::Refresh) else { panic!("there is a place") };
    busy.samples();
    let nothing = busy.samples();
    for asking in [Asking::Again, Asking::Refresh] {
        for _ in 0..50 {
            assert!(matches!(busy.arrive(asking), Arrival::Refused(_)), "{asking:?}");
        }
        assert_eq!(busy.samples(), nothing, "{asking:?}");
    }
    // Refused once: a retry, when its client asks by itself.
    let Arrival::Refused(_) = busy.arrive(Asking::First) else { panic!("there is no place") };
    assert_eq!((busy.pipeline.ledger().offered, busy.pipeline.ledger().unique_offered), (4, 3));
}

#[test]
fn what_waits_again_and_leaves_or_is_admitted_counts_as_work_alone() {
    for asking in [Asking::Again, Asking::Refresh] {
        let mut busy = Busy::new();
        busy.samples();
        let nothing = busy.samples();
        let Arrival::Queued(ticket, None) = busy.arrive(asking) else { panic!("a place to wait") };
        assert_eq!(busy.pipeline.leave(NOW, ticket), Some(1));
        assert_eq!(busy.samples(), nothing, "{asking:?}");
        let Arrival::Queued(..) = busy.arrive(asking) else { panic!("a place to wait") };
        let Busy { mut pipeline, key, permit } = busy;
        pipeline.finish(NOW, permit, RequestOutcome::Withdrawn);
        let Some(Released::Admitted(1, permit, _)) = pipeline.next(NOW, key) else { panic!("its turn") };
        let ledger = *pipeline.ledger();
        assert_eq!((ledger.offered, ledger.admitted, ledger.again, ledger.left), (1, 2, 1, 0), "{asking:?}");
        assert_eq!(pipeline.at_origin(key), 1, "it takes room like others");
        pipeline.finish(NOW, permit, RequestOutcome::Withdrawn);
        assert_eq!((pipeline.at_origin(key), pipeline.ledger().in_flight()), (0, 0));
    }
}

/// Goal: a refresh of a copy takes no client's turn. Method: it came first, and waits behind the client.
#[test]
fn a_refresh_goes_behind_what_clients_send() {
    let Busy { mut pipeline, key, permit } = Busy::new();
    assert!(matches!(pipeline.arrive(NOW, request(key, Asking::Refresh), 7), Arrival::Queued(..)));
    assert!(matches!(pipeline.arrive(NOW, request(key, Asking::First), 8), Arrival::Queued(..)));
    pipeline.finish(NOW, permit, RequestOutcome::Withdrawn);
    let mut order = Vec::new();
    for _ in 0..2 {
        let Some(Released::Admitted(who, permit, _)) = pipeline.next(NOW, key) else { panic!("a turn") };
        order.push(who);
        pipeline.finish(NOW, permit, RequestOutcome::Withdrawn);
    }
    assert_eq!(order, [8, 7]);
}
