//! A cluster: an origin whose answers are numbered, replicas of it, and a redirector before them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use flashweir_testkit::number_of as number;
use flashweir_testkit::{
    Client, Flashweir, Gateway, GatewayBuilder, Message, Metrics, Process, Signal, Upstream, eventually,
    own_answer, reserve_address,
};
use tempfile::TempDir;

/// Short, so that no test waits long; the redirector and the replicas have the same.
pub(crate) const INTERVAL: &str = "500ms";
/// Any loop of requests is more than this, however slow the machine.
pub(crate) const HIGH_WATERMARK: &str = "20.0";

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// An origin whose answers its requests choose, with [`own_answer`]s.
pub(crate) fn numbered(fields: impl Fn(&Message, usize) -> String + Send + Sync + 'static) -> Upstream {
    let count = Arc::new(AtomicUsize::new(0));
    Upstream::start(move |connection| {
        while let Some(request) = connection.read_request() {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let body = own_answer(number, &request);
            if !connection.answer(200, &fields(&request, number), body) {
                return;
            }
        }
    })
}

/// One with the same field lines for all.
pub(crate) fn saying(fields: &'static str) -> Upstream {
    numbered(move |_, _| fields.to_owned())
}

/// `flashweir replica`, running.
pub(crate) struct Replica {
    process: Option<Process>,
    directory: TempDir,
    arguments: Vec<String>,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Replica {
    pub(crate) fn start_at(address: SocketAddr, of: &str, report_to: &[SocketAddr], more: &[&str]) -> Self {
        let admin = reserve_address();
        let (listen, admin_text) = (address.to_string(), admin.to_string());
        let mut arguments: Vec<String> =
            ["replica", "--of", of, "--listen", &listen, "--admin", &admin_text, "--interval", INTERVAL]
                .map(str::to_owned)
                .into();
        for redirector in report_to {
            arguments.extend(["--report-to".to_owned(), format!("http://{redirector}")]);
        }
        arguments.extend(more.iter().map(|&it| it.to_owned()));
        let directory = TempDir::new().expect("a fresh directory");
        let mut replica = Self { process: None, directory, arguments, address, admin };
        replica.restart();
        replica
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::Kill);
            drop(process.finish(std::time::Duration::from_secs(20)));
        }
    }

    pub(crate) fn restart(&mut self) {
        let mut process = binary().start(self.directory.path(), &self.arguments);
        let admin = self.admin;
        eventually("the replica's readiness", || {
            if let Some(status) = process.ended() {
                panic!("the replica ended at its start ({status}): {}", process.stderr());
            }
            Client::try_connect(admin).ok().map(drop)
        });
        self.process = Some(process);
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::of(self.admin)
    }

    pub(crate) fn answered(&self) -> f64 {
        self.metrics().value("flashweir_requests_completed_total")
    }
}

pub(crate) struct Cluster {
    pub(crate) redirector: Gateway,
    pub(crate) replicas: Vec<Replica>,
}

/// A redirector of these replicas' addresses.
pub(crate) fn redirector(origin: &Upstream, targets: &[SocketAddr]) -> GatewayBuilder {
    let targets: Vec<String> = targets.iter().map(|address| format!("\"http://{address}\"")).collect();
    GatewayBuilder::new(&binary())
        .upstream(&origin.url())
        .text("replication.role", "redirector")
        .set("replication.targets", &format!("[{}]", targets.join(", ")))
        .text("replication.interval", INTERVAL)
        .set("replication.high_watermark", HIGH_WATERMARK)
        .set("replication.low_watermark", "10.0")
        .set("gateway.workers", "2")
}

/// A distributor before these redirectors.
pub(crate) fn distributor(origin: &Upstream, redirectors: &[SocketAddr]) -> GatewayBuilder {
    let targets: Vec<String> = redirectors.iter().map(|address| format!("\"http://{address}\"")).collect();
    GatewayBuilder::new(&binary())
        .upstream(&origin.url())
        .text("replication.role", "distributor")
        .set("replication.targets", &format!("[{}]", targets.join(", ")))
}

impl Cluster {
    pub(crate) fn start(origin: &Upstream, replicas: usize) -> Self {
        Self::start_with(origin, replicas, |builder| builder)
    }

    pub(crate) fn start_with(
        origin: &Upstream,
        replicas: usize,
        configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let addresses: Vec<SocketAddr> = (0..replicas).map(|_| reserve_address()).collect();
        let redirector = configure(redirector(origin, &addresses)).start();
        let reports = [redirector.admin()];
        let start = |address| {
            let more = ["--high-watermark", HIGH_WATERMARK, "--host", "shop.example"];
            Replica::start_at(address, &origin.url(), &reports, &more)
        };
        let replicas: Vec<Replica> = addresses.into_iter().map(start).collect();
        let cluster = Self { redirector, replicas };
        eventually("a report of each replica", || {
            let status = cluster.status();
            let targets = status["targets"].as_array().expect("targets");
            targets.iter().all(|target| target["reported_age_s"].is_number()).then_some(())
        });
        cluster
    }

    /// Replication in the redirector's status.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.redirector.status()["replication"].take()
    }

    /// Asks for a document until it is at all replicas.
    pub(crate) fn make_hot(&self, target: &str) {
        let mut client = self.redirector.connect();
        let replicas = self.replicas.len();
        eventually("copies at all replicas", || {
            for _ in 0..100 {
                assert_eq!(get(&mut client, target, "").status(), 200);
            }
            let url = format!("/replication/document?url=http://shop.example{target}");
            let explained = self.redirector.ask_admin(&url).json();
            (explained["hosts"].as_array().map(Vec::len) == Some(replicas)).then_some(())
        });
    }
}

/// A GET of the site with further field lines.
pub(crate) fn get(client: &mut Client, target: &str, fields: &str) -> Message {
    client.ask(&format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"))
}
