//! A gateway in this process, an origin with a script, and a client that shows every byte.

pub(crate) mod client;
pub(crate) mod origin;

use crate::{Gateway, GatewayError, Launch};
use client::Client;
use flashweir_config::{Config, Overrides};
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Nothing here takes seconds; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A gateway serving on its own ports, stopped (and waited for) when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), GatewayError>>>,
}

impl Running {
    /// One worker in front of `upstream`, with further TOML.
    pub(crate) fn start(upstream: SocketAddr, more: &str) -> Self {
        Self::start_workers(1, upstream, more)
    }

    /// Several workers.
    pub(crate) fn start_workers(workers: usize, upstream: SocketAddr, more: &str) -> Self {
        let toml = format!(
            "listen.address = '127.0.0.1:0'\nadmin.address = '127.0.0.1:0'\ngateway.workers = {workers}\n\
             upstream.urls = ['http://{upstream}']\n{more}"
        );
        let config = Config::from_toml(&toml, "test.toml").expect("a valid configuration");
        let launch = Launch {
            listeners: Vec::new(),
            config,
            config_file: None,
            overrides: Overrides::default(),
            record: None,
            servers: None,
            cluster: None,
            ready_file: None,
        };
        let gateway = Gateway::bind(launch).expect("ports");
        let (address, admin) = (gateway.addresses()[0], gateway.admin_address());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            gateway.serve(async {
                let _ = stopped.await;
            })
        });
        Self { address, admin, stop: Some(stop), thread: Some(thread) }
    }

    /// A client's connection to it.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Starts its drain; returns at once.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits for its end.
    pub(crate) fn outcome(mut self) -> Result<(), GatewayError> {
        self.stop();
        self.thread.take().expect("still running").join().expect("no panic")
    }

    /// The answer of an admin path: status and body.
    pub(crate) fn admin(&self, path: &str) -> (u16, String) {
        let mut client = Client::connect(self.admin);
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: admin\r\n\r\n"));
        let response = client.response();
        (response.status, response.text())
    }

    /// A metric's value; the name may carry labels. Zero when it is absent.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.admin("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until a metric has this value.
    pub(crate) fn await_metric(&self, name: &str, value: f64) {
        eventually(name, || self.metric(name) == value);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the gateway panicked");
        }
    }
}

/// Polls until `holds`, for at most [`PATIENCE`].
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        thread::yield_now();
    }
}
