//! The processes of a cluster, and what the kernel says of their CPU time.

use crate::Bench;
use crate::site::{self, HOST};
use flashweir_testkit::{
    Client, Flashweir, Gateway, GatewayBuilder, Metrics, Origin, Process, eventually, reserve_address,
};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Settings in which clusters differ.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) replicas: usize,
    pub(crate) work_ms: f64,
    pub(crate) interval: Duration,
    pub(crate) high_rps: f64,
    pub(crate) low_rps: f64,
    /// `proxy`, `302` or `307`.
    pub(crate) answer: &'static str,
    /// `repaired` or `published`.
    pub(crate) rules: &'static str,
}

/// A distributor, a redirector, replicas, an origin.
pub(crate) struct Cluster {
    pub(crate) origin: Origin,
    pub(crate) redirector: Gateway,
    pub(crate) distributor: Gateway,
    pub(crate) replicas: Vec<Replica>,
    addresses: Vec<SocketAddr>,
    binary: Flashweir,
    settings: Settings,
}

/// `flashweir replica`.
pub(crate) struct Replica {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    _directory: TempDir,
}

impl Cluster {
    pub(crate) fn start(bench: &Bench, settings: Settings) -> Self {
        let Settings { work_ms, interval, high_rps, low_rps, answer, rules, .. } = settings;
        let work_ms = work_ms.to_string();
        let options =
            ["--workers", "1", "--work-ms", &work_ms, "--iterations-per-ms", &bench.iterations_per_ms];
        let origin = Origin::start_with(&bench.binary, &options);
        let addresses: Vec<SocketAddr> = (0..settings.replicas).map(|_| reserve_address()).collect();
        let gateway = |role: &str, targets: &[SocketAddr]| {
            let targets: Vec<String> =
                targets.iter().map(|address| format!("\"http://{address}\"")).collect();
            GatewayBuilder::new(&bench.binary)
                .upstream(&origin.url())
                .set("gateway.workers", "1")
                .text("replication.role", role)
                .set("replication.targets", &format!("[{}]", targets.join(", ")))
                .text("replication.answer", answer)
                .text("replication.rules", rules)
                .text("replication.interval", &format!("{}ms", interval.as_millis()))
                .set("replication.high_watermark", &format!("{high_rps:?}"))
                .set("replication.low_watermark", &format!("{low_rps:?}"))
                .start()
        };
        let redirector = gateway("redirector", &addresses);
        let distributor = gateway("distributor", &[redirector.address()]);
        let mut cluster = Self {
            origin,
            redirector,
            distributor,
            replicas: Vec::new(),
            addresses,
            binary: bench.binary.clone(),
            settings,
        };
        (0..settings.replicas).for_each(|_| cluster.start_replica());
        cluster.wait_usable(settings.replicas);
        cluster
    }

    /// Starts the next replica.
    fn start_replica(&mut self) {
        let (address, admin) = (self.addresses[self.replicas.len()], reserve_address());
        let directory = TempDir::new().expect("a fresh directory");
        let Settings { interval, high_rps, rules, .. } = self.settings;
        std::fs::write(directory.path().join("replica.toml"), format!("replication.rules = \"{rules}\"\n"))
            .expect("a writable directory");
        let texts = [
            self.origin.url(),
            address.to_string(),
            admin.to_string(),
            format!("http://{}", self.redirector.admin()),
            format!("{}ms", interval.as_millis()),
            high_rps.to_string(),
        ];
        let [of, listen, admin_text, report_to, interval, high] = texts.each_ref().map(String::as_str);
        let arguments = [
            ["--of", of],
            ["--listen", listen],
            ["--admin", admin_text],
            ["--report-to", report_to],
            ["--interval", interval],
            ["--high-watermark", high],
            ["--host", HOST],
            ["--config", "replica.toml"],
        ];
        let arguments = std::iter::once("replica").chain(arguments.iter().flatten().copied());
        let mut process = self.binary.start(directory.path(), arguments);
        eventually("the replica's readiness", || {
            assert!(process.ended().is_none(), "the replica ended at its start: {}", process.stderr());
            Client::try_connect(admin).ok().map(drop)
        });
        self.replicas.push(Replica { process, address, admin, _directory: directory });
    }

    /// Waits until the redirector uses this many replicas, and each of the running ones has reported.
    fn wait_usable(&self, count: usize) {
        eventually("the replicas that are used", || {
            let status = self.redirector.status()["replication"].take();
            let targets = status["targets"].as_array()?.clone();
            let is_used = |it: &serde_json::Value| it["usable"] == true;
            let used = targets.iter().filter(|it| is_used(it)).count();
            let reported = targets.iter().filter(|it| it["reported_age_s"].is_number()).count();
            (used == count && reported >= self.replicas.len()).then_some(())
        });
    }
}

impl Cluster {
    /// Paths of this many documents whose home is the first replica.
    pub(crate) fn paths_at_first(&self, count: usize) -> Vec<Box<str>> {
        let first = format!("http://{}/", self.addresses[0]);
        let mut client = Client::connect(self.redirector.admin());
        let mut is_there = |path: &str| {
            let url = format!("/replication/document?url=http://{HOST}{path}");
            let answer = client.ask(&format!("GET {url} HTTP/1.1\r\nHost: admin\r\n\r\n")).json();
            answer["home"][0] == first.as_str()
        };
        let paths = (0..).map(|number: u32| site::path(&number.to_string()));
        paths.filter(|path| is_there(path)).take(count).map(String::into_boxed_str).collect()
    }
}

impl Replica {
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::of(self.admin)
    }

    /// Requests that reached it.
    pub(crate) fn offered(&self) -> f64 {
        self.metrics().value("flashweir_requests_offered_total")
    }
}

/// CPU time of a process so far, by the scheduler's account of each of its threads, seconds.
pub(crate) fn cpu_s(process: &Process) -> f64 {
    let tasks = format!("/proc/{}/task", process.id());
    let entries = std::fs::read_dir(Path::new(&tasks)).expect("the process runs");
    let of = |path: &Path| -> Option<f64> {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    entries.flatten().filter_map(|entry| of(&entry.path())).sum::<f64>() / 1e9
}
