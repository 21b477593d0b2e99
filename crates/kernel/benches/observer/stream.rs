//! Throughput of one TCP stream over a pair of interfaces, with gate and observer before the server's and without.
//!
//! The rounds of all variants take turns on one connection and each is compared with the round without anything right
//! before, so that what else the machine does hits all alike. The stream goes to the client: the observer measures every
//! packet of it, and the gate passes every acknowledgement. On this kind of interface XDP costs more than its program,
//! because each packet is first copied into a page of its own: a gate that guards nobody shows how much.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashweir_core::limits;
use flashweir_kernel::gate::{Attachment as GateAttachment, Hook, KernelGate, Page, Service};
use flashweir_kernel::observe::{Attachment, Observer};
use flashweir_testkit::{PATIENCE, Testbed};

use super::in_place::Books;
use super::{load, median};

const ROUNDS: usize = 21;
const ROUND: Duration = Duration::from_millis(300);
/// Between rounds, until the stream has found its pace again.
const SETTLING: Duration = Duration::from_millis(150);
/// For so long the programs' own time is looked at.
const BOOKS: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 << 10;
/// What both may take off a stream.
const BAR: f64 = 0.03;

const VARIANTS: [&str; 4] = ["nothing", "observer", "a gate that guards nobody", "gate and observer"];

pub(crate) fn measure() {
    println!("Throughput of a TCP stream, MB/s (median of {ROUNDS} rounds of {} ms each)", ROUND.as_millis());
    for (offload, name) in
        [("off", "one packet at a time"), ("on", "with the offloads of interfaces (TSO, GRO)")]
    {
        let Some(mut testbed) = Testbed::require("pass-through", &["client", "server"]) else { return };
        let [_, server] = testbed.link("client", "server");
        for (namespace, interface) in [("client", "server"), ("server", "client")] {
            set_offloads(&testbed, namespace, interface, offload);
        }
        let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
        let server = listener.local_addr().expect("an address");
        let Some(mut observer) = load(limits::KERNEL_FLOWS_DEFAULT) else { return };
        observer.watch(&[server]).expect("an address");
        let mut gate = KernelGate::load().expect("what loads the observer loads the gate");
        let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
        gate.set_services(vec![service]).expect("a service");
        println!("  {name}:");
        let idle = KernelGate::load().expect("as the other");
        let rates = rounds(&testbed, &listener, &mut observer, [&idle, &gate]);
        for (variant, rates_here) in VARIANTS.iter().zip(&rates) {
            // A machine that is busy with other things may let the stream stand still for a whole round.
            let pairs = rates_here.iter().zip(&rates[0]).filter(|(_, without)| **without > 0.0);
            let shares = pairs.map(|(with, without)| 1.0 - with / without);
            let share = median(shares.collect());
            let verdict = if share <= BAR { "within" } else { "ABOVE" };
            let rate = median(rates_here.clone());
            println!("    {rate:>7.0}  {variant} ({:+.1} %; {verdict} {:.0} %)", -100.0 * share, 100.0 * BAR);
        }
    }
}

fn rounds(
    testbed: &Testbed,
    listener: &TcpListener,
    observer: &mut Observer,
    gates: [&KernelGate; 2],
) -> [Vec<f64>; VARIANTS.len()] {
    let server: SocketAddr = listener.local_addr().expect("an address");
    let over = AtomicBool::new(false);
    let received = AtomicU64::new(0);
    let client =
        testbed.inside("client", || TcpStream::connect_timeout(&server, PATIENCE)).expect("a connection");
    let (serving, _) = listener.accept().expect("the connection");
    let mut rates = [const { Vec::new() }; VARIANTS.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| send(serving, &over));
        scope.spawn(|| receive(client, &received));
        for _ in 0..ROUNDS {
            for (variant, rates) in rates.iter_mut().enumerate() {
                let _attached = attach(testbed, variant, observer, gates);
                wait(SETTLING);
                rates.push(rate_mb_per_s(&received));
            }
        }
        let _attached = attach(testbed, VARIANTS.len() - 1, observer, gates);
        let books = Books::open();
        wait(BOOKS);
        books.show();
        over.store(true, Ordering::Relaxed);
    });
    rates
}

type Attached = (Option<Attachment>, Option<GateAttachment>);

/// What belongs to a variant, by its number.
fn attach(testbed: &Testbed, variant: usize, observer: &mut Observer, gates: [&KernelGate; 2]) -> Attached {
    testbed.inside("server", || {
        let observes = (variant % 2 == 1).then(|| observer.attach("client").expect("an interface"));
        let judges = variant.checked_sub(2).map(|gate| gates[gate].attach("client", Hook::Native));
        (observes, judges.map(|attached| attached.expect("an interface")))
    })
}

fn rate_mb_per_s(received: &AtomicU64) -> f64 {
    let (begun, before) = (Instant::now(), received.load(Ordering::Relaxed));
    wait(ROUND);
    let bytes = received.load(Ordering::Relaxed) - before;
    bytes as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

fn wait(during: Duration) {
    let until = Instant::now() + during;
    while let Some(rest) = until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

fn send(mut stream: TcpStream, over: &AtomicBool) {
    let chunk = vec![b'x'; CHUNK_BYTES];
    while !over.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {}
}

fn receive(mut stream: TcpStream, received: &AtomicU64) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
        received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn set_offloads(testbed: &Testbed, namespace: &str, interface: &str, state: &str) {
    for feature in ["tx", "sg", "tso", "gso", "gro"] {
        let name = testbed.full_name(namespace);
        let arguments = ["netns", "exec", &name, "ethtool", "-K", interface, feature, state];
        let output = Command::new("ip").args(arguments).output().expect("ip runs");
        assert!(output.status.success(), "{feature}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
