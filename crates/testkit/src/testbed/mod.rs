//! A packet testbed: network namespaces, links between them, token buckets and propagation delay, all gone when dropped.
//!
//! Namespaces are named after this process, so that runs beside one another never meet, and what a process that was
//! killed left behind is removed when the next testbed is made. It needs root, and the programs of the Debian packages
//! iproute2 and ethtool.

mod leftovers;
mod long_wire;
mod namespace;
mod queue;
mod tools;

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::programs::skip;
use long_wire::LongWire;
use namespace::Namespace;
pub use queue::{QueueBooks, TokenBucket};
use tools::run;

/// Links of a testbed: each has a network of its own, named by one byte of its addresses.
const LINKS: u8 = 250;

/// Namespaces and what joins them. An interface is called after the namespace at its other end.
#[derive(Debug)]
pub struct Testbed {
    wires: Vec<LongWire>,
    namespaces: Vec<Namespace>,
    links: u8,
}

impl Testbed {
    /// One with a namespace for each of `names`, or `None` after a loud line that says what `test` needs and the
    /// machine lacks. Only loopback is up in them; some 10 ms each.
    ///
    /// # Panics
    /// When a namespace cannot be made although nothing is lacking.
    #[must_use]
    pub fn require(test: &str, names: &[&str]) -> Option<Self> {
        if let Some(missing) = tools::missing() {
            skip(test, &missing);
            return None;
        }
        leftovers::remove();
        let mut testbed = Self { wires: Vec::new(), namespaces: Vec::new(), links: 0 };
        for name in names {
            testbed.namespaces.push(Namespace::new(name));
        }
        Some(testbed)
    }

    /// Joins two namespaces by a wire without delay; their addresses on it. Packets stay packets: no offload joins them.
    ///
    /// # Panics
    /// When there is no such namespace, or the two are joined already.
    pub fn link(&mut self, one: &str, other: &str) -> [Ipv4Addr; 2] {
        let [near, far] = self.next_addresses();
        let names = [self.full_name(one), self.full_name(other)];
        join([&names[0], &names[1]], [other, one], PACKET_BYTES);
        bring_up(&names[0], other, near);
        bring_up(&names[1], one, far);
        [near, far]
    }

    /// Joins two namespaces by a wire on which each packet travels `delay`; their addresses on it.
    ///
    /// # Panics
    /// When there is no such namespace, or the two are joined already.
    pub fn long_link(&mut self, one: &str, other: &str, delay: Duration) -> [Ipv4Addr; 2] {
        let [near, far] = self.next_addresses();
        let ends = [self.namespace(one), self.namespace(other)];
        let wire = LongWire::new(self.links, ends, [other, one], delay);
        bring_up(ends[0].name(), other, near);
        bring_up(ends[1].name(), one, far);
        self.wires.push(wire);
        [near, far]
    }

    /// Sends what `namespace` has for the network of `address` through its neighbour `gateway`.
    ///
    /// # Panics
    /// When the gateway is not reachable from there.
    pub fn route(&self, namespace: &str, address: Ipv4Addr, gateway: Ipv4Addr) {
        let [a, b, c, _] = address.octets();
        let network = format!("{a}.{b}.{c}.0/24");
        let name = self.full_name(namespace);
        run("ip", &["-n", &name, "route", "add", &network, "via", &gateway.to_string()]);
    }

    /// Writes a kernel setting of one namespace, as `net/ipv4/ip_forward`.
    ///
    /// # Panics
    /// When this kernel has no such setting or refuses the value.
    pub fn set(&self, namespace: &str, setting: &str, value: &str) {
        let write = || std::fs::write(format!("/proc/sys/{setting}"), value);
        let written = self.inside(namespace, write);
        written.unwrap_or_else(|error| panic!("{namespace}: {setting} cannot be {value}: {error}"));
    }

    /// Puts a token bucket before the interface of `namespace` that leads to `neighbour`, in place of what is there.
    ///
    /// # Panics
    /// When there is no such interface.
    pub fn shape(&self, namespace: &str, neighbour: &str, bucket: TokenBucket) {
        bucket.put(&self.full_name(namespace), neighbour);
    }

    /// What the queue there has seen; starts a program, some 2 ms.
    ///
    /// # Panics
    /// When there is no queue.
    #[must_use]
    pub fn queue(&self, namespace: &str, neighbour: &str) -> QueueBooks {
        QueueBooks::read(&self.full_name(namespace), neighbour)
    }

    /// Packets that the long links lost because this machine was too busy to carry them: none, if it is to count.
    #[must_use]
    pub fn lost_on_long_links(&self) -> u64 {
        self.wires.iter().map(LongWire::lost).sum()
    }

    /// Runs `work` on a thread whose network is that of `namespace`. Sockets that it makes and programs that it starts
    /// stay there when it is over.
    ///
    /// # Panics
    /// When there is no such namespace, and when `work` does.
    pub fn inside<T: Send>(&self, namespace: &str, work: impl FnOnce() -> T + Send) -> T {
        self.namespace(namespace).inside(work)
    }

    /// What `ip netns` calls one of the namespaces.
    ///
    /// # Panics
    /// When there is no such namespace.
    #[must_use]
    pub fn full_name(&self, namespace: &str) -> String {
        self.namespace(namespace).name().to_owned()
    }

    fn namespace(&self, role: &str) -> &Namespace {
        let found = self.namespaces.iter().find(|namespace| namespace.role() == role);
        found.unwrap_or_else(|| panic!("the testbed has no namespace {role}"))
    }

    fn next_addresses(&mut self) -> [Ipv4Addr; 2] {
        assert!(self.links < LINKS, "a testbed has {LINKS} links at most");
        self.links += 1;
        [1, 2].map(|host| Ipv4Addr::new(10, 200, self.links, host))
    }
}

/// Largest packet on every link, as on Ethernet.
const PACKET_BYTES: u16 = 1_500;

/// Joins two namespaces, given by their full names, with a pair of interfaces.
fn join(names: [&str; 2], interfaces: [&str; 2], packet_bytes: u16) {
    let packet_bytes = packet_bytes.to_string();
    let [near, far] = [0, 1].map(|end| {
        ["name", interfaces[end], "netns", names[end], "mtu", &packet_bytes, "type", "veth"].to_vec()
    });
    run("ip", &[&["link", "add"], near.as_slice(), &["peer"], &far[..6]].concat());
}

/// Gives an interface its address and starts it. Every offload is off: the sender would hand over packets of up to
/// 64 KiB, which a token bucket counts as one, and leave checksums open that only a real device fills in.
fn bring_up(name: &str, interface: &str, address: Ipv4Addr) {
    run("ip", &["-n", name, "addr", "add", &format!("{address}/24"), "dev", interface]);
    let offloads = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"];
    run("ip", &[&["netns", "exec", name, "ethtool", "-K", interface], offloads.as_slice()].concat());
    run("ip", &["-n", name, "link", "set", interface, "up"]);
}
