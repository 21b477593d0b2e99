//! Ten TCP flows and one that sends 9 Mb/s of UDP share 10 Mb/s, under each discipline that this kernel has:
//! what each flow gets, and how long packets wait.
//!
//! `make bench-links` runs it. Root: it makes network namespaces. In the environment: SECONDS, for which each
//! discipline is measured after ten seconds; ROUNDS; ONLY, a word that a discipline's name contains. Some
//! five minutes as they are.

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured takes its time; settings come from the environment"
)]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "no gateway is measured here")]
mod common;
#[path = "../../tests/root/links/scene.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod scene;

use std::time::Duration;

use flashweir_testkit::{PATIENCE, Process, Signal, number_from_environment};
use scene::{LINK_BITS_PER_S, RECEIVERS, ROUTER, SENDERS, Scene, Shares, Source};

const SECONDS: u64 = 30;
const ROUNDS: u64 = 1;
const SETTLE: Duration = Duration::from_secs(10);
/// Readings of the queue in a measurement.
const LOOKS: u32 = 20;
/// Fairness index that a discipline must reach to be fair to all.
const JAIN_BAR: f64 = 0.95;
const LEAST_BAR: f64 = 0.8;

/// A discipline: its name, whether senders understand marks, whether `flashweir router` divides the link, and
/// what `tc` puts behind the token bucket.
type Discipline = (&'static str, bool, bool, &'static [&'static str]);

const DISCIPLINES: &[Discipline] = &[
    ("drop-tail", false, false, &[]),
    (
        "red",
        false,
        false,
        &[
            "red",
            "limit",
            "150000",
            "min",
            "15000",
            "max",
            "45000",
            "avpkt",
            "1500",
            "burst",
            "17",
            "bandwidth",
            "10mbit",
            "probability",
            "0.1",
        ],
    ),
    ("choke", false, false, &["choke", "limit", "100", "bandwidth", "10mbit", "min", "10", "max", "30"]),
    ("fq_codel", false, false, &["fq_codel"]),
    ("sfq", false, false, &["sfq"]),
    ("codel", false, false, &["codel"]),
    ("pie", false, false, &["pie"]),
    ("purge", false, true, &[]),
    ("purge, TCP with ECN", true, true, &[]),
];

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let only = std::env::var("ONLY").unwrap_or_default();
    let measure = Duration::from_secs(number_from_environment("SECONDS", SECONDS).max(1));
    println!(
        "Ten TCP flows and 9 Mb/s of UDP over 10 Mb/s with room for 120 ms; goodput in Mb/s, {} s",
        measure.as_secs()
    );
    println!(
        "{:<22} {:>6} {:>9} {:>9} {:>12} {:>7} {:>6} {:>9}",
        "", "UDP", "TCP least", "TCP mean", "least / fair", "Jain", "used", "wait, ms"
    );
    for discipline in DISCIPLINES.iter().filter(|discipline| discipline.0.contains(&only)) {
        for _ in 0..number_from_environment("ROUNDS", ROUNDS).max(1) {
            run(discipline, measure);
        }
    }
}

fn run(&(name, marks, is_divided, tc): &Discipline, measure: Duration) {
    let Some(scene) = Scene::require(name, env!("CARGO_BIN_EXE_flashweir")) else { return };
    if !tc.is_empty() && !put(&scene, tc) {
        println!("{name:<22} skipped: this kernel has no such discipline");
        return;
    }
    for namespace in [SENDERS, RECEIVERS] {
        scene.testbed.set(namespace, "net/ipv4/tcp_ecn", if marks { "1" } else { "0" });
    }
    let router = if is_divided { scene.divide(name, &[]) } else { None };
    if is_divided && router.is_none() {
        return;
    }
    let mut flows: Vec<_> = [Source::Tcp; 10].into_iter().map(|source| scene.start(source)).collect();
    flows.insert(0, scene.start(Source::Udp(9_000_000)));
    std::thread::sleep(SETTLE);
    let (shares, waiting) = std::thread::scope(|scope| {
        let shares = scope.spawn(|| Shares::measure(&flows, Duration::ZERO, measure));
        let looks = (0..LOOKS).map(|_| {
            std::thread::sleep(measure / LOOKS);
            scene.testbed.queue(ROUTER, RECEIVERS).waiting
        });
        let waiting: u64 = looks.sum();
        (shares.join().expect("no panic"), waiting as f64 / f64::from(LOOKS))
    });
    show(name, &shares, waiting);
    drop(flows);
    end(router);
}

/// Puts a discipline behind the token bucket; whether this kernel has it.
fn put(scene: &Scene, discipline: &[&str]) -> bool {
    let bucket = ["tbf", "rate", "10mbit", "burst", "6250", "limit", "150000"];
    let root = ["qdisc", "replace", "dev", RECEIVERS, "root", "handle", "1:"];
    let made = scene.in_router("tc", &[root.as_slice(), bucket.as_slice()].concat());
    assert!(made.status.success(), "{}", made.stderr);
    let inner = ["qdisc", "add", "dev", RECEIVERS, "parent", "1:1", "handle", "10:"];
    scene.in_router("tc", &[inner.as_slice(), discipline].concat()).status.success()
}

fn show(name: &str, shares: &Shares, waiting: f64) {
    let (udp, tcp) = (shares.goodput[0], &shares.goodput[1..]);
    let least = tcp.iter().copied().fold(f64::MAX, f64::min);
    let mean = tcp.iter().sum::<f64>() / tcp.len() as f64;
    let used = shares.goodput.iter().sum::<f64>() / (shares.fair() * shares.goodput.len() as f64);
    let wait_ms = waiting * 1_514.0 * 8.0 * 1_000.0 / LINK_BITS_PER_S as f64;
    let (jain, part) = (shares.jain(), least / shares.fair());
    let verdict = if jain >= JAIN_BAR && part >= LEAST_BAR { "met" } else { "missed" };
    println!(
        "{name:<22} {:>6.2} {:>9.3} {:>9.3} {part:>12.2} {jain:>7.4} {used:>6.3} {wait_ms:>9.1}  {verdict}",
        udp / 1e6,
        least / 1e6,
        mean / 1e6,
    );
}

fn end(router: Option<Process>) {
    if let Some(router) = router {
        router.signal(Signal::Terminate);
        let finished = router.finish(PATIENCE);
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    }
}
