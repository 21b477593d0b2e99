//! Goal: the origin does what its documentation says over real sockets. Method: plain blocking clients.

use crate::origin::{Cold, Origin, Settings};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[test]
fn it_works_and_sends_what_is_asked() {
    let origin = start(2.0);
    let check = |path: &str, wanted: &str, body_bytes: usize| {
        let answer = get(&origin, path);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(wanted), "{path}: {head}");
        assert_eq!(body.len(), body_bytes, "{path}");
    };
    check("/", "HTTP/1.1 200", 10);
    check("/bytes/100000?ms=0", "HTTP/1.1 200", 100_000);
    check("/bytes/0?ms=0", "HTTP/1.1 200", 0);
    check("/healthz", "HTTP/1.1 200", 3);
    assert!(get(&origin, "/work?ms=never").starts_with("HTTP/1.1 400"));
    assert!(get(&origin, "/bytes/x").starts_with("HTTP/1.1 400"));
}

/// One worker and three requests of 60 ms: the last answer cannot come before 180 ms of real work are done.
/// Half of that is asserted, since processors change their clock.
#[test]
fn requests_wait_for_one_another() {
    let origin = start(60.0);
    let begun = Instant::now();
    let mut clients: Vec<_> = (0..3).map(|_| send(&origin, "/")).collect();
    let health = get(&origin, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200"), "health is answered while work waits: {health}");
    for client in &mut clients {
        assert!(read(client).starts_with("HTTP/1.1 200"));
    }
    assert!(begun.elapsed() >= Duration::from_millis(90), "{:?}", begun.elapsed());
}

#[test]
fn it_answers_a_client_that_closed_its_side() {
    let origin = start(20.0);
    let mut client = send(&origin, "/");
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read(&mut client).starts_with("HTTP/1.1 200"));
}

#[test]
fn connections_are_kept_alive() {
    let origin = start(0.0);
    let mut client = TcpStream::connect(origin.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..3 {
        client.write_all(b"GET /bytes/1 HTTP/1.1\r\nhost: origin\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nw") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
}

/// Two threads that only wait, 60 ms for each request: six requests take 180 ms, and 360 ms when one is sent
/// home. Waits never end early, so the lower bounds hold on any machine.
#[test]
fn threads_wait_and_can_be_sent_home() {
    let settings = Settings { workers: NonZeroUsize::new(2).unwrap(), wait_ms: 60.0, ..settings(0.0) };
    let origin = Origin::start(settings).unwrap();
    let six_take = || {
        let begun = Instant::now();
        let mut clients: Vec<_> = (0..6).map(|_| send(&origin, "/")).collect();
        clients.iter_mut().for_each(|client| assert!(read(client).starts_with("HTTP/1.1 200")));
        begun.elapsed()
    };
    assert!(six_take() >= Duration::from_millis(180));
    assert!(post(&origin, "/workers/1").starts_with("HTTP/1.1 200"));
    assert!(six_take() >= Duration::from_millis(360));
    assert!(post(&origin, "/workers/3").starts_with("HTTP/1.1 400"));
}

/// A minute of queued work must not delay a shutdown.
#[test]
fn shutting_down_gives_up_work() {
    let origin = start(60_000.0);
    let mut waiting = [send(&origin, "/"), send(&origin, "/")];
    let begun = Instant::now();
    origin.shutdown();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for client in &mut waiting {
        // Cut or answered 503, but never left hanging.
        let answer = read(client);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let first = start(0.0);
    let settings = Settings { listen: first.address(), ..settings(0.0) };
    assert_eq!(Origin::start(settings).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    assert!(Origin::start(Settings { work_ms: f64::NAN, ..settings }).is_err());
    assert!(Origin::start(Settings { wait_ms: -1.0, ..settings }).is_err());
}

fn settings(work_ms: f64) -> Settings {
    Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        workers: NonZeroUsize::MIN,
        work_ms,
        wait_ms: 0.0,
        cold: Cold::default(),
        body_bytes: 10,
        iterations_per_ms: None,
    }
}

fn start(work_ms: f64) -> Origin {
    Origin::start(settings(work_ms)).unwrap()
}

fn get(origin: &Origin, path: &str) -> String {
    read(&mut send(origin, path))
}

fn post(origin: &Origin, path: &str) -> String {
    read(&mut ask(origin, "POST", path))
}

fn send(origin: &Origin, path: &str) -> TcpStream {
    ask(origin, "GET", path)
}

fn ask(origin: &Origin, method: &str, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(origin.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(client, "{method} {path} HTTP/1.1\r\nhost: origin\r\nconnection: close\r\n\r\n").unwrap();
    client
}

/// Bytes that the server sent until it closed; a cut connection gives those before the cut.
fn read(client: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = client.read(&mut piece) {
        answer.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(answer).unwrap()
}
