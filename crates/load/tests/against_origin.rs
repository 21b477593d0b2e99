//! Goal: the ledger tells the truth about real servers. Method: short runs over loopback against the origin and
//! against servers that misbehave; counts are exact, times have wide bounds since the machine is shared.

use flashweir_load::{Connections, LoadError, LoadPlan, LoadResult, Schedule, StopFlag, Target};
use flashweir_origin::{Origin, Settings};
use flashweir_workload::{ArrivalProcess, RateProfile};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_fast_server_completes_everybody() {
    let origin = origin(0.0);
    for connections in [Connections::New, Connections::KeepAlive] {
        let plan = LoadPlan {
            sources: 50,
            connections,
            threads: NonZeroUsize::new(2).unwrap(),
            patience: 20 * SECOND,
            good_within: 10 * SECOND,
            ..plan(&url(&origin, "/bytes/100"), 100.0, 2)
        };
        let offered = plan.schedule.moments().count() as u64;
        let mut told = Vec::new();
        let result = run(plan, |progress| told.push(*progress));
        assert_eq!((result.offered, result.completed, result.goodput), (offered, offered, offered));
        assert_eq!((result.sent, result.unique_offered), (offered, offered));
        assert_eq!(result.latency_ms.count, offered);
        assert!(
            result.ttfb_ms.p50 <= result.latency_ms.p50 && result.latency_ms.p50 <= result.latency_ms.max
        );
        assert!(told.len() >= 5, "progress was told {} times", told.len());
        assert_eq!(told.last().unwrap().totals.completed, offered);
        assert!(told.iter().is_sorted_by_key(|progress| progress.totals.offered));
    }
}

/// 200 arrivals a second at a server that can do about 20: whatever becomes of each, the books add up, and
/// the run ends soon after the last person's patience.
#[test]
fn an_overloaded_server_times_people_out_and_the_books_add_up() {
    let origin = origin(50.0);
    let plan = LoadPlan {
        patience: Duration::from_millis(600),
        good_within: Duration::from_millis(300),
        ..plan(&url(&origin, "/"), 200.0, 2)
    };
    let begun = Instant::now();
    let result = run(plan, |_| {});
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
        let result = run(burst(address, 3), |_| {});
        let errors: Vec<_> = result.errors_by_kind.into_iter().collect();
        assert_eq!(errors, [(wanted, 3)], "{}", String::from_utf8_lossy(answer));
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
    let result = run(burst(ours, 4), |_| {});
    assert_eq!((result.refused, result.completed, result.refusal_ms.count), (4, 0, 4));
    assert_eq!(result.refused_by_reason.get("flash_crowd"), Some(&4));
    let theirs = serve(b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(run(burst(theirs, 2), |_| {}).refused_by_reason.get("other"), Some(&2));
}

/// A server that accepts and never answers holds nobody longer than their patience.
#[test]
fn silence_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let patience = Duration::from_millis(200);
    let plan = LoadPlan { patience, ..burst(listener.local_addr().unwrap(), 5) };
    let result = run(plan, |_| {});
    assert_eq!(result.timed_out, 5);
}

#[test]
fn an_absent_server_is_told_at_once() {
    let address = free_address();
    let begun = Instant::now();
    let error = flashweir_load::run(plan(&format!("http://{address}/"), 10.0, 60), |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
    assert!(begun.elapsed() < 10 * SECOND);
    let error = flashweir_load::measure_capacity(&format!("http://{address}/"), 2, SECOND).unwrap_err();
    assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
}

/// A server that goes away after the first look is an error of each person, not of the run.
#[test]
fn a_server_that_vanishes_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let vanish = std::thread::spawn(move || drop(listener.accept()));
    let moments = [1000, 1050, 1100].map(Duration::from_millis);
    let result = run(LoadPlan { schedule: fixed(&moments), ..burst(address, 1) }, |_| {});
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
    assert!((10..500).contains(&result.offered), "{}", result.offered);
}

