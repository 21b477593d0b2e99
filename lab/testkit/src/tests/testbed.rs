//! Network namespaces are made, carry bytes, and are gone afterwards, also after a failure.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Testbed, TokenBucket};

fn path(testbed: &Testbed, namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(testbed.full_name(namespace))
}

/// Sends `text` from one namespace to a listener in the other; how long the handshake took.
fn send(testbed: &Testbed, from: &str, to: &str, address: Ipv4Addr, text: &str) -> Duration {
    let listener = testbed.inside(to, || TcpListener::bind((address, 0))).expect("a separate address");
    let port = listener.local_addr().expect("an address").port();
    let begun = Instant::now();
    let patience = crate::PATIENCE;
    let connect = || TcpStream::connect_timeout(&(address, port).into(), patience);
    let mut sender = testbed.inside(from, connect).expect("a connection");
    let took = begun.elapsed();
    let (mut receiver, peer) = listener.accept().expect("the connection");
    assert!(!peer.ip().is_loopback());
    receiver.set_read_timeout(Some(patience)).expect("a time limit");
    sender.write_all(text.as_bytes()).expect("room");
    drop(sender);
    let mut received = String::new();
    receiver.read_to_string(&mut received).expect("the text");
    assert_eq!(received, text);
    took
}

#[test]
fn who_looks_into_a_namespace_now_and_then_rests_in_between() {
    let Some(testbed) = Testbed::require("a look into a namespace", &["one"]) else { return };
    let (began, rest) = (Instant::now(), Duration::from_millis(20));
    for _ in 0..3 {
        testbed.inside("one", || ());
        std::thread::park_timeout(rest);
    }
    assert!(began.elapsed() >= 3 * rest, "three rests of 20 ms took {:?}", began.elapsed());
}

#[test]
fn packets_cross_a_router_with_a_token_bucket_and_nothing_is_left() {
    let names = ["client", "router", "server"];
    let Some(mut testbed) = Testbed::require("a routed testbed", &names) else { return };
    let [client, inner] = testbed.link("client", "router");
    let delay = Duration::from_millis(10);
    let [outer, server] = testbed.long_link("router", "server", delay);
    testbed.route("client", server, inner);
    testbed.route("server", client, outer);
    testbed.set("router", "net/ipv4/ip_forward", "1");
    let bucket = TokenBucket { rate_bits_per_s: 10_000_000, burst_bytes: 3_028, limit_bytes: 15_140 };
    testbed.shape("router", "client", bucket);

    let text = "from the far side ".repeat(1_000);
    let took = send(&testbed, "server", "client", client, &text);

    assert!(took >= 2 * delay, "a round trip of 20 ms took {took:?}");
    let books = testbed.queue("router", "client");
    // 18,000 bytes need 13 packets of 1500.
    assert!(books.sent >= 13, "{books:?}");
    assert_eq!(testbed.lost_on_long_links(), 0);
    let paths = names.map(|name| path(&testbed, name));
    assert!(paths.iter().all(|path| path.exists()));
    drop(testbed);
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn a_failed_test_leaves_nothing() {
    let Some(mut testbed) = Testbed::require("a testbed that fails", &["one", "other"]) else { return };
    let [_, address] = testbed.link("one", "other");
    send(&testbed, "one", "other", address, "hello");
    let path = path(&testbed, "one");
    let failed = catch_unwind(AssertUnwindSafe(move || {
        testbed.inside("one", || panic!("the test's own failure"));
    }));
    assert!(failed.is_err());
    assert!(!path.exists());
}

#[test]
fn what_a_killed_process_left_is_removed_and_nothing_else() {
    let Some(testbed) = Testbed::require("a testbed after a crash", &["one"]) else { return };
    let mut child = Command::new("true").spawn().expect("a program that ends");
    let gone = child.id();
    child.wait().expect("its end");
    let left = format!("flashweir-{gone}-0-one");
    let status = Command::new(crate::require_program("ip", "a testbed after a crash").expect("seen above"))
        .args(["netns", "add", &left])
        .status()
        .expect("ip");
    assert!(status.success());
    let next = Testbed::require("a testbed after a crash", &[]);
    assert!(next.is_some() && !Path::new("/run/netns").join(left).exists());
    assert!(path(&testbed, "one").exists(), "its maker lives");
}
