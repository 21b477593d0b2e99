//! Throughput of one TCP stream over a pair of interfaces, with gate and observer before the server's and
//! without.
//!
//! Every round of a variant lies between two without anything, whose mean it is compared with, all on one
//! connection, so that what else the machine does hits both alike; the processor time of a byte is compared
//! too, which it hardly hits. The stream goes to the client: the observer measures every packet of it, and
//! the gate passes every acknowledgement. On this kind of interface XDP costs more than its program, because
//! each packet is first copied into its own page: a gate that guards no server shows how much.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashweir_core::limits;
use flashweir_kernel::gate::{Attachment as GateAttachment, Hook, KernelGate, Page, Service};
use flashweir_kernel::observe::{Attachment, Observer};
use flashweir_testkit::{PATIENCE, Testbed};

use super::in_place::{Books, process_ns};
use super::{load, median};

const ROUNDS: usize = 17;
const ROUND: Duration = Duration::from_millis(200);
/// Between rounds, until the stream has found its pace again.
const SETTLING: Duration = Duration::from_millis(80);
/// Time over which the programs' own running time is read.
const BOOKS: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum loss of a stream through both programs.
const BAR: f64 = 0.03;

/// Programs that stand before the server. The stack's door is what [`Hook::Auto`] takes on this kind of
/// interface.
struct Variant {
    name: &'static str,
    observes: bool,
    /// Hook of the gate, and true if it guards the server.
    judges: Option<(Hook, bool)>,
}

const NOTHING: Variant = Variant { name: "nothing", observes: false, judges: None };
const VARIANTS: [Variant; 4] = [
    Variant { name: "observer", observes: true, judges: None },
    Variant {
        name: "a gate that guards no server, at the stack's door",
        observes: false,
        judges: Some((Hook::Generic, false)),
    },
    Variant {
        name: "gate and observer, at the stack's door",
        observes: true,
        judges: Some((Hook::Generic, true)),
    },
    Variant { name: "gate and observer, in the driver", observes: true, judges: Some((Hook::Native, true)) },
];

/// Result of a stream in a round.
#[derive(Clone, Copy)]
struct Pace {
    mb_per_s: f64,
    /// Of both ends, and of the packets they handled. What else the machine does hardly touches it.
    ns_per_byte: f64,
}

/// Measurements of a variant.
#[derive(Default)]
struct Measured {
    rates: Vec<f64>,
    /// Throughput lost, relative to the rounds around it, and processor time added to each byte.
    losses: Vec<f64>,
    efforts: Vec<f64>,
}

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
        let measured = rounds(&testbed, &listener, &mut observer, [&idle, &gate]);
        for (variant, measured) in VARIANTS.iter().zip(measured) {
            measured.show(variant.name);
        }
    }
}

impl Measured {
    fn add(&mut self, before: Pace, with: Pace, after: Pace) {
        self.rates.push(with.mb_per_s);
        // A machine that is busy with other things may let the stream stand still for a whole round.
        if [before, with, after].iter().all(|pace| pace.mb_per_s > 0.0) {
            self.losses.push(1.0 - 2.0 * with.mb_per_s / (before.mb_per_s + after.mb_per_s));
            self.efforts.push(2.0 * with.ns_per_byte / (before.ns_per_byte + after.ns_per_byte) - 1.0);
        }
    }

    fn show(self, name: &str) {
        println!("    {:>7.0}  {name}", median(self.rates));
        for (what, mut shares) in
            [("takes off", self.losses), ("adds to the processor time of a byte", self.efforts)]
        {
            shares.sort_by(f64::total_cmp);
            let [low, share, high] = [1, 2, 3].map(|quarter| 100.0 * shares[shares.len() * quarter / 4]);
            let verdict = if share <= 100.0 * BAR { "met" } else { "MISSED" };
            println!(
                "             {what} {share:.1} % (half of the rounds {low:.1} to {high:.1}); at most {:.0} %: {verdict}",
                100.0 * BAR
            );
        }
    }
}

fn rounds(
    testbed: &Testbed,
    listener: &TcpListener,
    observer: &mut Observer,
    gates: [&KernelGate; 2],
) -> [Measured; VARIANTS.len()] {
    let server: SocketAddr = listener.local_addr().expect("an address");
    let over = AtomicBool::new(false);
    let received = AtomicU64::new(0);
    let client =
        testbed.inside("client", || TcpStream::connect_timeout(&server, PATIENCE)).expect("a connection");
    let (serving, _) = listener.accept().expect("the connection");
    let mut measured: [Measured; VARIANTS.len()] = Default::default();
    let pace_with = |variant: &Variant, observer: &mut Observer| {
        let _attached = attach(testbed, variant, observer, gates);
        wait(SETTLING);
        pace(&received)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| send(serving, &over));
        scope.spawn(|| receive(client, &received));
        let mut before = pace_with(&NOTHING, observer);
        for _ in 0..ROUNDS {
            for (variant, measured) in VARIANTS.iter().zip(&mut measured) {
                let with = pace_with(variant, observer);
                let after = pace_with(&NOTHING, observer);
                measured.add(before, with, after);
                before = after;
            }
        }
        let _attached = attach(testbed, &VARIANTS[VARIANTS.len() - 1], observer, gates);
        let books = Books::open();
        wait(BOOKS);
        books.show();
        over.store(true, Ordering::Relaxed);
    });
    measured
}

type Attached = (Option<Attachment>, Option<GateAttachment>);

fn attach(
    testbed: &Testbed,
    variant: &Variant,
    observer: &mut Observer,
    gates: [&KernelGate; 2],
) -> Attached {
    testbed.inside("server", || {
        let observes = variant.observes.then(|| observer.attach("client").expect("an interface"));
        let judges = variant.judges.map(|(hook, guards)| gates[usize::from(guards)].attach("client", hook));
        (observes, judges.map(|attached| attached.expect("an interface")))
    })
}

fn pace(received: &AtomicU64) -> Pace {
    let (begun, spent_ns, before) = (Instant::now(), process_ns(), received.load(Ordering::Relaxed));
    wait(ROUND);
    let bytes = (received.load(Ordering::Relaxed) - before) as f64;
    Pace {
        mb_per_s: bytes / 1e6 / begun.elapsed().as_secs_f64(),
        ns_per_byte: (process_ns() - spent_ns) as f64 / bytes,
    }
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
