//! Namespaces and links of a scene.

use crate::experiments::testbed::{Beside, Scene};
use flashweir_testbed::{Testbed, TestbedError, TokenBucket};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The crowd's clients; on the way to them, the distant router; the router that may protect the servers; the
/// server that the crowd wants something of; a server and clients beside it.
pub(super) const CROWD: &str = "crowd";
pub(super) const FAR: &str = "far";
pub(super) const ROUTER: &str = "router";
pub(super) const TARGET: &str = "target";
pub(super) const GUESTS: &str = "guests";
/// Another client of the crowd's server.
pub(super) const SECOND: &str = "second";
pub(super) const NEIGHBOUR: &str = "neighbour";

const PORT: u16 = 80;
/// From those beside the crowd to the distant router (§8.6 gives their latency, 0.18 s, which this gives
/// about half of).
const GUESTS_ONE_WAY: Duration = Duration::from_millis(25);
/// Two frames: with one, every late timer would cost rate.
const BURST_BYTES: u32 = 2 * 1_514;

/// A scene's network.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) testbed: Testbed,
    /// Listening address of the server.
    pub(super) target: SocketAddr,
    /// Listening address of the server beside it.
    pub(super) neighbour: Option<SocketAddr>,
    /// The crowd's clients.
    #[cfg_attr(
        not(feature = "kernel"),
        expect(dead_code, reason = "only a gate in the kernel distinguishes them")
    )]
    pub(super) crowd: Ipv4Addr,
    /// The clients beside the crowd.
    #[cfg_attr(
        not(feature = "kernel"),
        expect(dead_code, reason = "only a gate in the kernel distinguishes them")
    )]
    pub(super) guests: Option<Ipv4Addr>,
}

impl Network {
    pub(super) fn build(scene: &Scene) -> Result<Self, TestbedError> {
        let has_guests = scene.beside != Beside::NoClients;
        let has_neighbour = matches!(scene.beside, Beside::Readers { .. } | Beside::Download);
        let has_second = matches!(scene.beside, Beside::Clients { .. });
        let mut names = vec![CROWD, FAR, ROUTER, TARGET];
        names.extend(has_second.then_some(SECOND));
        names.extend(has_guests.then_some(GUESTS));
        names.extend(has_neighbour.then_some(NEIGHBOUR));
        let mut testbed = Testbed::new(&names)?;
        for name in &names {
            tune(&testbed, name)?;
        }
        let crowd = connect_clients(&mut testbed, CROWD, scene.one_way)?;
        let guests = match &scene.beside {
            Beside::NoClients => None,
            // As near as the crowd: they differ in what they are, not in where.
            Beside::Clients { .. } => {
                connect_clients(&mut testbed, SECOND, scene.one_way)?;
                Some(connect_clients(&mut testbed, GUESTS, scene.one_way)?)
            }
            Beside::Readers { .. } | Beside::Download => {
                Some(connect_clients(&mut testbed, GUESTS, GUESTS_ONE_WAY)?)
            }
        };
        let [near, far] = testbed.link(ROUTER, FAR)?;
        testbed.route_rest(FAR, near)?;
        testbed.route_rest(ROUTER, far)?;
        let bucket = TokenBucket {
            rate_bits_per_s: scene.bottleneck.bits_per_s,
            burst_bytes: BURST_BYTES.max((scene.bottleneck.bits_per_s / TIMER_TICKS_PER_S / 8) as u32),
            limit_bytes: scene.bottleneck.buffer_bytes,
        };
        testbed.shape(ROUTER, FAR, bucket)?;
        let target = connect_server(&mut testbed, TARGET)?;
        let neighbour = has_neighbour.then(|| connect_server(&mut testbed, NEIGHBOUR)).transpose()?;
        Ok(Self { testbed, target, neighbour, crowd, guests })
    }
}

/// A late timer must not cost a fast link its rate.
const TIMER_TICKS_PER_S: u64 = 1_000;

/// Clients with the distant router as their way to everywhere.
fn connect_clients(testbed: &mut Testbed, name: &str, one_way: Duration) -> Result<Ipv4Addr, TestbedError> {
    let [here, gateway] =
        if one_way.is_zero() { testbed.link(name, FAR)? } else { testbed.long_link(name, FAR, one_way)? };
    testbed.route_rest(name, gateway)?;
    Ok(here)
}

fn connect_server(testbed: &mut Testbed, name: &str) -> Result<SocketAddr, TestbedError> {
    let [gateway, here] = testbed.link(ROUTER, name)?;
    testbed.route_rest(name, gateway)?;
    Ok((here, PORT).into())
}

/// Forwarding; no memory of earlier runs; SYNs again after 1, 3 and 7 s, as for twenty years; room for
/// handshakes and for as many connections as come.
fn tune(testbed: &Testbed, name: &str) -> Result<(), TestbedError> {
    for (setting, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv4/tcp_no_metrics_save", "1"),
        ("net/ipv4/tcp_max_syn_backlog", "16384"),
        ("net/core/somaxconn", "16384"),
        ("net/ipv4/ip_local_port_range", "1024 65535"),
        ("net/ipv4/tcp_tw_reuse", "1"),
    ] {
        testbed.set(name, setting, value)?;
    }
    // Younger than Linux 6.5: older ones do as wanted anyway.
    let _ = testbed.set(name, "net/ipv4/tcp_syn_linear_timeouts", "0");
    Ok(())
}
