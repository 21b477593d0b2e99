//! Loopback ports that belong to this test program before any server gets them.

use std::net::SocketAddr;

/// Reserves one port of 127.0.0.1 until this program ends.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn reserve_address() -> SocketAddr {
    flashweir_testbed::reserve_address().expect("a free port on 127.0.0.1")
}

/// Reserves `count` consecutive ports of 127.0.0.1 until this program ends; the first of them.
///
/// # Panics
/// When there is no such row.
#[must_use]
pub fn reserve_ports(count: u16) -> u16 {
    flashweir_testbed::reserve_ports(count).expect("free ports in a row on 127.0.0.1")
}
