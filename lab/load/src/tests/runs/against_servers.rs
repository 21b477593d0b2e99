//! Goal: the ledger is right about real servers. Method: short runs over loopback against the origin and
//! against servers that misbehave; counts are exact, times have wide bounds since the machine is shared.

use crate::tests::runs::common::{
    SECOND, burst, fixed, for_everybody, origin, plan, run, serve, url, waiting_origin,
};
use crate::{LoadError, LoadPlan, Protocol, Sources, StopFlag, TransportOptions};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_fast_server_completes_everybody() {
    let origin = origin(0.0);
    for protocol in [Protocol::Http1New, Protocol::Http1KeepAlive] {
        let plan = for_everybody(plan(&url(&origin, "/bytes/100"), 100.0, 2), |class| {
            class.timeout = 20 * SECOND;
            class.good_within = 10 * SECOND;
        });
        let plan = LoadPlan {
            sources: Sources { count: 50, ..Sources::default() },
            transport: TransportOptions { protocol, ..TransportOptions::default() },
            threads: NonZeroUsize::new(2).unwrap(),
            ..plan
        };
        let offered = plan.schedule.arrivals().count() as u64;
        let mut reports = Vec::new();
        let result = run(plan, |progress| reports.push(*progress));
        let totals = &result.totals;
        assert_eq!((totals.offered, totals.completed, totals.goodput), (offered, offered, offered));
        assert_eq!((totals.sent, totals.unique_offered), (offered, offered));
        assert_eq!(totals.body_bytes, 100 * offered);
        let points = (&totals.ttfb_ms, &totals.latency_ms);
        assert!(points.0.p50 <= points.1.p50 && points.1.p50 <= points.1.max);
        match protocol {
            Protocol::Http1New => assert_eq!(result.connections.opened, offered),
            _ => {
                let counts = result.connections;
                assert!((50..offered).contains(&counts.opened), "{counts:?}");
                assert_eq!(counts.opened + counts.reused, offered);
            }
        }
        assert!(reports.len() >= 5, "progress was reported {} times", reports.len());
        assert_eq!(reports.last().unwrap().totals.completed, offered);
        assert!(reports.iter().is_sorted_by_key(|progress| progress.totals.offered));
    }
}

/// 200 arrivals a second at a server that can do about 20: however each ends, the books add up, and
/// the run ends soon after the last person's patience.
#[test]
fn an_overloaded_server_times_people_out_and_the_books_add_up() {
    let origin = waiting_origin(50.0);
    let plan = for_everybody(plan(&url(&origin, "/"), 200.0, 2), |class| {
        class.timeout = Duration::from_millis(600);
        class.good_within = Duration::from_millis(300);
    });
    let begun = Instant::now();
    let result = run(plan, |_| {}).totals;
    assert!(begun.elapsed() < 20 * SECOND, "{:?}", begun.elapsed());
    assert!((300..500).contains(&result.offered), "{}", result.offered);
    assert!(result.timed_out > result.offered / 2, "{} timed out", result.timed_out);
    assert!(result.completed >= 5, "{} completed", result.completed);
    assert!(result.goodput <= result.completed);
    assert!(result.latency_ms.max.unwrap() <= 601.0, "{:?}", result.latency_ms);
    assert_eq!(result.errors, 0, "{:?}", result.errors_by_kind);
}

