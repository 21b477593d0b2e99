//! Times at which a slow client's place is given to others, by literal times. The gate's use of it is tested
//! with the gate.

use super::super::PipelineHost;
use super::*;
use crate::sentry::Sentry;
use crate::services::{sentries, upstreams};
use crate::shared::{Live, Parts, Shared};
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::{AdmissionRequest, Arrival, FailureSource, OriginReport, Permit};
use flashweir_config::Config;
use flashweir_http::client::TrustedProxies;
use std::sync::Arc;
use tokio::sync::mpsc;

const DONE: RequestOutcome = RequestOutcome::Completed(OriginReport { measured_us: None });

/// One request at the origin, and who looks after slow clients.
struct Scene {
    sentry: Arc<Sentry>,
    request: Rc<Yielding>,
    slow: SlowClients,
    /// The request has not ended, only its share at the origin.
    _permit: Permit,
}

impl Scene {
    fn start() -> Self {
        let config = Config::from_toml("upstream.urls = ['http://127.0.0.1:9']", "test.toml").expect("valid");
        let upstreams = upstreams(&config, 1, None).expect("upstreams");
        let sentries = sentries(&config, 1, None);
        let sentry = sentries[0].clone().expect("policing is on");
        let live = Live {
            config,
            upstreams,
            sentries,
            candidates: vec![None],
            flash_crowd_candidate: None,
            tls: None,
            trusted_proxies: TrustedProxies::default(),
        };
        let shared = Shared::new(Parts {
            live,
            workers: 1,
            listening_on: Vec::new(),
            redirecting_on: Vec::new(),
            access_lines: None,
            url_key: None,
        });
        let host = PipelineHost::new(0, shared.clone(), mpsc::channel(1).0, Rc::default());
        let (services, _) = host.configure(&shared.live.load());
        let request = AdmissionRequest {
            service: services[0],
            class: 0,
            ceiling_priority: CeilingPriority::LAST,
            client_key: 0,
            url_class: 0,
            host_key: 0,
            person_key: 0,
            candidate: None,
            is_beyond_sender_share: false,
            deadline: None,
            closed: None,
            signs: Default::default(),
            asking: Default::default(),
        };
        let arrival = host.inner.borrow_mut().pipeline.arrive(shared.clock.now(), request, 0);
        let Arrival::Admitted(mut permit, _) = arrival else { panic!("there is room") };
        let share_guard =
            ShareGuard::new(host.inner.clone(), permit.take_origin_share().expect("a share at the origin"));
        let (request, mut slow) = (Yielding::new(share_guard), SlowClients::default());
        slow.watch(&request);
        Self { sentry, request, slow, _permit: permit }
    }

    /// Number of places that are taken after a look at this time.
    fn taken_at(&mut self, millis: u64) -> u32 {
        self.slow.sweep(at(millis));
        self.sentry.common.in_flight()
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn a_body_that_does_not_come_leaves_its_place_until_it_does() {
    let mut scene = Scene::start();
    scene.request.owes(at(1_000));
    // Asked for again and again, as hyper does.
    scene.request.owes(at(1_050));
    assert_eq!([scene.taken_at(1_100), scene.taken_at(1_101), scene.taken_at(9_000)], [1, 0, 0]);
    assert!(!scene.request.is_slow());
    scene.request.sent(at(9_500));
    assert!(scene.request.is_slow());
    assert_eq!([scene.taken_at(9_600), scene.taken_at(99_000)], [1, 1], "the origin has it all");
    scene.request.end(DONE);
    assert_eq!(scene.taken_at(99_001), 0);
}

#[test]
fn a_byte_now_and_then_does_not_hold_a_place() {
    let mut scene = Scene::start();
    scene.request.owes(at(0));
    assert_eq!(scene.taken_at(60), 1);
    scene.request.sent(at(60));
    scene.request.owes(at(60));
    assert_eq!([scene.taken_at(100), scene.taken_at(101)], [1, 0], "100 ms in all");
    for byte in 1..20u64 {
        scene.request.sent(at(90 * byte + 60));
        assert_eq!(scene.sentry.common.in_flight(), 1);
        scene.request.owes(at(90 * byte + 60));
        assert_eq!(scene.taken_at(90 * byte + 61), 0);
    }
}

#[test]
fn an_origin_that_answers_before_it_has_read_all_works() {
    let mut scene = Scene::start();
    scene.request.owes(at(0));
    assert_eq!(scene.taken_at(200), 0);
    scene.request.answered(at(300));
    assert_eq!([scene.taken_at(399), scene.taken_at(401)], [1, 0], "both are silent");
    scene.request.handed(at(500), DONE);
    scene.request.asked();
    assert_eq!(scene.taken_at(599), 1);
    // Its own end, or the connection's: the rest of the body is not read.
    scene.request.is_owed_nothing();
    assert_eq!(scene.taken_at(60_000), 1);
}

#[test]
fn what_ends_while_its_client_is_waited_for_leaves_nothing_behind() {
    for ending in [DONE, RequestOutcome::Failed(FailureSource::Origin)] {
        let mut scene = Scene::start();
        scene.request.owes(at(0));
        assert_eq!(scene.taken_at(200), 0);
        scene.request.end(ending);
        scene.request.sent(at(300));
        scene.request.answered(at(300));
        assert_eq!(scene.taken_at(400), 0);
    }
    let mut scene = Scene::start();
    scene.request.owes(at(0));
    assert_eq!(scene.taken_at(200), 0);
    // The client has gone.
    let Scene { sentry, request, mut slow, .. } = scene;
    drop(request);
    slow.sweep(at(300));
    assert!(sentry.common.in_flight() == 0 && slow.is_empty());
}

#[test]
fn a_response_that_is_not_taken_frees_its_place_for_good() {
    let mut scene = Scene::start();
    scene.request.handed(at(0), DONE);
    assert_eq!([scene.taken_at(100), scene.taken_at(101)], [1, 0]);
    assert!(scene.slow.is_empty());
    scene.request.asked();
    scene.request.answered(at(200));
    assert_eq!(scene.taken_at(300), 0);
}
