//! The flow in the simulator.

use std::time::Duration as RealDuration;

use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{
    Buffer, FlowSettings, LinkSettings, Network, NetworkError, NoStage, Recovery, Response, TcpSettings,
};

use crate::point::{FRAME_BYTES, Flow, LOOK_EVERY, Point, REQUEST_BYTES, goodputs, looks};

/// Rate that stands for the testbed's wires, which have none set.
const FAST_BITS_PER_S: u64 = 10_000_000_000;
/// With Ethernet's: the token bucket counts them, too.
const HEADER_BYTES: u16 = FRAME_BYTES as u16 - 1_460;

/// Client, router and server, as in the testbed.
pub(crate) fn run(point: Point, length: RealDuration) -> Result<Flow, NetworkError> {
    let mut network = Network::new(1);
    let (client, router, server) = (network.add_node()?, network.add_node()?, network.add_node()?);
    let wire = |delay| LinkSettings::drop_tail(FAST_BITS_PER_S, delay, Buffer::Packets(10_000));
    let slow = LinkSettings::drop_tail(
        point.rate_bits_per_s(),
        Duration::ZERO,
        Buffer::Bytes(point.buffer_bytes().into()),
    );
    let bottleneck = network.add_link(router, client, &slow)?;
    network.add_link(client, router, &wire(Duration::ZERO))?;
    network.add_wire(router, server, &wire(virtual_time(point.one_way())))?;
    let route = network.add_route(client, server)?;
    // Without SACK, as the real flow is.
    let tcp = TcpSettings {
        header_bytes: HEADER_BYTES,
        recovery: Recovery::SlowButSteady,
        ..TcpSettings::modern()
    };
    let tcp = network.add_tcp(tcp)?;
    let response = Response::Bytes(u64::MAX);
    let request_bytes = REQUEST_BYTES as u64;
    let flow = network.open(Instant::ZERO, FlowSettings { route, tcp, request_bytes, response, token: 0 })?;
    let received = |network: &Network| network.flow(flow).expect("a flow without end goes on").response_bytes;
    let looks = looks(length);
    let (mut waiting, mut half) = (0, 0);
    for look in 1..=looks {
        let until = Instant::ZERO + virtual_time(LOOK_EVERY * look);
        while network.next(&mut NoStage, until)?.is_some() {}
        waiting += network.waiting(bottleneck);
        if look == looks / 2 {
            half = received(&network);
        }
    }
    let [goodput_bits_per_s, later_bits_per_s] = goodputs([half, received(&network)], length.as_secs_f64());
    Ok(Flow {
        goodput_bits_per_s,
        later_bits_per_s,
        retransmissions: network.flow(flow).map_or(0, |record| record.retransmissions.into()),
        dropped: network.link(bottleneck).overflowed,
        waiting: waiting as f64 / f64::from(looks),
    })
}

fn virtual_time(real: RealDuration) -> Duration {
    Duration::from_nanos(real.as_nanos() as u64)
}
