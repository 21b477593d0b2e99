//! Remains of a million refusals: sockets, kernel objects, maps. And whether each client heard how it ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use flashweir_kernel::gate::{ExcessTreatment, Hook};
use flashweir_testkit::{Process, Testbed, require_program};

use crate::arena::{CLIENT, Receiving, SERVER};
use crate::clients::Clients;
use crate::raw;
use crate::refuser::Refuser;

const ATTEMPTS: u64 = 1_000_000;
const CLIENTS: Clients = Clients { count: 64, rate_per_s: None };
/// More than enough for all attempts.
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(600);
const FLOOD: Duration = Duration::from_secs(5);
/// Sources of the flood, one for each frame of it.
const SOURCES: usize = 100_000;

pub(crate) fn measure() {
    println!("What refusals leave behind");
    let test = "what refusals leave behind";
    let Some(mut testbed) = Testbed::require(test, &[CLIENT, SERVER]) else { return };
    let [_, server] = testbed.link(CLIENT, SERVER);
    let server = SocketAddr::from((server, 8_080));
    let Refuser { gate, .. } = &Refuser::new(&testbed, server, ExcessTreatment::Answer, Hook::Native);
    let _receiving = Receiving::start(&testbed, Duration::from_micros(50));
    // What is made once and kept is no leftover.
    testbed.inside(CLIENT, || CLIENTS.ask(server, ATTEMPTS_WITHIN, 10_000));

    let before = Holdings::now(&testbed);
    let begin = Instant::now();
    let outcomes = testbed.inside(CLIENT, || CLIENTS.ask(server, ATTEMPTS_WITHIN, ATTEMPTS));
    let took = begin.elapsed();
    assert_eq!(outcomes.sum(), ATTEMPTS, "each attempt has one outcome: {outcomes:?}");
    println!("  {ATTEMPTS} attempts of real clients in {took:.1?}: {outcomes:?}");
    Holdings::now(&testbed).show_beside(&before);

    if let Some(wrk) = require_program("wrk", test) {
        let url = format!("http://{server}/");
        let arguments = ["-t1", "-c64", "-d5s", "-H", "Connection: close", &url];
        let run = || Process::run(&wrk, Path::new("/"), Duration::from_secs(30), arguments);
        let output = testbed.inside(CLIENT, run).stdout;
        let said = output.lines().filter(|line| {
            ["requests in", "Non-2xx", "Socket errors"].iter().any(|part| line.contains(part))
        });
        println!("  wrk, 64 connections, 5 s: {}", said.map(str::trim).collect::<Vec<_>>().join("; "));
    }

    let frames = raw::spoofed(server, SOURCES);
    let (before, offered) = (Holdings::now(&testbed), gate.counters().expect("counters")[0].offered);
    testbed.inside(CLIENT, || raw::flood(&frames, FLOOD, Duration::ZERO));
    let counts = gate.counters().expect("counters")[0];
    println!("  {} SYNs from {SOURCES} sources that are none, in {FLOOD:?}", counts.offered - offered);
    Holdings::now(&testbed).show_beside(&before);
    assert_eq!((counts.admitted, counts.unsent), (0, 0), "{counts:?}");
}

/// Objects that the kernel holds, by name.
struct Holdings(BTreeMap<String, i64>);

impl Holdings {
    fn now(testbed: &Testbed) -> Self {
        let mut held = BTreeMap::new();
        let slab = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
        let wanted =
            ["TCP", "request_sock_TCP", "tw_sock_TCP", "tcp_bind_bucket", "sock_inode_cache", "nf_conntrack"];
        for line in slab.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let (Some(name), Some(objects)) =
                (words.first().filter(|name| wanted.contains(name)), words.get(1))
            {
                held.insert(format!("slab objects {name}"), objects.parse().unwrap_or(-1));
            }
        }
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        for line in memory.lines() {
            let (name, rest) = line.split_once(':').unwrap_or_default();
            if ["Slab", "SUnreclaim", "Percpu"].contains(&name) {
                let kib = rest.trim().trim_end_matches(" kB").parse().unwrap_or(-1);
                held.insert(format!("memory {name}, KiB"), kib);
            }
        }
        for namespace in [CLIENT, SERVER] {
            let read = |path: &'static str| testbed.inside(namespace, move || std::fs::read_to_string(path));
            let sockets = read("/proc/thread-self/net/sockstat").unwrap_or_default();
            let words: Vec<_> = sockets
                .lines()
                .find(|line| line.starts_with("TCP:"))
                .unwrap_or_default()
                .split(' ')
                .collect();
            for pair in words[1..].chunks(2).filter(|pair| ["inuse", "tw"].contains(&pair[0])) {
                held.insert(format!("sockets of {namespace}, {}", pair[0]), pair[1].parse().unwrap_or(-1));
            }
            if let Ok(count) = read("/proc/sys/net/netfilter/nf_conntrack_count") {
                held.insert(
                    format!("connections tracked for {namespace}"),
                    count.trim().parse().unwrap_or(-1),
                );
            }
        }
        held.insert("maps of this process, KiB".to_owned(), map_bytes() / 1_024);
        Self(held)
    }

    fn show_beside(&self, before: &Self) {
        for (name, after) in &self.0 {
            let before = before.0.get(name).copied().unwrap_or_default();
            println!("    {name}: {before} before, {after} after ({:+})", after - before);
        }
    }
}

/// Memory of the maps that this process holds.
fn map_bytes() -> i64 {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").expect("descriptors").flatten();
    let texts = descriptors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let of_maps = texts.filter(|text| text.contains("map_type:"));
    let bytes = of_maps.filter_map(|text| {
        text.lines().find_map(|line| line.strip_prefix("memlock:")?.trim().parse::<i64>().ok())
    });
    bytes.sum()
}
