//! Clients in one namespace; origin and gateway in another, the gate before the interface between them.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use flashweir_testkit::{
    Finished, Flashweir, Gateway, GatewayBuilder, Origin, PATIENCE, Process, Testbed, skip,
};

/// Work of each request: a capacity of some 100 a second.
const WORK_MS: f64 = 10.0;
pub(crate) const CLIENTS: &str = "clients";
pub(crate) const SERVER: &str = "server";

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    /// Address to which clients connect.
    pub(crate) address: SocketAddr,
    _origin: Origin,
    testbed: Testbed,
}

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// Two namespaces and the wire between them, or a loud line.
pub(crate) fn require_testbed(test: &str) -> Option<(Testbed, SocketAddr)> {
    let mut testbed = Testbed::require(test, &[CLIENTS, SERVER])?;
    let [_, server] = testbed.link(CLIENTS, SERVER);
    Some((testbed, SocketAddr::new(server.into(), 8080)))
}

/// A gateway in its namespace that guards its interface, before an origin.
pub(crate) fn builder(address: SocketAddr, origin: &str) -> GatewayBuilder {
    GatewayBuilder::new(&binary())
        .upstream(origin)
        .text("listen.address", &address.to_string())
        .text("kernel.interface", CLIENTS)
        // What a program sends back from the driver of such a wire arrives only where another program
        // receives it.
        .text("kernel.hook", "generic")
        // Ten at once: a request that could not be served in this time is refused.
        .text("sentry.response_target", "100ms")
}

impl Scene {
    /// One with these keys, or a loud line that says what is missing.
    pub(crate) fn require(test: &str, keys: &[(&str, &str)]) -> Option<Self> {
        let (testbed, address) = require_testbed(test)?;
        if !may_load(test) {
            return None;
        }
        let (gateway, origin) = testbed.inside(SERVER, || {
            let origin = Origin::start(&binary(), WORK_MS);
            let builder = builder(address, &origin.url());
            let builder = keys.iter().fold(builder, |builder, (key, value)| builder.set(key, value));
            (builder.start(), origin)
        });
        Some(Self { gateway, address, _origin: origin, testbed })
    }

    /// Does something where the clients are.
    pub(crate) fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.testbed.inside(CLIENTS, work)
    }

    /// Asks the gateway something where its admin listener is.
    pub(crate) fn asking<T: Send>(&self, ask: impl FnOnce(&Gateway) -> T + Send) -> T {
        self.testbed.inside(SERVER, || ask(&self.gateway))
    }

    /// Returns whether a program stands before the interface.
    pub(crate) fn is_guarded(&self) -> bool {
        is_guarded(&self.testbed)
    }

    /// The network the clients are in.
    pub(crate) fn clients_network(&self) -> String {
        let IpAddr::V4(server) = self.address.ip() else { panic!("links have IPv4 addresses") };
        let [a, b, c, _] = server.octets();
        format!("{a}.{b}.{c}.0/24")
    }

    /// Waits for the gateway's end.
    pub(crate) fn finish(self) -> Finished {
        self.gateway.finish()
    }

    /// A count of the gate in the kernel.
    pub(crate) fn connections(&self, what: &str) -> u64 {
        let status = self.asking(Gateway::status);
        let count = status["kernel"]["connections"][what].as_u64();
        count.unwrap_or_else(|| panic!("no {what}: {}", status["kernel"]))
    }
}

/// Returns whether a program stands before the server's interface.
pub(crate) fn is_guarded(testbed: &Testbed) -> bool {
    ip(testbed, SERVER, &["link", "show", CLIENTS]).contains("prog/xdp")
}

/// Runs `ip` in a namespace.
pub(crate) fn ip(testbed: &Testbed, namespace: &str, arguments: &[&str]) -> String {
    let name = testbed.full_name(namespace);
    let all = ["-n", &name].into_iter().chain(arguments.iter().copied());
    let finished = Process::run(Path::new("ip"), Path::new("/"), PATIENCE, all);
    assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

/// Does something where the server is.
pub(crate) fn as_server<T: Send>(testbed: &Testbed, work: impl FnOnce() -> T + Send) -> T {
    testbed.inside(SERVER, work)
}

/// Returns whether this kernel takes programs from this user; prints a loud line where not.
pub(crate) fn may_load(test: &str) -> bool {
    match flashweir_kernel::gate::KernelGate::load() {
        Ok(_) => true,
        Err(error) if error.is_unavailable() => {
            skip(test, &error.to_string());
            false
        }
        Err(error) => panic!("{error}"),
    }
}
