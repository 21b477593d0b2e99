//! Goal: long requests hold no place, are bounded, and are counted. Method: one gate with a limit of one
//! place, and plans that say which requests are long.

use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{
    Arrived, Common, Ending, LevelSum, LongRequests, Permit, Plan, Policing, Policy, Published,
    PublishedRule, Sample, SentryGate, SentryPlanner, SentryRequest,
};
use flashweir_core::measure::histogram::index;
use flashweir_core::{Duration, Instant};
use flashweir_limit::{Row, time_bin};
use std::sync::Arc;

const POLLS: u32 = 7;
const COMPLETED: Ending = Ending { completed: true, withdrawn: false, measured_us: None };

struct Service {
    gate: SentryGate<()>,
    plan: Plan,
}

impl Service {
    /// One place, no queue.
    fn new(long: LongRequests) -> Self {
        let policy = Policy::single(Duration::from_secs(1));
        let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (1, 1, 0);
        plan.long = long;
        Self { gate: SentryGate::new(Arc::new(Common::new(1)), 0, &policy, &plan), plan }
    }

    fn apply(&mut self, long: LongRequests) {
        self.plan.epoch += 1;
        self.plan.long = long;
        self.gate.apply(&self.plan);
    }

    fn arrive(&mut self, ms: u64, url_class: u32) -> Option<Permit> {
        let asked = SentryRequest { url_class, ..SentryRequest::default() };
        match self.gate.arrive(Instant::from_millis(ms), asked, ()) {
            Arrived::Admit((), permit) => Some(permit),
            _ => None,
        }
    }

    fn end(&mut self, ms: u64, permit: Permit) {
        self.gate.end(Instant::from_millis(ms), permit, COMPLETED);
    }

    fn drain(&mut self, ms: u64) -> Sample {
        self.gate.drain(Instant::from_millis(ms))
    }

    fn in_flight(&self) -> (u32, u32) {
        (self.gate.in_flight(), self.gate.long_in_flight())
    }
}

fn polls(limit: Option<u32>) -> LongRequests {
    LongRequests { url_classes: vec![POLLS as u16], limit, release_after: Duration::ZERO }
}

#[test]
fn long_classes_hold_no_place_and_are_in_no_number_that_the_limit_is_learned_from() {
    let mut service = Service::new(polls(None));
    let page = service.arrive(0, 1).expect("a place");
    let held: Vec<Permit> = (0..3).map(|_| service.arrive(1, POLLS).expect("no place needed")).collect();
    assert_eq!((service.in_flight(), service.arrive(2, 1)), ((1, 3), None));
    service.end(10, page);
    let page = service.arrive(11, 1).expect("the page's place");
    let sample = service.drain(1_010);
    assert_eq!((sample.completed, sample.shed, sample.in_flight, sample.long.in_flight), (1, 1, 4, 3));
    assert_eq!(sample.in_flight_nanos, 1_009_000_000, "the pages alone");
    assert_eq!((sample.age_us.count(), sample.latency_us.count(), sample.urls.len()), (1, 1, 1));
    let of_polls = |sample: &Sample| {
        let rows = sample.rows.iter().filter(|row| row.class == POLLS);
        rows.fold((0, 0), |sum, row| (sum.0 + row.completed, sum.1 + row.in_flight))
    };
    assert_eq!(of_polls(&sample), (0, 3));
    held.into_iter().for_each(|poll| service.end(20_000, poll));
    service.end(20_000, page);
    let sample = service.drain(20_001);
    assert_eq!((sample.completed, sample.long.completed, of_polls(&sample)), (4, 3, (3, 0)));
    assert_eq!((service.in_flight(), sample.classes[0].good, sample.latency_us.count()), ((0, 0), 0, 1));
}

#[test]
fn more_long_requests_than_the_plan_allows_are_as_any_other() {
    let mut service = Service::new(polls(Some(1)));
    let first = service.arrive(0, POLLS).expect("one that holds no place");
    let second = service.arrive(0, POLLS).expect("one that has the place");
    assert_eq!((service.in_flight(), service.arrive(0, POLLS), service.arrive(0, 1)), ((1, 1), None, None));
    service.end(5, second);
    assert!(service.arrive(6, 1).is_some());
    service.end(7, first);
    assert_eq!(service.in_flight(), (1, 0));
}

