//! Events a second: the bare queue, the event hash, and whole networks. Prints one line each.

use flashweir_core::{Duration, Instant, Rng};
use flashweir_sim::engine::{EventHash, Queue};
use flashweir_sim::network::{
    Buffer, FlowSettings, Happening, LinkSettings, Network, NetworkError, NoStage, Response, TcpSettings,
};
use std::hint::black_box;
use std::time::Instant as Clock;

fn main() {
    for waiting in [100, 1_000, 10_000, 100_000] {
        queue(waiting);
    }
    hash();
    bulk().expect("a network within its bounds");
    crowd().expect("a network within its bounds");
}

/// The usual "hold" measurement: take the next event, schedule another a random time later.
fn queue(waiting: u64) {
    let mut rng = Rng::new(1);
    let mut queue = Queue::new();
    for event in 0..waiting {
        queue.schedule(Instant::from_nanos(rng.below(1_000_000)), event).expect("bound");
    }
    report(&format!("queue, {waiting} waiting"), 10_000_000, || {
        for event in 0..10_000_000 {
            let Some((now, _)) = queue.pop() else { return };
            let later = now + Duration::from_nanos(rng.below(1_000_000));
            queue.schedule(later, black_box(event)).expect("bound");
        }
    });
}

fn hash() {
    let mut hash = EventHash::new();
    report("event hash", 10_000_000, || {
        for event in 0..10_000_000u64 {
            hash.fold(Instant::from_nanos(event), 1, event);
        }
    });
    black_box(hash.value());
}

/// One long flow fills a link of 100 Mb/s.
fn bulk() -> Result<(), NetworkError> {
    let mut network = Network::new(1);
    let (client, server) = (network.add_node()?, network.add_node()?);
    let link = LinkSettings::drop_tail(100_000_000, Duration::from_millis(10), Buffer::Packets(200));
    network.add_wire(client, server, &link)?;
    let route = network.add_route(client, server)?;
    let tcp = network.add_tcp(TcpSettings::modern())?;
    let response = Response::Bytes(u64::MAX);
    network.open(Instant::ZERO, FlowSettings { route, tcp, request_bytes: 300, response, token: 0 })?;
    report_network("network, one long flow", network, Instant::from_secs(300), |_, _| Ok(()))
}

/// A thousand clients behind links of their own ask for small pages, 200 a second, through one router whose
/// link of 16 Mb/s is short of room: the shape of the NEWS experiments.
fn crowd() -> Result<(), NetworkError> {
    let mut network = Network::new(1);
    let mut rng = Rng::new(1);
    let (router, server) = (network.add_node()?, network.add_node()?);
    let bottleneck = LinkSettings::drop_tail(16_000_000, Duration::from_millis(10), Buffer::Packets(100));
    network.add_wire(router, server, &bottleneck)?;
    let mut routes = Vec::new();
    for client in 0..1_000 {
        let node = network.add_node()?;
        let delay = Duration::from_millis(1 + client % 200);
        network.add_wire(node, router, &LinkSettings::drop_tail(1_000_000, delay, Buffer::Packets(50)))?;
        routes.push(network.add_route(node, server)?);
    }
    let tcp = network.add_tcp(TcpSettings::of_2003())?;
    network.wake_at(Instant::ZERO, 0)?;
    report_network(
        "network, 1000 clients, 200 pages/s",
        network,
        Instant::from_secs(300),
        move |network, now| {
            let route = routes[rng.below(1_000) as usize];
            let response = Response::Bytes(rng.exponential(10_000.0) as u64);
            network.open(now, FlowSettings { route, tcp, request_bytes: 300, response, token: 0 })?;
            network.wake_at(now + Duration::from_secs_f64(rng.exponential(0.005)), 0)
        },
    )
}

fn report_network(
    what: &str,
    mut network: Network,
    until: Instant,
    mut woken: impl FnMut(&mut Network, Instant) -> Result<(), NetworkError>,
) -> Result<(), NetworkError> {
    let start = Clock::now();
    let mut flows = 0;
    while let Some((now, happening)) = network.next(&mut NoStage, until)? {
        match happening {
            Happening::Woken { .. } => woken(&mut network, now)?,
            _ => flows += 1,
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (events, sent) = (network.hash().events(), network.packets().sent);
    print_line(what, events, seconds);
    println!(
        "    {sent} packets, {flows} flows ended, {:.0} simulated seconds a second, hash {:016x}",
        until.as_secs_f64() / seconds,
        network.hash().value()
    );
    Ok(())
}

fn report(what: &str, events: u64, work: impl FnOnce()) {
    let start = Clock::now();
    work();
    print_line(what, events, start.elapsed().as_secs_f64());
}

fn print_line(what: &str, events: u64, seconds: f64) {
    println!(
        "{what:<44} {:>7.2} M events/s  {:>6.1} ns each",
        events as f64 / seconds / 1e6,
        seconds * 1e9 / events as f64
    );
}
