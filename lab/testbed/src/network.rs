//! Namespaces and what joins them.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use crate::link::{PACKET_BYTES, bring_up, join};
use crate::long_wire::LongWire;
use crate::namespace::Namespace;
use crate::tools::{missing, run};
use crate::{QueueBooks, Running, Tap, TestbedError, TokenBucket, leftovers};

/// Links of a testbed: each has its own network, named by one byte of its addresses.
const LINKS: u8 = 250;

/// Namespaces and what joins them. An interface is called after the namespace at its other end.
///
/// Its methods panic when they name a namespace that was never made: that is a mistake of the caller's.
#[derive(Debug)]
pub struct Testbed {
    wires: Vec<LongWire>,
    namespaces: Vec<Namespace>,
    links: u8,
}

impl Testbed {
    /// One with a namespace for each of `names`. Only loopback is up in them; some 10 ms each.
    ///
    /// # Errors
    /// [`TestbedError::Missing`] when this machine or user cannot have one; anything else that goes wrong.
    pub fn new(names: &[&str]) -> Result<Self, TestbedError> {
        if let Some(missing) = missing() {
            return Err(TestbedError::Missing(missing));
        }
        leftovers::remove();
        let mut testbed = Self { wires: Vec::new(), namespaces: Vec::new(), links: 0 };
        for name in names {
            testbed.namespaces.push(Namespace::new(name)?);
        }
        Ok(testbed)
    }

    /// Joins two namespaces by a wire without delay; their addresses on it. Packets stay packets: no offload
    /// joins them.
    ///
    /// # Errors
    /// When the two are joined already.
    pub fn link(&mut self, one: &str, other: &str) -> Result<[Ipv4Addr; 2], TestbedError> {
        let [near, far] = self.next_addresses();
        let names = [self.full_name(one), self.full_name(other)];
        join([&names[0], &names[1]], [other, one], PACKET_BYTES)?;
        bring_up(&names[0], other, near)?;
        bring_up(&names[1], one, far)?;
        Ok([near, far])
    }

    /// Joins two namespaces by a wire on which each packet travels `delay`; their addresses on it.
    ///
    /// # Errors
    /// When the two are joined already.
    pub fn long_link(
        &mut self,
        one: &str,
        other: &str,
        delay: Duration,
    ) -> Result<[Ipv4Addr; 2], TestbedError> {
        let [near, far] = self.next_addresses();
        let ends = [self.namespace(one), self.namespace(other)];
        let wire = LongWire::new(self.links, ends, [other, one], delay)?;
        bring_up(ends[0].name(), other, near)?;
        bring_up(ends[1].name(), one, far)?;
        self.wires.push(wire);
        Ok([near, far])
    }

    /// Sends what `namespace` has for the network of `address` through its neighbour `gateway`.
    ///
    /// # Errors
    /// When the gateway is not reachable from there.
    pub fn route(&self, namespace: &str, address: Ipv4Addr, gateway: Ipv4Addr) -> Result<(), TestbedError> {
        let [a, b, c, _] = address.octets();
        let network = format!("{a}.{b}.{c}.0/24");
        let name = self.full_name(namespace);
        run("ip", &["-n", &name, "route", "add", &network, "via", &gateway.to_string()]).map(drop)
    }

    /// Routes packets of `namespace` for unknown networks through its neighbour `gateway`.
    ///
    /// # Errors
    /// When the gateway is not reachable from there.
    pub fn route_rest(&self, namespace: &str, gateway: Ipv4Addr) -> Result<(), TestbedError> {
        let name = self.full_name(namespace);
        run("ip", &["-n", &name, "route", "add", "default", "via", &gateway.to_string()]).map(drop)
    }

    /// Makes every address of a network, as `10.77.0.0/16`, one of `namespace`'s own: programs there may be
    /// clients from any of them. The others need a route to it.
    ///
    /// # Errors
    /// When it is not a network.
    pub fn own(&self, namespace: &str, network: &str) -> Result<(), TestbedError> {
        let name = self.full_name(namespace);
        run("ip", &["-n", &name, "route", "add", "local", network, "dev", "lo"]).map(drop)
    }

    /// Writes a kernel setting of one namespace, as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    /// When this kernel has no such setting or refuses the value.
    pub fn set(&self, namespace: &str, setting: &str, value: &str) -> Result<(), TestbedError> {
        let write = || std::fs::write(format!("/proc/sys/{setting}"), value);
        let what = format!("{namespace}: {setting} cannot be {value}");
        self.inside(namespace, write)?.map_err(TestbedError::kernel(what))
    }

    /// Puts a token bucket before the interface of `namespace` that leads to `neighbour`, in place of what is
    /// there.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn shape(&self, namespace: &str, neighbour: &str, bucket: TokenBucket) -> Result<(), TestbedError> {
        bucket.put(&self.full_name(namespace), neighbour)
    }

    /// The statistics of the queue there; starts a program, some 2 ms.
    ///
    /// # Errors
    /// When there is no queue.
    pub fn queue(&self, namespace: &str, neighbour: &str) -> Result<QueueBooks, TestbedError> {
        QueueBooks::read(&self.full_name(namespace), neighbour)
    }

    /// Packets that the long links lost because this machine was too busy to carry them: none, if it is to
    /// count.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn lost_on_long_links(&self) -> Result<u64, TestbedError> {
        self.wires.iter().map(LongWire::lost).sum()
    }

    /// Runs `work` on a thread whose network is that of `namespace`. Sockets that it makes and programs that
    /// it starts stay there when it is over.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    /// When `work` does.
    pub fn inside<T: Send>(
        &self,
        namespace: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, TestbedError> {
        self.namespace(namespace).inside(work)
    }

    /// Starts a program in `namespace`, without input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, namespace: &str, command: &mut Command) -> Result<Running, TestbedError> {
        let what = command.get_program().to_string_lossy().into_owned();
        self.inside(namespace, || Running::start(command))?.map_err(TestbedError::kernel(what))
    }

    /// Watches what comes into `namespace`.
    ///
    /// # Errors
    /// When the kernel gives no socket for it.
    pub fn tap(&self, namespace: &str) -> Result<Tap, TestbedError> {
        Tap::new(self.namespace(namespace))
    }

    /// Name of one of the namespaces in `ip netns`.
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
