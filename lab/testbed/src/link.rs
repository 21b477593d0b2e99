//! A link: a pair of interfaces that joins two namespaces.

use std::net::Ipv4Addr;

use crate::TestbedError;
use crate::tools::run;

/// Largest packet on every link, as on Ethernet.
pub(crate) const PACKET_BYTES: u16 = 1_500;

/// Joins two namespaces, given by their full names, with a pair of interfaces.
pub(crate) fn join(names: [&str; 2], interfaces: [&str; 2], packet_bytes: u16) -> Result<(), TestbedError> {
    let packet_bytes = packet_bytes.to_string();
    let [near, far] = [0, 1].map(|end| {
        ["name", interfaces[end], "netns", names[end], "mtu", &packet_bytes, "type", "veth"].to_vec()
    });
    run("ip", &[&["link", "add"], near.as_slice(), &["peer"], &far[..6]].concat()).map(drop)
}

/// Gives an interface its address and starts it. Every offload is off: the sender would hand over packets of
/// up to 64 KiB, which a token bucket counts as one, and leave checksums open that only a real device fills
/// in.
pub(crate) fn bring_up(name: &str, interface: &str, address: Ipv4Addr) -> Result<(), TestbedError> {
    run("ip", &["-n", name, "addr", "add", &format!("{address}/24"), "dev", interface])?;
    let offloads = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"];
    run("ip", &[&["netns", "exec", name, "ethtool", "-K", interface], offloads.as_slice()].concat())?;
    run("ip", &["-n", name, "link", "set", interface, "up"]).map(drop)
}