/// A poll that came when too many were in flight would keep others out for as long as it waits.
#[test]
fn a_long_request_gives_its_place_back_once_there_is_room_for_it_without_one() {
    let mut service = Service::new(polls(Some(1)));
    let first = service.arrive(0, POLLS).expect("one that holds no place");
    let second = service.arrive(0, POLLS).expect("one that has the place");
    let _none = service.drain(10);
    assert_eq!((service.in_flight(), service.arrive(10, 1)), ((1, 1), None));
    service.end(20, first);
    let _early = service.drain(30);
    assert_eq!(service.in_flight(), (1, 0));
    let _released = service.drain(1_010);
    assert_eq!(service.in_flight(), (0, 1));
    let page = service.arrive(1_011, 1).expect("the poll's place");
    service.end(1_020, second);
    service.end(1_021, page);
    assert_eq!(service.in_flight(), (0, 0));
}

#[test]
fn a_request_that_is_overtaken_gives_its_place_back_once() {
    let after = |ms| LongRequests { release_after: Duration::from_millis(ms), ..LongRequests::default() };
    let mut service = Service::new(after(750));
    let export = service.arrive(0, 1).expect("a place");
    let _early = service.drain(700);
    assert_eq!((service.in_flight(), service.arrive(700, 1)), ((1, 0), None));
    let _released = service.drain(760);
    assert_eq!(service.in_flight(), (0, 1));
    let page = service.arrive(760, 1).expect("the export's place");
    // A plan that allows none changes nothing for those that hold none already, and releases no other.
    service.apply(LongRequests { limit: Some(0), ..after(750) });
    let _none = service.drain(3_000);
    assert_eq!(service.in_flight(), (1, 1));
    service.end(3_000, export);
    service.end(3_001, page);
    assert_eq!(service.in_flight(), (0, 0));
}

#[test]
fn a_long_request_whose_client_is_waited_for_comes_back_as_one() {
    let mut service = Service::new(polls(None));
    let upload = service.arrive(0, POLLS).expect("no place needed");
    let paused = service.gate.pause(Instant::from_millis(10), upload);
    assert_eq!(service.in_flight(), (0, 0));
    service.apply(LongRequests::default());
    let upload = service.gate.resume(Instant::from_millis(20), paused);
    assert_eq!((service.in_flight(), service.arrive(20, 1).is_some()), ((0, 1), true));
    service.end(30, upload);
    assert_eq!(service.in_flight(), (1, 0));
}

#[test]
fn in_shadow_long_requests_are_counted_separately_too() {
    let mut service = Service::new(polls(Some(1)));
    let now = Instant::from_millis(5);
    let asked = |url_class| SentryRequest { url_class, ..SentryRequest::default() };
    let permits: Vec<Permit> = [POLLS, POLLS, 1]
        .map(|url_class| service.gate.arrive_in_shadow(now, asked(url_class)).0)
        .into_iter()
        .collect();
    assert_eq!(service.in_flight(), (2, 1));
    permits.into_iter().for_each(|permit| service.end(10, permit));
    assert_eq!(service.in_flight(), (0, 0));
}

/// The plan after four seconds of fifty pages a second of 10 ms beside ten polls that are in flight all the
/// time.
fn plan_beside_polls(policing: Policing) -> Plan {
    let policy = Policy { policing, ..Policy::single(Duration::from_secs(1)) };
    let mut planner = PlannerDriver::new(SentryPlanner::new(Arc::new(policy)), Instant::ZERO);
    let tick = Duration::from_millis(20);
    for from in (0..200).map(|at| Instant::ZERO + tick * at) {
        let to = from + tick;
        let page = Row { class: 1, bin: time_bin(0.01) as u8, completed: 1, ..Row::default() };
        let polls =
            Row { class: POLLS, bin: time_bin(to.as_secs_f64()) as u8, in_flight: 10, ..Row::default() };
        let nanos = tick.as_nanos() as u64;
        let level = LevelSum { level: index(1), nanos, in_flight_nanos: nanos / 2, completed: 1 };
        let sample = Sample {
            from,
            to,
            completed: 1,
            rows: vec![page, polls],
            levels: vec![level],
            ..Sample::default()
        };
        planner.observe(to, &sample);
        planner.plan(to);
    }
    planner.planner().current().clone()
}

#[test]
fn polls_beside_pages_are_found_to_be_long_and_published_policies_know_of_none() {
    let found = plan_beside_polls(Policing::Reservation).long;
    assert_eq!((found.url_classes.as_slice(), found.limit), (&[POLLS as u16][..], None), "{found:?}");
    let rule = PublishedRule::Reservation { step: 1 };
    let published =
        Published { rule, servers: 2, service_time: Duration::from_millis(10), quantile_milli: 1_000 };
    assert_eq!(plan_beside_polls(Policing::Published(published)).long, LongRequests::default());
}
