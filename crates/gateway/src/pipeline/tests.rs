//! Admission with plans put in place by hand: ceilings, hot-spots, shadow, and what is remembered.

use super::{Admission, OfferedRequest};
use crate::context::WorkerContext;
use crate::flash_crowd_candidate::FlashCrowdCandidate;
use crate::refusal::Refusal;
use crate::services::{candidates, sentries, upstreams};
use crate::shared::{Live, Parts, Shared};
use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::flash_crowd::{Agreement, CeilingPriority, HotSpotLimit, Limit, Plan};
use flashweir_admission::pipeline::ServiceKey;
use flashweir_classify::Classified;
use flashweir_config::Config;
use flashweir_core::{DecisionId, Instant, Rate, Reason};
use flashweir_http::client::TrustedProxies;
use http::StatusCode;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A configuration with further TOML.
fn live(more: &str) -> Live {
    let toml = format!("upstream.urls = ['http://127.0.0.1:9']\n{more}");
    let config = Config::from_toml(&toml, "test.toml").expect("a valid configuration");
    let upstreams = upstreams(&config, 1, None).expect("upstreams");
    let sentries = sentries(&config, 1, None);
    let candidates = candidates(&config, 1, None);
    Live {
        flash_crowd_candidate: FlashCrowdCandidate::of(&config, 1, None),
        config,
        upstreams,
        sentries,
        candidates,
        tls: None,
        trusted_proxies: TrustedProxies::default(),
    }
}

/// A worker without clients, with further TOML.
fn worker(more: &str) -> Rc<WorkerContext> {
    let shared = Shared::new(Parts {
        live: live(more),
        workers: 1,
        listening_on: Vec::new(),
        redirecting_on: Vec::new(),
        access_lines: None,
        url_key: None,
    });
    WorkerContext::new(0, shared, mpsc::channel(1).0).0
}

fn admit(worker: &WorkerContext, now: Instant, asked: &Classified, full: Option<Reason>) -> Admission {
    worker.pipeline.admit(now, offered(worker.current().services[0], asked), full)
}

fn offered(service: ServiceKey, asked: &Classified) -> OfferedRequest {
    OfferedRequest::new(service, asked, None, RequestSigns::default(), None)
}

fn asked(host_key: u64, person: u64) -> Classified {
    // Real keys are hashes; their upper bits differ between clients, too.
    let person_key = person.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Classified {
        service: 0,
        class: 0,
        ceiling_priority: CeilingPriority::LAST,
        client_key: 0,
        candidate: None,
        host_key,
        person_key,
        url_class: 1,
        unmeasured: None,
    }
}

