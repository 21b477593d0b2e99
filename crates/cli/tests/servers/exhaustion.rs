//! Clients that make up names: hosts, URLs, API keys and addresses that come once and never again.
//!
//! Goal: a request costs the same, and the gateway is as large, after the millionth name as after the first
//! thousand. Method: requests in which every distinguishable name is new, through the real binary, over few
//! connections; the kernel's account of its processor time and memory before and after; its own counters of
//! what it replaced.
//!
//! Twin in virtual time of the tests under load: `admission`,
//! `ten_million_keys_allocate_nothing_and_take_no_more_memory`.

use std::fmt::Write as _;
use std::net::SocketAddr;

use flashweir_testkit::{Client, Connection, Flashweir, Gateway, GatewayBuilder, Upstream};

/// Requests on their way at once on each of the connections.
const PIPELINED: u64 = 100;
/// Of the run that is part of every test run.
const SHORT: u64 = 24_000;
/// Maximum growth of all tables together, bytes: most are made at start, some with the first that comes.
const GROWTH_BYTES: u64 = 24 << 20;
/// The cost of a request may be this much higher at the end; the first requests find cold caches, so it is
/// mostly lower.
const COST_RATIO: f64 = 2.0;

#[test]
#[ignore = "real load: make test-load"]
fn names_that_come_once_leave_nothing_behind_under_load() {
    exhaust(SHORT);
}

#[test]
#[ignore = "a million requests: cargo test -p flashweir-cli --test servers exhaustion:: -- --ignored --nocapture"]
fn a_million_names_leave_nothing_behind() {
    exhaust(1_000_000);
}

/// Answers each head that ends, and remembers none of them.
fn server() -> Upstream {
    Upstream::start(|connection: &mut Connection| {
        const END: &[u8] = b"\r\n\r\n";
        let mut unread = Vec::new();
        loop {
            let bytes = connection.read_some(64 << 10);
            if bytes.is_empty() {
                return;
            }
            unread.extend(bytes);
            let heads = unread.windows(END.len()).filter(|window| *window == END).count();
            let kept = unread.len().min(END.len() - 1);
            if heads > 0 && unread.ends_with(END) {
                unread.clear();
            } else {
                unread.drain(..unread.len() - kept);
            }
            if !(0..heads).all(|_| connection.answer(200, "", "ok")) {
                return;
            }
        }
    })
}

/// Requests of which every name is new, from number `first` on.
fn names(first: u64, count: u64) -> String {
    (first..first + count).fold(String::new(), |mut text, number| {
        let [_, _, _, _, _, high, middle, low] = number.to_be_bytes();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "GET /page/{number}?x={number} HTTP/1.1\r\nHost: h{number}.example\r\nX-Api-Key: key-{number}\r\nUser-Agent: a{number}\r\n\
             Cookie: session={number}\r\nX-Forwarded-For: {}.{high}.{middle}.{low}\r\n\r\n",
            11 + number % 100
        );
        text
    })
}

/// Processor time of a process so far, ticks of a hundredth of a second.
fn ticks(gateway: &Gateway) -> u64 {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", gateway.process().id())).expect("a living process");
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    // User and system time are fields 14 and 15; the name is the second.
    behind_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("ticks")).sum()
}

/// Sends names from `first` on, over some connections at once; gives answers that are no 200.
fn send(address: SocketAddr, first: u64, count: u64) -> u64 {
    const CONNECTIONS: u64 = 4;
    let each = count / CONNECTIONS;
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|connection| scope.spawn(move || send_over_one(address, first + connection * each, each)))
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).sum()
    })
}

fn send_over_one(address: SocketAddr, first: u64, count: u64) -> u64 {
    let mut client = Client::connect(address);
    let (mut sent, mut refused) = (0, 0);
    while sent < count {
        let batch = PIPELINED.min(count - sent);
        client.send(names(first + sent, batch));
        refused += (0..batch).filter(|_| client.response().status() != 200).count() as u64;
        sent += batch;
    }
    refused
}

fn exhaust(requests: u64) {
    let upstream = server();
    let gateway = GatewayBuilder::new(&Flashweir::new(env!("CARGO_BIN_EXE_flashweir")))
        .upstream(&upstream.url())
        .set("client.trusted_proxies", "[\"127.0.0.0/8\"]")
        // A class that distinguishes clients by their API keys.
        .set("class", "[{ name = \"api\", match = { path = \"/page/\" }, fair_by = { header = \"x-api-key\" } }, { name = \"rest\" }]")
        .start();
    let part = requests / 6;
    // The first part makes what is made once.
    let mut refused = send(gateway.address(), 0, part);
    let (bytes, mut before) = (gateway.process().resident_bytes(), ticks(&gateway));
    let mut costs = Vec::new();
    for index in 1..6 {
        refused += send(gateway.address(), index * part, part);
        let now = ticks(&gateway);
        costs.push((now - before) as f64 * 10_000.0 / part as f64);
        before = now;
    }
    gateway.wait_in_flight(0);
    let grown = gateway.process().resident_bytes().saturating_sub(bytes);
    let metrics = gateway.metrics();
    let replaced =
        |table: &str| metrics.value(&format!("flashweir_table_replacements_total{{table=\"{table}\"}}"));
    println!(
        "{requests} names: {costs:.0?} µs of processor time a request, {} kB more memory, {refused} refused, {} hosts replaced",
        grown >> 10,
        replaced("hosts"),
    );
    assert!(grown < GROWTH_BYTES, "{grown} bytes more after {requests} names");
    let (first, last) = (costs[0], costs[costs.len() - 1]);
    assert!(last < first * COST_RATIO, "{first} µs a request at first and {last} µs at the end");
    assert!(replaced("hosts") > 0.0, "the table of hosts is bounded, and has made room");
}
