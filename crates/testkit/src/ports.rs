//! Loopback addresses nobody listens on.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range Linux takes the ports of outgoing connections from (32768 and up), so that no connection made
/// by a test running at the same time can sit on a port between our look and the child's bind.
const FIRST: u16 = 12_000;
/// How many ports are tried in turn.
const COUNT: u16 = 20_000;
/// Test programs that run at the same time start this far apart.
const STRIDE: u32 = 397;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// An address of 127.0.0.1 that was free a moment ago and that this program gives out only once in a while.
///
/// # Panics
/// When no port of the range is free.
#[must_use]
pub fn free_address() -> SocketAddr {
    let start = (std::process::id().wrapping_mul(STRIDE) % u32::from(COUNT)) as u16;
    (0..COUNT)
        .map(|_| {
            let offset = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let port = FIRST + (start + offset) % COUNT;
            SocketAddr::from((Ipv4Addr::LOCALHOST, port))
        })
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port on 127.0.0.1")
}