fn publish(worker: &WorkerContext, epoch: u64, limit: Limit) {
    worker.shared.plan.store(Arc::new(Plan { epoch, limit, ..Plan::open(1) }));
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn refused(admission: Admission) -> Refusal {
    match admission {
        Admission::Refused(refusal) => refusal,
        Admission::Admitted(_) | Admission::Waits(_) => panic!("not refused"),
    }
}

fn is_admitted(admission: Admission) -> bool {
    matches!(admission, Admission::Admitted(_))
}

#[tokio::test]
async fn a_ceiling_refuses_beyond_its_rate_and_remembers_the_numbers() {
    let worker = worker("");
    assert!(is_admitted(admit(&worker, at(0), &asked(1, 1), None)), "open at first");
    publish(&worker, 5, Limit::All(Rate::from_per_second(20.0)));
    let admitted =
        (0..1_000).filter(|&n| is_admitted(admit(&worker, at(1_000 + n), &asked(1, n), None))).count();
    // A second at 20/s, and a burst of at most ten.
    assert!((19..=31).contains(&admitted), "{admitted}");
    let refusal = refused(
        (0..)
            .map(|n| admit(&worker, at(2_000), &asked(1, n), None))
            .find(|a| !matches!(a, Admission::Admitted(_)))
            .expect("refused"),
    );
    assert_eq!((refusal.reason, refusal.ceiling), (Reason::FlashCrowd, Some(Rate::from_per_second(20.0))));
    let record = worker.pipeline.explain(refusal.id).expect("remembered");
    assert_eq!((record.plan.epoch, record.shadow, record.at), (5, false, at(2_000)));
    assert_eq!(record.retry_after_s, refusal.retry_after.jittered_s);
    let (metrics, arrived) =
        (&worker.metrics.requests, worker.pipeline.drain_flash_crowd(at(2_001)).live.flow.offered);
    assert_eq!(
        metrics.admitted.value() + metrics.shed.value(Reason::FlashCrowd),
        arrived,
        "offered = admitted + shed"
    );
    assert_eq!(
        metrics.abandoned.value(),
        metrics.admitted.value(),
        "a permit that is only dropped is abandoned"
    );
    assert_eq!(worker.pipeline.requests_open(), 0, "every permit was given back");
}

#[tokio::test]
async fn a_ceiling_lets_the_guaranteed_in_before_others_and_the_exempt_always() {
    let worker = worker("[[class]]\nname = 'vip'\nguaranteed_rate = 5\nmatch.path = '/vip'");
    publish(&worker, 1, Limit::All(Rate::from_per_second(0.001)));
    let of = |class, ceiling_priority| move |n| Classified { class, ceiling_priority, ..asked(1, n) };
    let let_in = |ask: &dyn Fn(u64) -> Classified| {
        let admissions: Vec<_> = (0..100).map(|n| admit(&worker, at(n), &ask(n), None)).collect();
        admissions.into_iter().filter(|admission| !matches!(admission, Admission::Refused(_))).count()
    };
    assert_eq!(let_in(&of(1, CeilingPriority::LAST)), 0, "nothing was earned yet");
    assert_eq!(let_in(&of(0, CeilingPriority::LAST)), 5, "what a class is guaranteed is taken on credit");
    assert_eq!(let_in(&of(1, CeilingPriority::Exempt)), 100);
    assert_eq!(let_in(&of(1, CeilingPriority::FIRST)), 5, "ten tokens of credit in all");
}

#[tokio::test]
async fn a_hot_spot_is_limited_and_bystanders_are_not() {
    let worker = worker("");
    publish(&worker, 1, Limit::HotSpots(vec![HotSpotLimit { key: 7, rate: Rate::from_per_second(0.001) }]));
    let of_hot_spot = (0..200).filter(|&n| is_admitted(admit(&worker, at(n), &asked(7, n), None))).count();
    assert!(of_hot_spot <= 10, "{of_hot_spot}");
    assert!((0..200).all(|n| is_admitted(admit(&worker, at(n), &asked(8, n), None))));
}

#[tokio::test]
async fn shadow_records_what_it_would_have_refused_and_admits_it() {
    let worker = worker("flash_crowd.shadow = true");
    publish(&worker, 1, Limit::All(Rate::from_per_second(0.001)));
    assert!((0..100).all(|n| is_admitted(admit(&worker, at(n), &asked(1, n), None))));
    let shadowed = worker.metrics.requests.shadow_shed.value();
    assert!(shadowed >= 90, "{shadowed}");
    assert_eq!(worker.metrics.requests.shed.total(), 0);
    let sample = worker.pipeline.drain_flash_crowd(at(100)).live;
    assert_eq!(
        (sample.flow.offered, sample.flow.admitted),
        (100, 100),
        "the planner learns what really was let in"
    );
    let last = DecisionId::new(worker.shared.boot, 0, shadowed - 1);
    assert!(worker.pipeline.explain(last).expect("remembered").shadow);
}

#[tokio::test]
async fn a_plan_that_is_older_than_the_one_in_force_changes_nothing() {
    let worker = worker("");
    publish(&worker, 2, Limit::All(Rate::from_per_second(0.001)));
    while is_admitted(admit(&worker, at(0), &asked(1, 1), None)) {}
    publish(&worker, 1, Limit::Open);
    assert!(!is_admitted(admit(&worker, at(1), &asked(1, 1), None)));
    publish(&worker, 3, Limit::Open);
    assert!(is_admitted(admit(&worker, at(2), &asked(1, 1), None)));
}

#[tokio::test]
async fn draining_comes_first_then_a_full_connection_then_the_bounds() {
    let worker = worker("bounds.max_requests_in_flight = 1\nupstream.max_connections = 2");
    let permit = match admit(&worker, at(0), &asked(1, 1), None) {
        Admission::Admitted(permit) => permit,
        other => panic!("{other:?}"),
    };
    let reason = |full| refused(admit(&worker, at(1), &asked(1, 2), full)).reason;
    assert_eq!(reason(None), Reason::RequestsInFlight);
    assert_eq!(reason(Some(Reason::ConnectionsPerClient)), Reason::ConnectionsPerClient);
    worker.shared.start_draining();
    assert_eq!(reason(Some(Reason::Connections)), Reason::Draining);
    worker.shared.expect_successor();
    assert_eq!(reason(None), Reason::RequestsInFlight, "the last requests are served");
    permit.completed(StatusCode::OK);
    assert_eq!(worker.shared.pipelines.in_gateway.get(), 0);
    assert_eq!(worker.metrics.requests.completed.value(), 1);
    assert_eq!(worker.metrics.requests.abandoned.value(), 0);
}

#[tokio::test]
async fn an_error_of_the_upstream_completes_but_not_for_the_planner() {
    let worker = worker("");
    for status in [StatusCode::OK, StatusCode::BAD_GATEWAY] {
        if let Admission::Admitted(permit) = admit(&worker, at(0), &asked(1, 1), None) {
            permit.completed(status);
        }
    }
    assert_eq!(worker.metrics.requests.completed.value(), 2);
    assert_eq!(worker.pipeline.drain_flash_crowd(at(1)).live.completed, 1);
}

#[tokio::test]
async fn what_a_bound_refuses_was_offered_all_the_same() {
    let worker = worker("bounds.max_requests_in_flight = 1");
    let _held = admit(&worker, at(0), &asked(1, 0), None);
    for person in [1, 2, 3, 3, 3] {
        assert_eq!(refused(admit(&worker, at(1), &asked(1, person), None)).reason, Reason::RequestsInFlight);
    }
    let sample = worker.pipeline.drain_flash_crowd(at(100)).live;
    assert_eq!((sample.flow.offered, sample.unique_offered, sample.flow.admitted), (6, 4, 1));
    let next = worker.pipeline.drain_flash_crowd(at(200)).live;
    assert_eq!((next.flow.offered, next.unique_offered), (0, 0));
}

/// A service without a sentry that was configured again before its last request had ended was taken for the
/// one that had been retired, and refused everything once that request had ended.
#[tokio::test]
async fn a_service_that_is_configured_again_outlives_the_requests_of_the_one_that_was_retired() {
    const EXTRA: &str = "[[service]]\nname = 'extra'\nhosts = ['extra.example']\n\
        upstream.urls = ['http://127.0.0.1:9']\nsentry.policing = 'off'\n";
    let worker = worker(EXTRA);
    let admit_extra = |now| {
        let current = worker.current();
        let mut services = current.live.config.services.iter();
        let index = services.position(|service| service.name == "extra").expect("it is configured");
        let asked = Classified { service: index, ..asked(1, 1) };
        worker.pipeline.admit(now, offered(current.services[index], &asked), None)
    };
    let reload = |more: &str| {
        worker.shared.live.store(Arc::new(live(more)));
        worker.reload();
    };
    let last = admit_extra(at(0));
    assert!(matches!(last, Admission::Admitted(_)));
    reload("");
    reload(EXTRA);
    drop(last);
    assert!(is_admitted(admit_extra(at(1))));
    assert!(is_admitted(admit_extra(at(2))));
}

/// Goal: the candidate's plans reach its gate, its ceiling binds no request, and nothing of one that a
/// reload replaced is left.
#[tokio::test]
async fn a_candidate_of_the_flash_crowd_stage_follows_its_plans_until_a_reload_replaces_it() {
    const ONE: &str = "flash_crowd.candidate.margin = 0.2";
    const OTHER: &str = "flash_crowd.candidate.margin = 0.3";
    let worker = worker(ONE);
    let candidate = || worker.shared.live.load().flash_crowd_candidate.clone().expect("a candidate");
    let close = |candidate: &FlashCrowdCandidate| {
        let limit = Limit::All(Rate::from_per_second(0.001));
        candidate.plan.store(Arc::new(Plan { epoch: 3, limit, ..Plan::open(1) }));
    };
    let admit_all = |from: u64| {
        assert!((from..from + 10).all(|n| is_admitted(admit(&worker, at(n), &asked(1, n), None))));
    };
    let drain = |now| worker.pipeline.drain_flash_crowd(at(now)).candidate;
    let agreement = |now| drain(now).expect("a candidate").agreement;
    let first = candidate();
    admit_all(0);
    close(&first);
    admit_all(10);
    let sample = drain(20).expect("a candidate");
    assert!(Arc::ptr_eq(&sample.candidate, &first));
    assert_eq!(sample.agreement, Agreement { both: 10, only_live: 10, ..Agreement::default() });
    assert_eq!((sample.sample.flow.offered, sample.sample.flow.admitted), (20, 20));

    admit_all(20);
    worker.shared.live.store(Arc::new(live(OTHER)));
    worker.reload();
    close(&first);
    admit_all(30);
    let sample = drain(40).expect("a candidate");
    assert!(Arc::ptr_eq(&sample.candidate, &candidate()));
    assert_eq!(sample.agreement, Agreement { both: 10, ..Agreement::default() });
    assert_eq!(sample.sample.flow.offered, 10, "since it was brought in");
    close(&candidate());
    admit_all(40);
    assert_eq!(agreement(50), Agreement { only_live: 10, ..Agreement::default() });

    worker.shared.live.store(Arc::new(live("")));
    worker.reload();
    admit_all(50);
    assert!(drain(60).is_none());
}
