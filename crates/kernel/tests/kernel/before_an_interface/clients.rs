//! Real clients in front of a gate that refuses.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashweir_kernel::gate::{ExcessTreatment, Hook};
use flashweir_testkit::{Curl, PATIENCE, eventually};

use crate::before_an_interface::bench::{Bench, Family, echo};

#[test]
fn curl_is_answered_reset_or_left_alone_and_who_is_connected_stays_so() {
    for (hook, family) in
        [(Hook::Native, Family::V4), (Hook::Generic, Family::V4), (Hook::Native, Family::V6)]
    {
        let name = format!("kernel gate before an interface, {hook:?}, {family:?}");
        let Some(mut bench) = Bench::require(&name, hook, family) else { return };
        let Some(curl) = Curl::require(&name) else { return };
        let mut connection = bench.connection();
        echo(&mut connection, b"before");

        bench.close(ExcessTreatment::Answer);
        for method in [&[][..], &["--head"], &["--data", "a=b"], &["--http1.0"]] {
            let answer = bench.curl(&curl, method);
            assert_eq!((answer.code, answer.status), (0, 503), "{method:?}: {}", answer.stderr);
            let fields = format!("{:?}", answer.fields);
            let retry_after = answer.fields.first("retry-after").unwrap_or_else(|| panic!("{fields}"));
            assert!((10..=20).contains(&retry_after.trim().parse::<u32>().expect("seconds")), "{fields}");
            assert_eq!(
                answer.fields.first("flashweir-decision").map(str::trim),
                Some("kernel; reason=flash_crowd"),
                "{fields}"
            );
            // For HEAD, curl writes the head where a body would be.
            let end = if method == ["--head"] {
                "reason=flash_crowd\r\n\r\n"
            } else {
                "Too busy: please try again shortly.\n"
            };
            assert!(answer.text().ends_with(end), "{method:?}: {}", answer.text());
            echo(&mut connection, b"GET / HTTP/1.1\r\n\r\n");
        }
        // A client that sends something longer than a segment, and one that sends its request in pieces.
        let long = "x".repeat(6_000);
        let answer = bench.curl(&curl, &["--header", &format!("X-Long: {long}")]);
        assert_eq!((answer.code, answer.status), (0, 503), "{}", answer.stderr);
        let mut slow = bench.connect().expect("a handshake with the gate");
        slow.write_all(b"G").expect("room");
        let mut whole = String::new();
        slow.read_to_string(&mut whole).expect("a response to its end");
        assert!(whole.starts_with("HTTP/1.1 503 "), "{whole}");

        bench.close(ExcessTreatment::Reset);
        assert_eq!(bench.connect().expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        assert_eq!(bench.curl(&curl, &[]).code, 7, "curl: could not connect");
        echo(&mut connection, b"meanwhile");

        bench.close(ExcessTreatment::Drop);
        assert_eq!(bench.curl(&curl, &["--connect-timeout", "1"]).code, 28, "curl: timed out");
        echo(&mut connection, b"after");

        let counts = bench.gate.counters().expect("counters")[0];
        assert_eq!((counts.admitted, counts.unsent), (1, 0), "{counts:?}");
        assert_eq!((counts.answered, counts.late_resets), (6, 0), "{counts:?}");
        assert!(counts.responses >= 6 && counts.reset == 2 && counts.dropped >= 1, "{counts:?}");
    }
}

/// Sockets of TCP in the server's namespace, and connections that wait there for stray segments (of
/// `/proc/net/sockstat`; its other numbers are the whole machine's).
fn sockets(bench: &Bench) -> [Option<String>; 2] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/sockstat");
    let text = bench.testbed.inside("server", read).expect("a kernel with TCP");
    let line = text.lines().find(|line| line.starts_with("TCP:")).expect("its line");
    ["inuse", "tw"].map(|name| line.split(' ').skip_while(|word| *word != name).nth(1).map(str::to_owned))
}

#[test]
#[ignore = "real load: make test-load"]
fn ten_thousand_refusals_leave_nothing_behind_under_load() {
    const CLIENTS: usize = 4;
    const REFUSALS: usize = 10_000;
    let Some(mut bench) = Bench::require("10,000 refusals by the kernel gate", Hook::Native, Family::V4)
    else {
        return;
    };
    bench.close(ExcessTreatment::Answer);
    // The test itself may take longer than the gate waits for a beat.
    bench.gate.fail_closed(true).expect("a flag");
    let before = sockets(&bench);
    let done = AtomicUsize::new(0);
    let server = bench.server;
    bench.testbed.inside("client", || {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while done.fetch_add(1, Ordering::Relaxed) < REFUSALS {
                        let mut stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a handshake");
                        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
                        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("room");
                        let mut response = Vec::new();
                        stream.read_to_end(&mut response).expect("a response to its end");
                        assert!(response.starts_with(b"HTTP/1.1 503 "), "{response:?}");
                    }
                });
            }
        });
    });
    let counts = bench.gate.counters().expect("counters")[0];
    assert!(counts.answered >= 10_000 && counts.responses >= 10_000, "{counts:?}");
    assert_eq!((counts.unique_offered, counts.admitted), (10_000, 0), "{counts:?}");
    assert_eq!(sockets(&bench), before);
    // Nor at the client: each connection was closed by both sides, the gate first, so neither waits for
    // anything.
    let left = || std::fs::read_to_string("/proc/thread-self/net/tcp").expect("a kernel with TCP");
    eventually("the last connections' end", || {
        (bench.testbed.inside("client", left).lines().count() == 1).then_some(())
    });
}
