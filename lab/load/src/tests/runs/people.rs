//! Goal: people do what they are said to do (sessions, patience, retries, classes), and the books tell it.
//! Method: scripted servers on loopback; counts are exact, times have wide bounds since the machine is
//! shared.

use crate::tests::runs::common::{
    SECOND, burst, for_everybody, origin, plan, planned, run, serve, serve_each, url,
};
use crate::{ClassPlan, LoadPlan, Protocol, TransportOptions};
use flashweir_workload::people::{Habits, Retry, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// The books of a run whose people may go on trying until a minute has passed.
fn within_a_minute(plan: LoadPlan) -> LoadPlan {
    let moments = plan.schedule.arrivals().map(|arrival| arrival.moment).collect::<Vec<_>>();
    let schedule = Schedule::one(ArrivalProcess::given_within(moments, 60 * SECOND).unwrap(), 1);
    LoadPlan { schedule: schedule.into(), ..plan }
}

fn retry(pace: &str, tries_most: u32) -> Option<Retry> {
    Some(Retry { pace: pace.parse().unwrap(), tries_most, ..Retry::default() })
}

#[test]
fn a_refused_person_tries_again_and_is_served() {
    // Two of three tries are refused.
    let address = serve_each(|asked| if asked % 3 == 2 { OK } else { BUSY });
    let plan = within_a_minute(burst(address, 1));
    let result = run(for_everybody(plan, |class| class.habits.retry = retry("at-once", 5)), |_| {});
    let totals = &result.totals;
    assert_eq!((totals.offered, totals.unique_offered), (3, 1));
    assert_eq!((totals.refused, totals.completed), (2, 1));
    assert_eq!(totals.retry_amplification, Some(3.0));
    assert_eq!((totals.goodput_ratio, totals.served_ms.count), (Some(1.0), 1));
}

#[test]
fn tries_are_capped() {
    let address = serve(BUSY);
    let plan = within_a_minute(burst(address, 4));
    let result = run(for_everybody(plan, |class| class.habits.retry = retry("at-once", 3)), |_| {});
    assert_eq!((result.totals.offered, result.totals.unique_offered, result.totals.refused), (12, 4, 12));
}

/// Only some retry, and each decides by the seed: two runs are the same.
#[test]
fn a_share_retries() {
    let address = serve(BUSY);
    let offered = || {
        let plan = within_a_minute(burst(address, 200));
        let share = Some(Retry { share: 0.5, ..retry("at-once", 2).unwrap() });
        run(for_everybody(plan, |class| class.habits.retry = share), |_| {}).totals.offered
    };
    let first = offered();
    assert!((260..340).contains(&first), "{first}");
    assert_eq!(first, offered());
}

#[test]
fn an_honest_client_waits_as_long_as_it_is_asked_to() {
    let address = serve_each(|asked| if asked == 0 { BUSY } else { OK });
    let plan = within_a_minute(burst(address, 1));
    let honours = retry("retry-after:30s", 2);
    let result = run(for_everybody(plan, |class| class.habits.retry = honours), |_| {});
    let served = result.totals.served_ms.max.unwrap();
    assert!((1_000.0..20_000.0).contains(&served), "{served}");
    assert!(result.totals.latency_ms.max.unwrap() < served, "a try's latency counts from its own moment");
    assert_eq!((result.totals.series[0].refused, result.totals.series[1].completed), (1, 1));
}

/// A person who loses patience leaves in the middle of a try, which is then not a timeout.
#[test]
fn the_impatient_abandon_and_do_not_return() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = within_a_minute(burst(silent.local_addr().unwrap(), 5));
    let begun = Instant::now();
    let result = run(
        for_everybody(plan, |class| {
            class.timeout = Duration::from_millis(200);
            class.habits = Habits { patience: Some("500ms".parse().unwrap()), ..class.habits };
            class.habits.retry = retry("at-once", 100);
        }),
        |_| {},
    );
    let totals = &result.totals;
    assert_eq!((totals.unique_offered, totals.abandoned), (5, 5));
    // Two whole timeouts, on a busy machine perhaps fewer.
    assert!((5..=10).contains(&totals.timed_out), "{totals:?}");
    assert!(begun.elapsed() < 20 * SECOND);
}

