//! `flashweir router` as the paper's router: NEWS, and new connections that do not fit are dropped.

use super::network::{FAR, Network, ROUTER};
use super::protection::Deeds;
use anyhow::{Context as _, bail};
use flashweir_experiments::testbed::Decision;
use flashweir_testbed::{Running, Testbed};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Of the router's own namespace, which nobody shares. Below the ports that clients get: who asks a port that nobody
/// listens on yet could otherwise be given that very port, and be connected to itself.
const ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 900);
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at what it decided.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// It answers at once, or something is wrong.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Router {
    process: Running,
    _directory: TempDir,
}

impl Router {
    pub(super) fn start(
        network: &Network,
        mode: &str,
        interval_s: u64,
        hot_spots: bool,
    ) -> anyhow::Result<Self> {
        let directory = TempDir::new().context("no temporary directory for the router")?;
        let protect: Vec<String> = [Some(network.target), network.neighbour]
            .into_iter()
            .flatten()
            .map(|at| format!("\"{at}\""))
            .collect();
        let config = format!(
            "[admin]\naddress = \"{ADMIN}\"\n[kernel]\ninterface = \"{FAR}\"\nrefusal = \"drop\"\nprotect = [{}]\ninterval = \
             \"{interval_s}s\"\n[flash_crowd]\nmode = \"{mode}\"\nhot_spots = {hot_spots}\n",
            protect.join(", ")
        );
        let path = directory.path().join("router.toml");
        std::fs::write(&path, config)?;
        let errors = directory.path().join("errors");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["router", "--config"]).arg(&path);
        command.arg("--state-file").arg(directory.path().join("state.json")).current_dir(directory.path());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&errors)?);
        let process = network.testbed.start(ROUTER, &mut command)?;
        let mut router = Self { process, _directory: directory };
        let deadline = Instant::now() + STARTS_WITHIN;
        while router.status(&network.testbed).is_err() {
            if router.process.ended()?.is_some() || Instant::now() > deadline {
                let said = std::fs::read_to_string(&errors).unwrap_or_default();
                bail!("`flashweir router` does not start: {}", said.trim());
            }
            park_timeout(LOOK_EVERY / 5);
        }
        Ok(router)
    }

    /// Looks up what it decides, until `over`.
    pub(super) fn act(
        self,
        testbed: &Testbed,
        start: Instant,
        onset_s: u64,
        over: &AtomicBool,
    ) -> anyhow::Result<Deeds> {
        let onset = start + Duration::from_secs(onset_s);
        let mut deeds = Deeds::default();
        let mut before: Option<Option<f64>> = None;
        let begun = (Instant::now(), self.processor_ns()?);
        let mut at_onset = begun;
        while !over.load(Ordering::Relaxed) {
            let limit_per_s = self.status(testbed)?["ceiling_per_s"].as_f64();
            if before != Some(limit_per_s) {
                before = Some(limit_per_s);
                let at_s = start.elapsed().as_secs_f64();
                deeds.decisions.push(Decision { at_s, limit_per_s });
            }
            if Instant::now() < onset {
                at_onset = (Instant::now(), self.processor_ns()?);
            }
            park_timeout(LOOK_EVERY);
        }
        let end = (Instant::now(), self.processor_ns()?);
        let percent = |from: (Instant, u64), to: (Instant, u64)| {
            (to.1 - from.1) as f64 / (to.0 - from.0).as_nanos().max(1) as f64 * 100.0
        };
        deeds.processor_percent = Some([percent(begun, at_onset), percent(at_onset, end)]);
        deeds.memory_bytes = Some(self.memory_bytes()?);
        Ok(deeds)
    }

    fn status(&self, testbed: &Testbed) -> anyhow::Result<Value> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&ADMIN, ANSWERS_WITHIN)?;
            stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
            stream.write_all(b"GET /status HTTP/1.1\r\nHost: router\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = testbed.inside(ROUTER, ask)?.context("/status of the router")?;
        let (_, body) = text.split_once("\r\n\r\n").context("/status of the router has no body")?;
        serde_json::from_str(body).context("/status of the router")
    }

    /// Processor time of all its threads so far.
    fn processor_ns(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            // A thread may end between two looks.
            let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    fn memory_bytes(&self) -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes << 10)
    }
}