#[test]
fn broken_servers_are_told_apart() {
    let check = |answer: &'static [u8], wanted: &str| {
        let address = serve(answer);
        let result = run(burst(address, 3), |_| {}).totals;
        let errors: Vec<_> = result.errors_by_kind.into_iter().collect();
        assert_eq!(errors, [(wanted.to_owned(), 3)], "{}", String::from_utf8_lossy(answer));
        assert_eq!(result.sent, 3);
    };
    check(b"", "closed");
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", "closed");
    check(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nrubbish\r\n", "malformed");
    check(b"rubbish, not HTTP at all\r\n\r\n", "malformed");
    check(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "status_4xx");
    check(b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n", "status_5xx");
}

#[test]
fn refusals_are_counted_by_who_refused() {
    let ours = serve(
        b"HTTP/1.1 503 Short\r\nFlashweir-Decision: 0123456789abc; reason=flash_crowd\r\ncontent-length: 0\r\n\r\n",
    );
    let result = run(burst(ours, 4), |_| {}).totals;
    assert_eq!((result.refused, result.completed, result.refusal_ms.count), (4, 0, 4));
    assert_eq!(result.refused_by_reason.get("flash_crowd"), Some(&4));
    let theirs = serve(b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(run(burst(theirs, 2), |_| {}).totals.refused_by_reason.get("other"), Some(&2));
}

/// A server that accepts and never answers holds no client longer than its patience.
#[test]
fn silence_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = burst(listener.local_addr().unwrap(), 5);
    let plan = for_everybody(plan, |class| class.timeout = Duration::from_millis(200));
    assert_eq!(run(plan, |_| {}).totals.timed_out, 5);
}

#[test]
fn an_absent_server_is_told_at_once() {
    let address = flashweir_testbed::reserve_address().unwrap();
    let begun = Instant::now();
    let error = crate::run(plan(&format!("http://{address}/"), 10.0, 60), |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
    assert!(begun.elapsed() < 10 * SECOND);
    let error = crate::measure_capacity(&format!("http://{address}/"), 2, SECOND).unwrap_err();
    assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
}

/// A server that goes away after the first look is an error of each person, not of the run.
#[test]
fn a_server_that_vanishes_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let vanish = std::thread::spawn(move || drop(listener.accept()));
    let moments = [1000, 1050, 1100].map(Duration::from_millis);
    let result = run(LoadPlan { schedule: Arc::new(fixed(&moments)), ..burst(address, 1) }, |_| {}).totals;
    vanish.join().unwrap();
    assert_eq!(result.errors_by_kind.get("connect"), Some(&3), "{result:?}");
    assert_eq!(result.sent, 0);
}

#[test]
fn stopping_ends_early_with_a_full_report() {
    let origin = origin(0.0);
    let stop = StopFlag::default();
    let plan = LoadPlan { stop: stop.clone(), ..plan(&url(&origin, "/"), 50.0, 3600) };
    let begun = Instant::now();
    let result = run(plan, |progress| {
        if progress.totals.completed >= 10 {
            stop.stop();
        }
    });
    assert!(begun.elapsed() < 30 * SECOND, "{:?}", begun.elapsed());
    assert!((10..500).contains(&result.totals.offered), "{}", result.totals.offered);
    assert!(result.run.interrupted);
}

/// Two threads and one give the same people at the same moments: the schedule does not depend on them.
#[test]
fn seconds_of_the_series_are_those_of_the_schedule() {
    let origin = origin(0.0);
    let schedule = plan(&url(&origin, "/"), 60.0, 3).schedule;
    let mut expected = vec![0; 3];
    schedule.arrivals().for_each(|arrival| expected[arrival.moment.as_secs() as usize] += 1);
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let plan = LoadPlan { schedule: Arc::clone(&schedule), threads, ..burst(origin.address(), 1) };
        let result = run(plan, |_| {});
        let offered: Vec<u64> = result.totals.series.iter().map(|second| second.offered).collect();
        assert_eq!(offered, expected, "{threads} threads");
    }
}

/// The origin waits 10 ms for each request on one thread: 100 a second, and fewer when the machine is busy.
#[test]
fn capacity_is_what_the_work_allows() {
    let origin = waiting_origin(10.0);
    let rate = crate::measure_capacity(&url(&origin, "/"), 4, 2 * SECOND).unwrap();
    assert!((20.0..105.0).contains(&rate), "{rate}");
}

#[test]
fn capacity_of_a_server_that_fails_is_an_error() {
    let address = serve(b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n");
    let error = crate::measure_capacity(&format!("http://{address}/"), 1, SECOND).unwrap_err();
    assert!(matches!(error, LoadError::Capacity { completed: 0, .. }), "{error}");
}

#[test]
fn the_json_has_its_stable_keys() {
    let origin = origin(0.0);
    let json = serde_json::to_value(run(burst(origin.address(), 2), |_| {})).unwrap();
    let totals =
        ["offered", "unique_offered", "completed", "goodput", "refused", "timed_out", "abandoned", "errors"];
    assert!(totals.iter().all(|key| json[key].is_u64()), "{json}");
    for key in ["latency_ms", "refusal_ms", "ttfb_ms", "lag_us"] {
        let points = json[key].as_object().unwrap();
        assert!(
            ["p50", "p90", "p99", "p999", "p9999", "max"].iter().all(|point| points.contains_key(*point))
        );
    }
    assert!(json["saturated"].is_boolean() && json["series"][0]["offered"] == 2, "{json}");
    assert!(json["refusal_ms"]["p50"].is_null() && json["latency_ms"]["p50"].is_f64(), "{json}");
}