/// Two threads and one give the same people at the same moments: the schedule does not depend on them.
#[test]
fn seconds_of_the_series_are_those_of_the_schedule() {
    let origin = origin(0.0);
    let schedule = plan(&url(&origin, "/"), 60.0, 3).schedule;
    let mut expected = vec![0; 3];
    schedule.moments().for_each(|moment| expected[moment.as_secs() as usize] += 1);
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let plan = LoadPlan { schedule: schedule.clone(), threads, ..burst(origin.address(), 1) };
        let result = run(plan, |_| {});
        let offered: Vec<u64> = result.series.iter().map(|second| second.offered).collect();
        assert_eq!(offered, expected, "{threads} threads");
    }
}

/// The origin does 10 ms of processor time a request on one thread: about 100 a second, fewer when the machine
/// is busy, a few more when its clock is faster than at calibration.
#[test]
fn capacity_is_what_the_work_allows() {
    let origin = origin(10.0);
    let rate = flashweir_load::measure_capacity(&url(&origin, "/"), 4, 2 * SECOND).unwrap();
    assert!((20.0..160.0).contains(&rate), "{rate}");
}

#[test]
fn capacity_of_a_server_that_fails_is_an_error() {
    let address = serve(b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n");
    let error = flashweir_load::measure_capacity(&format!("http://{address}/"), 1, SECOND).unwrap_err();
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

/// Runs a plan and checks what every run must satisfy.
fn run(plan: LoadPlan, progress: impl FnMut(&flashweir_load::Progress)) -> LoadResult {
    let result = flashweir_load::run(plan, progress).unwrap();
    assert_eq!(result.in_flight, 0, "{result:?}");
    let settled = result.completed + result.refused + result.timed_out + result.errors;
    assert_eq!(result.offered, settled, "{result:?}");
    assert_eq!(result.lag_us.count, result.offered);
    for (second, wanted) in result.series.iter().zip(0..) {
        assert_eq!(second.second, wanted);
        let settled = second.completed + second.refused + second.timed_out + second.errors;
        assert_eq!(second.offered, settled, "{second:?}");
    }
    assert_eq!(result.series.iter().map(|second| second.offered).sum::<u64>(), result.offered);
    assert_eq!(result.series.iter().map(|second| second.goodput).sum::<u64>(), result.goodput);
    result
}

fn plan(url: &str, rate: f64, seconds: u32) -> LoadPlan {
    let profile = RateProfile::constant(rate, seconds * SECOND).unwrap();
    let schedule = Schedule::Drawn { process: ArrivalProcess::Poisson(profile), seed: 5 };
    LoadPlan::new(Target::parse(url).unwrap(), schedule)
}

/// So many people at once, patient enough for a busy machine.
fn burst(address: SocketAddr, people: usize) -> LoadPlan {
    let target = Target::parse(&format!("http://{address}/")).unwrap();
    LoadPlan { patience: 20 * SECOND, ..LoadPlan::new(target, fixed(&vec![Duration::ZERO; people])) }
}

fn fixed(moments: &[Duration]) -> Schedule {
    Schedule::Fixed(moments.into())
}

fn origin(work_ms: f64) -> Origin {
    let listen = ([127, 0, 0, 1], 0).into();
    Origin::start(Settings {
        listen,
        workers: NonZeroUsize::MIN,
        work_ms,
        body_bytes: 10,
        iterations_per_ms: None,
    })
    .unwrap()
}

fn url(origin: &Origin, path: &str) -> String {
    format!("http://{}{path}", origin.address())
}

/// A server that reads each request's head, sends these bytes and closes. It lives as long as the test process.
fn serve(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|client| answer_once(client, answer)));
    address
}

/// A client that only looks whether somebody listens sends nothing, and gets nothing.
fn answer_once(mut client: TcpStream, answer: &[u8]) {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut piece) {
            Ok(read @ 1..) => request.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
    // A client that has gone is the test's own doing.
    let _ = client.write_all(answer);
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
