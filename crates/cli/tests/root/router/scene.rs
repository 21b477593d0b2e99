//! Clients, a router and servers, each in a namespace; the link between clients and router may be narrow.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use flashweir_kernel::gate::KernelGate;
use flashweir_testkit::{
    Client, Finished, Flashweir, Message, Metrics, Nginx, PATIENCE, Process, Signal, Testbed, TokenBucket,
    eventually, skip,
};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const CLIENTS: &str = "clients";
const ROUTER: &str = "router";
const SERVERS: &str = "servers";
/// In the router's namespace, where no other process listens.
const ADMIN: &str = "127.0.0.1:9900";

/// The namespaces, and nginx with two ports: each is its own server to the router.
pub(crate) struct Scene {
    _nginx: Nginx,
    server: IpAddr,
    testbed: Testbed,
}

/// A running router, killed when dropped.
pub(crate) struct Router {
    process: Process,
    directory: TempDir,
}

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

impl Scene {
    /// A scene whose servers serve a `page` of this size, or a loud line that says what is missing.
    pub(crate) fn require(test: &str, page_bytes: usize) -> Option<Self> {
        may_load(test)?;
        let mut testbed = Testbed::require(test, &[CLIENTS, ROUTER, SERVERS])?;
        let [clients, near] = testbed.link(CLIENTS, ROUTER);
        let [far, server] = testbed.link(ROUTER, SERVERS);
        testbed.set(ROUTER, "net/ipv4/ip_forward", "1");
        testbed.route(CLIENTS, server, near);
        testbed.route(SERVERS, clients, far);
        let listen = format!("listen {server}:8080; listen {server}:8081; keepalive_timeout 0;");
        let nginx = testbed.inside(SERVERS, || Nginx::require(test, "", &listen))?;
        nginx.serve("page", &vec![b'x'; page_bytes]);
        Some(Self { _nginx: nginx, server: server.into(), testbed })
    }

    /// The server at one of its two ports.
    pub(crate) fn server(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.server, port)
    }

    /// Makes the link to the clients narrow.
    pub(crate) fn narrow(&self, bucket: TokenBucket) {
        self.testbed.shape(ROUTER, CLIENTS, bucket);
    }

    /// Starts a router that guards both servers, and waits until it does. These lines come after the usual
    /// ones.
    pub(crate) fn start(&self, more: &str) -> Router {
        let directory = TempDir::new().expect("a fresh directory");
        let mut router = self.launch(directory, more);
        eventually("the router's readiness", || {
            let status = router.process.ended();
            assert!(status.is_none(), "the router ended at its start: {}", router.process.stderr());
            // Its port is taken before anything is attached, and answers after.
            self.testbed.inside(ROUTER, || {
                let mut client = Client::try_connect(admin()).ok()?;
                client.try_send("GET /readyz HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").ok()?;
                client.try_response().is_ok_and(|response| response.status() == 200).then_some(())
            })
        });
        router
    }

    /// Starts one that cannot start, and waits for its end.
    pub(crate) fn start_in_vain(&self, more: &str) -> Finished {
        self.launch(TempDir::new().expect("a fresh directory"), more).process.finish(PATIENCE)
    }

    fn launch(&self, directory: TempDir, more: &str) -> Router {
        self.configure(directory.path(), more);
        let arguments = ["router", "--config", "router.toml", "--state-file", "baseline.json"];
        let process = self.testbed.inside(ROUTER, || binary().start(directory.path(), arguments));
        Router { process, directory }
    }

    fn configure(&self, directory: &Path, more: &str) {
        let [one, other] = [8080, 8081].map(|port| self.server(port));
        // What a program sends back from the driver of such a wire arrives only where another program
        // receives it.
        let usual = format!("interface = '{CLIENTS}'\nhook = 'generic'\nprotect = ['{one}', '{other}']\n");
        let keep = |line: &&str| more.lines().all(|new| new.split('=').next() != line.split('=').next());
        let usual: Vec<_> = usual.lines().filter(keep).collect();
        let text = format!("[kernel]\n{}\n{more}\n", usual.join("\n"));
        std::fs::write(directory.join("router.toml"), text).expect("a writable directory");
    }

    /// Changes the router's file and makes the router reload it.
    pub(crate) fn reload(&self, router: &Router, more: &str) {
        self.configure(router.directory.path(), more);
        router.process.signal(Signal::Reload);
    }

    /// Asks the router.
    pub(crate) fn ask(&self, target: &str) -> Message {
        self.testbed.inside(ROUTER, || Client::get(admin(), target))
    }

    /// Its status.
    pub(crate) fn status(&self) -> Value {
        self.ask("/status").json()
    }

    /// Its metrics, checked.
    pub(crate) fn metrics(&self) -> Metrics {
        self.testbed.inside(ROUTER, || Metrics::of(admin()))
    }

    /// Starts `flashweir load` for the page of one of the servers, where the clients are.
    pub(crate) fn load(&self, port: u16, arguments: &[&str]) -> Process {
        let url = format!("http://{}/page", self.server(port));
        let all = ["load", &url, "--json"].into_iter().chain(arguments.iter().copied());
        self.testbed.inside(CLIENTS, || binary().start(Path::new("/"), all))
    }

    /// One GET of the page, where the clients are.
    pub(crate) fn get(&self, port: u16) -> Message {
        self.testbed.inside(CLIENTS, || Client::get(self.server(port), "/page"))
    }

    /// Does something where the router is.
    pub(crate) fn as_router<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.testbed.inside(ROUTER, work)
    }

    /// Returns whether a program stands before the interface.
    pub(crate) fn is_guarded(&self) -> bool {
        self.ip(&["link", "show", CLIENTS]).contains("prog/xdp")
    }

    /// Runs `ip` in the router's namespace.
    pub(crate) fn ip(&self, arguments: &[&str]) -> String {
        let name = self.testbed.full_name(ROUTER);
        let all = ["-n", &name].into_iter().chain(arguments.iter().copied());
        let finished = Process::run(Path::new("ip"), Path::new("/"), PATIENCE, all);
        assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
        finished.stdout
    }
}

impl Router {
    /// Its output on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Ends it by a signal.
    pub(crate) fn end(self, how: Signal) -> Finished {
        self.process.signal(how);
        self.process.finish(PATIENCE)
    }
}

fn admin() -> SocketAddr {
    ADMIN.parse().expect("an address")
}

/// Loads a gate if this kernel takes programs from this user; prints a loud line where not.
pub(crate) fn may_load(test: &str) -> Option<KernelGate> {
    match KernelGate::load() {
        Ok(gate) => Some(gate),
        Err(error) if error.is_unavailable() => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}
