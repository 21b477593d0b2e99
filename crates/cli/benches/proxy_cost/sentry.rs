//! Flashweir, refusing by the limit that its sentry has learned.

use crate::Job;
use crate::common_servers::{Directory, reserve_port};
use crate::servers::{self, Candidate};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// More than the sentry lets an origin have that has not answered once.
const HELD_AT_MOST: usize = 100;
/// A request that is not refused within this time is in flight.
const REFUSED_WITHIN: Duration = Duration::from_millis(300);
const START_WITHIN: Duration = Duration::from_secs(10);
/// The reasons that are the sentry's own.
const REASONS: [&str; 4] = ["capacity", "deadline", "reserved", "client_share"];

/// A gateway that refuses every request, as its origin, which never answers, is full and the queue is empty
/// by configuration. `None`, and a line that says so, if this build has no sentry.
///
/// # Panics
/// When it refuses for another reason, or does not refuse at all.
pub(crate) fn flashweir(directory: &Directory) -> Option<Candidate> {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let upstream_port = silent.local_addr().expect("a bound listener").port();
    let (port, admin) = (reserve_port(), reserve_port());
    let config = directory.write(
        &format!("sentry-{port}.toml"),
        &format!(
            "listen.address = \"127.0.0.1:{port}\"\nadmin.address = \"127.0.0.1:{admin}\"\n\
             upstream.urls = [\"http://127.0.0.1:{upstream_port}\"]\nupstream.response_header_timeout = \"10m\"\n\
             [[class]]\nname = \"everybody\"\nqueue = 0\n"
        ),
    );
    let binary = env!("CARGO_BIN_EXE_flashweir");
    let run = ["-c", "0", binary, "run", "--workers", "1", "--config"];
    let mut process = servers::start(Command::new("taskset").args(run).arg(config));
    let deadline = Instant::now() + START_WITHIN;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if process.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            eprintln!("proxy_cost: refusing by the sentry is skipped: it does not start with a class");
            return None;
        }
        assert!(Instant::now() < deadline, "flashweir does not listen on port {port} after ten seconds");
        std::thread::yield_now();
    }
    let clients = hold_until_refused(port);
    Some(servers::candidate(
        "flashweir, sentry",
        Job::Refuse,
        port,
        process,
        Vec::new(),
        Some((silent, clients)),
    ))
}

fn hold_until_refused(port: u16) -> Vec<TcpStream> {
    let mut held = Vec::new();
    while held.len() < HELD_AT_MOST {
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("flashweir listens");
        client.set_read_timeout(Some(REFUSED_WITHIN)).expect("a time above zero");
        client.write_all(b"GET / HTTP/1.1\r\nHost: held\r\n\r\n").expect("a request");
        let mut head = [0; 2_048];
        match client.read(&mut head) {
            Ok(read) => {
                let head = String::from_utf8_lossy(&head[..read]);
                let is_sentry = REASONS.iter().any(|reason| head.contains(&format!("reason={reason}")));
                assert!(is_sentry, "refused, but not by the sentry: {head}");
                return held;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                held.push(client)
            }
            Err(error) => panic!("a held request broke: {error}"),
        }
    }
    panic!("the sentry let {HELD_AT_MOST} requests to an origin that never answered");
}
