//! The testbed of `flashweir-testbed` for tests: where it cannot be had, a test is skipped with a loud line,
//! and what goes wrong panics.

use std::net::Ipv4Addr;
use std::time::Duration;

use flashweir_testbed::TestbedError;
pub use flashweir_testbed::{QueueBooks, TokenBucket};

use crate::programs::skip;

/// Namespaces and what joins them, gone when dropped. An interface is called after the namespace at its other
/// end.
#[derive(Debug)]
pub struct Testbed(flashweir_testbed::Testbed);

impl Testbed {
    /// One with a namespace for each of `names`, or `None` after a loud line that says what `test` needs and
    /// the machine lacks. Only loopback is up in them; some 10 ms each.
    ///
    /// # Panics
    /// When a namespace cannot be made although nothing is lacking.
    #[must_use]
    pub fn require(test: &str, names: &[&str]) -> Option<Self> {
        match flashweir_testbed::Testbed::new(names) {
            Ok(testbed) => Some(Self(testbed)),
            Err(TestbedError::Missing(missing)) => {
                skip(test, &missing);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Joins two namespaces by a wire without delay; their addresses on it. Packets stay packets: no offload
    /// joins them.
    ///
    /// # Panics
    /// When there is no such namespace, or the two are joined already.
    pub fn link(&mut self, one: &str, other: &str) -> [Ipv4Addr; 2] {
        or_panic(self.0.link(one, other))
    }

    /// Joins two namespaces by a wire on which each packet travels `delay`; their addresses on it.
    ///
    /// # Panics
    /// When there is no such namespace, or the two are joined already.
    pub fn long_link(&mut self, one: &str, other: &str, delay: Duration) -> [Ipv4Addr; 2] {
        or_panic(self.0.long_link(one, other, delay))
    }

    /// Sends what `namespace` has for the network of `address` through its neighbour `gateway`.
    ///
    /// # Panics
    /// When the gateway is not reachable from there.
    pub fn route(&self, namespace: &str, address: Ipv4Addr, gateway: Ipv4Addr) {
        or_panic(self.0.route(namespace, address, gateway));
    }

    /// Routes packets of `namespace` for unknown networks through its neighbour `gateway`.
    ///
    /// # Panics
    /// When the gateway is not reachable from there.
    pub fn route_rest(&self, namespace: &str, gateway: Ipv4Addr) {
        or_panic(self.0.route_rest(namespace, gateway));
    }

    /// Makes every address of a network, as `10.77.0.0/16`, one of `namespace`'s own.
    ///
    /// # Panics
    /// When it is not a network.
    pub fn own(&self, namespace: &str, network: &str) {
        or_panic(self.0.own(namespace, network));
    }

    /// Writes a kernel setting of one namespace, as `net/ipv4/ip_forward`.
    ///
    /// # Panics
    /// When this kernel has no such setting or refuses the value.
    pub fn set(&self, namespace: &str, setting: &str, value: &str) {
        or_panic(self.0.set(namespace, setting, value));
    }

    /// Puts a token bucket before the interface of `namespace` that leads to `neighbour`, in place of what is
    /// there.
    ///
    /// # Panics
    /// When there is no such interface.
    pub fn shape(&self, namespace: &str, neighbour: &str, bucket: TokenBucket) {
        or_panic(self.0.shape(namespace, neighbour, bucket));
    }

    /// The statistics of the queue there; starts a program, some 2 ms.
    ///
    /// # Panics
    /// When there is no queue.
    #[must_use]
    pub fn queue(&self, namespace: &str, neighbour: &str) -> QueueBooks {
        or_panic(self.0.queue(namespace, neighbour))
    }

    /// Packets that the long links lost because this machine was too busy to carry them: none, if it is to
    /// count.
    ///
    /// # Panics
    /// When the kernel does not tell.
    #[must_use]
    pub fn lost_on_long_links(&self) -> u64 {
        or_panic(self.0.lost_on_long_links())
    }

    /// Runs `work` on a thread whose network is that of `namespace`. Sockets that it makes and programs that
    /// it starts stay there when it is over.
    ///
    /// # Panics
    /// When there is no such namespace, and when `work` does.
    pub fn inside<T: Send>(&self, namespace: &str, work: impl FnOnce() -> T + Send) -> T {
        or_panic(self.0.inside(namespace, work))
    }

    /// Name of one of the namespaces in `ip netns`.
    ///
    /// # Panics
    /// When there is no such namespace.
    #[must_use]
    pub fn full_name(&self, namespace: &str) -> String {
        self.0.full_name(namespace)
    }
}

fn or_panic<T>(result: Result<T, TestbedError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