#[test]
fn a_session_is_several_requests_with_thought_between() {
    let address = serve(OK);
    let session = Session { requests: "3".parse().unwrap(), think: "300ms".parse().unwrap() };
    let plan = within_a_minute(burst(address, 4));
    let begun = Instant::now();
    let result = run(for_everybody(plan, |class| class.habits.session = session), |_| {});
    assert_eq!((result.totals.offered, result.totals.unique_offered, result.totals.completed), (12, 12, 12));
    assert!(begun.elapsed() >= Duration::from_millis(600));
}

/// People whose request fails leave; machines go on.
#[test]
fn who_is_not_served_ends_their_session() {
    let session = Session { requests: "3".parse().unwrap(), think: "0s".parse().unwrap() };
    let check = |goes_on_unserved, wanted| {
        let plan = within_a_minute(burst(serve(BUSY), 2));
        let result = run(
            for_everybody(plan, |class| {
                class.habits.session = session;
                class.goes_on_unserved = goes_on_unserved;
            }),
            |_| {},
        );
        assert_eq!((result.totals.offered, result.totals.unique_offered), (wanted, wanted));
    };
    check(false, 2);
    check(true, 6);
}

/// Method 1 of the thesis: however slow the server, no more requests than workers are on their way, so it is
/// never overloaded. The same server under an open loop times people out (see `against_servers.rs`).
#[test]
fn a_closed_loop_slows_down_with_its_server() {
    let origin = origin(20.0);
    let workers = ArrivalProcess::given_within(vec![Duration::ZERO; 3], SECOND).unwrap();
    let plan = planned(&url(&origin, "/"), Schedule::one(workers, 1));
    let plan = LoadPlan {
        transport: TransportOptions { protocol: Protocol::Http1KeepAlive, ..TransportOptions::default() },
        ..plan
    };
    let endless = Session { requests: "endless".parse().unwrap(), think: "0s".parse().unwrap() };
    let mut most = 0;
    let result = run(for_everybody(plan, |class| class.habits.session = endless), |progress| {
        most = most.max(progress.totals.in_flight());
    });
    assert!(most <= 3, "{most}");
    assert!((5..120).contains(&result.totals.completed), "{}", result.totals.completed);
    assert_eq!(result.totals.timed_out, 0);
}

#[test]
fn nothing_begins_after_the_end_of_the_schedule() {
    let plan = plan(&format!("http://{}/", serve(BUSY)), 50.0, 1);
    let begun = Instant::now();
    let result = run(for_everybody(plan, |class| class.habits.retry = retry("fixed:400ms", 1000)), |_| {});
    assert!(begun.elapsed() < 10 * SECOND);
    assert!(result.totals.series.len() == 1, "{:?}", result.totals.series.len());
    assert!(result.totals.offered > result.totals.unique_offered);
}

/// Two classes share one arrival process, a third has its own; each has its own ledger, and all add up.
#[test]
fn classes_have_books_of_their_own() {
    let origin = origin(0.0);
    let profile = |rate| ArrivalProcess::Constant(RateProfile::constant(rate, SECOND).unwrap());
    let shared = vec![Share { class: 0, weight: 3.0 }, Share { class: 1, weight: 1.0 }];
    let streams = vec![
        Stream { arrivals: profile(100.0), classes: shared },
        Stream { arrivals: profile(30.0), classes: vec![Share { class: 2, weight: 1.0 }] },
    ];
    let plan = planned(&url(&origin, "/"), Schedule::new(streams, 3).unwrap());
    let named = |name: &str, timeout| ClassPlan { name: name.to_owned(), timeout, ..plan.classes[0].clone() };
    let classes = [named("gold", 20 * SECOND), named("bronze", 20 * SECOND), named("robots", 20 * SECOND)];
    let threads = NonZeroUsize::new(2).unwrap();
    let result = run(LoadPlan { classes: classes.into(), threads, ..plan }, |_| {});
    let offered = |name: &str| result.classes[name].offered;
    assert_eq!((offered("gold") + offered("bronze"), offered("robots")), (100, 30));
    assert!((60..90).contains(&offered("gold")), "{}", offered("gold"));
}
