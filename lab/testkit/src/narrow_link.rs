//! Clients and a server in namespaces of their own, with a narrow link from the server to the clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::testbed::{QueueBooks, Testbed, TokenBucket};

/// Two namespaces, a wire of some length between them, and a token bucket before the server's end of it.
#[derive(Debug)]
pub struct NarrowLink {
    testbed: Testbed,
    server: Ipv4Addr,
}

impl NarrowLink {
    /// Network of the clients: each address there is one of theirs.
    pub const CLIENTS: &str = "10.77.0.0/16";

    /// A link of `rate_bits_per_s` with a buffer for `packets` full ones, over which each packet travels
    /// `delay`; `None` after a loud line that says what `test` needs and the machine lacks.
    ///
    /// # Panics
    /// When it cannot be made although nothing is lacking.
    #[must_use]
    pub fn require(test: &str, rate_bits_per_s: u64, packets: u32, delay: Duration) -> Option<Self> {
        let mut testbed = Testbed::require(test, &[CLIENTS, SERVER])?;
        let [clients, server] = testbed.long_link(CLIENTS, SERVER, delay);
        testbed.own(CLIENTS, Self::CLIENTS);
        testbed.route_rest(SERVER, clients);
        // A few milliseconds of tokens: a timer that is late must not cost rate.
        let late_bytes = rate_bits_per_s / 8 * TIMER_LATE_BY_MS / 1_000;
        let burst_bytes = u32::try_from(late_bytes).unwrap_or(u32::MAX).max(2 * FRAME_BYTES);
        let limit_bytes = packets * FRAME_BYTES;
        testbed.shape(SERVER, CLIENTS, TokenBucket { rate_bits_per_s, burst_bytes, limit_bytes });
        Some(Self { testbed, server })
    }

    /// Listening address of a server for the clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.server.into(), PORT)
    }

    /// Runs `work` where the clients are.
    pub fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.testbed.inside(CLIENTS, work)
    }

    /// Runs `work` where the server is. Programs and threads that it starts stay there.
    pub fn as_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.testbed.inside(SERVER, work)
    }

    /// Statistics of the link's queue.
    #[must_use]
    pub fn queue(&self) -> QueueBooks {
        self.testbed.queue(SERVER, CLIENTS)
    }

    /// Packets that this machine lost because it was too busy to carry them: none, if it is to count.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.testbed.lost_on_long_links()
    }
}

const CLIENTS: &str = "clients";
const SERVER: &str = "server";
const PORT: u16 = 8080;
const FRAME_BYTES: u32 = 1_514;
const TIMER_LATE_BY_MS: u64 = 5;
