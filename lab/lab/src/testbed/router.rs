//! `flashweir router` as the paper's router: NEWS, and new connections that do not fit are dropped.

use super::network::{FAR, Network, ROUTER};
use super::protection_record::ProtectionRecord;
use super::router_cost::{Account, cost};
use crate::experiments::testbed::Decision;
use anyhow::{Context as _, bail};
use flashweir_config::command::program::Program;
use flashweir_kernel::account::RunTimes;
use flashweir_testbed::{Running, Testbed};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// In the router's own namespace, which no other process shares. Below the ports that clients get: a client
/// of a port that no server listens on yet could otherwise be given that very port, and be connected to
/// itself.
const ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 900);
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at what it decided.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// It answers at once, or something is wrong.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Router {
    process: Running,
    /// Run times of its programs in the kernel are measured while it works.
    _measured: RunTimes,
    _directory: TempDir,
}

impl Router {
    pub(super) fn start(
        network: &Network,
        mode: &str,
        interval_s: u64,
        hot_spots: bool,
    ) -> anyhow::Result<Self> {
        let measured = RunTimes::measure().context("the kernel does not measure its programs")?;
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
        let mut command = Command::new(Program::Flashweir.find()?);
        command.args(["router", "--config"]).arg(&path);
        command.arg("--state-file").arg(directory.path().join("state.json")).current_dir(directory.path());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&errors)?);
        let process = network.testbed.start(ROUTER, &mut command)?;
        let mut router = Self { process, _measured: measured, _directory: directory };
        let deadline = Instant::now() + STARTS_WITHIN;
        while status(&network.testbed).is_err() {
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
        mut self,
        testbed: &Testbed,
        start: Instant,
        onset_s: u64,
        over: &AtomicBool,
    ) -> anyhow::Result<ProtectionRecord> {
        let onset = start + Duration::from_secs(onset_s);
        let mut record = ProtectionRecord::default();
        let mut before: Option<Option<f64>> = None;
        let begun = self.account(testbed)?;
        let mut at_onset = None;
        let mut unanswered = Unanswered::default();
        while !over.load(Ordering::Relaxed) {
            let looked = status(testbed);
            if looked.is_err() && self.process.ended()?.is_some() {
                bail!("`flashweir router` ended in the middle of a run");
            }
            if let Some(status) = unanswered.note(looked) {
                let limit_per_s = status["ceiling_per_s"].as_f64();
                if before != Some(limit_per_s) {
                    before = Some(limit_per_s);
                    let at_s = start.elapsed().as_secs_f64();
                    record.decisions.push(Decision { at_s, limit_per_s });
                }
            }
            if at_onset.is_none() && Instant::now() >= onset {
                at_onset = unanswered.note(self.account(testbed));
            }
            park_timeout(LOOK_EVERY);
        }
        if let (Some(at_onset), Some(end)) = (at_onset, unanswered.note(self.account(testbed))) {
            record.router = Some(cost([&begun, &at_onset, &end])?);
        }
        record.doubts.extend(unanswered.doubt());
        Ok(record)
    }

    fn account(&self, testbed: &Testbed) -> anyhow::Result<Account> {
        Account::of(self.process.id(), &ask(testbed, "/metrics")?)
    }
}

/// Questions that the router left unanswered: on a machine that is too busy, no reason to give up a long run.
#[derive(Default)]
struct Unanswered {
    count: u32,
    last: Option<anyhow::Error>,
}

impl Unanswered {
    fn note<T>(&mut self, answer: anyhow::Result<T>) -> Option<T> {
        answer.map_err(|error| (self.count, self.last) = (self.count + 1, Some(error))).ok()
    }

    fn doubt(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        Some(format!("{} questions to the router stayed without an answer, at last: {last:#}", self.count))
    }
}

fn status(testbed: &Testbed) -> anyhow::Result<Value> {
    serde_json::from_str(&ask(testbed, "/status")?).context("/status of the router")
}

/// The router's answer there.
fn ask(testbed: &Testbed, path: &str) -> anyhow::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: router\r\nConnection: close\r\n\r\n");
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&ADMIN, ANSWERS_WITHIN)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = testbed.inside(ROUTER, ask)?.with_context(|| format!("{path} of the router"))?;
    let (_, body) =
        text.split_once("\r\n\r\n").with_context(|| format!("{path} of the router has no body"))?;
    Ok(body.to_owned())
}
