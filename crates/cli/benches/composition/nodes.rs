//! A crowd through a sidecar, before a gateway with one stage, two and three.

use crate::common::stage::{Stage, binary, send_to};
use flashweir_load::trials::composition::nodes::{LOAD, NodesRun, PAGE_MS, Stages};
use flashweir_testkit::{GatewayBuilder, Process, eventually, reserve_address};
use flashweir_workload::RateProfile;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;

/// Calm before the crowd, in which the gateway learns what is usual.
const CALM_S: u64 = 3;
const CALM_LOAD: f64 = 0.3;
/// The crowd is measured from here on.
const NOTICED_WITHIN_S: u64 = 2;
const MEASURED_S: u64 = 12;

pub(crate) fn run(stage: &Stage, rounds: usize) -> Vec<NodesRun> {
    let mut runs = Vec::new();
    for round in 0..rounds {
        let capacity_rps = stage.capacity_rps(PAGE_MS);
        let mut all = Stages::ALL;
        if round % 2 == 1 {
            all.reverse();
        }
        for stages in all {
            eprint!("{LOAD}× {capacity_rps:.0}/s, {}: ", stages.name());
            match visit(stage, stages, round, capacity_rps) {
                Ok(run) => {
                    eprintln!("{:.3}, {:.4} refused at the node", run.useful.useful(), run.refused_at_node);
                    runs.push(run);
                }
                Err(why) => eprintln!("not measured: {why}"),
            }
        }
    }
    runs
}

fn visit(stage: &Stage, stages: Stages, round: usize, capacity_rps: f64) -> Result<NodesRun, String> {
    let from_s = CALM_S + NOTICED_WITHIN_S;
    let profile = RateProfile::step(
        CALM_LOAD * capacity_rps,
        LOAD * capacity_rps,
        Duration::from_secs(CALM_S),
        // A little longer: the last reading comes up to 0.2 s late.
        Duration::from_secs(from_s + MEASURED_S) + Duration::from_millis(300),
    );
    let (origin, profile) = (stage.origin(PAGE_MS), profile.map_err(|error| error.to_string())?);
    let gateway = compose(stages, GatewayBuilder::new(&binary()).upstream(&origin.url())).start();
    let sidecar = Sidecar::start(gateway.address());
    let moments = [from_s, from_s + MEASURED_S].map(Duration::from_secs);
    let (load, useful) = send_to(sidecar.address, &origin, profile, moments, |_| {})?;
    let refused = gateway.metrics().sum("flashweir_requests_shed_total");
    let refused_at_node = refused / (load.totals.offered as f64).max(1.0);
    Ok(NodesRun { stages, round, useful, refused_at_node, is_saturated: load.saturated })
}

fn compose(stages: Stages, builder: GatewayBuilder) -> GatewayBuilder {
    match stages {
        Stages::Sentry => builder.text("flash_crowd.mode", "off"),
        Stages::Default => builder,
        Stages::Ladder => builder.set("feedback.senders", "[\"127.0.0.1/32\"]"),
    }
}

/// `flashweir egress` in front of the gateway, ended when dropped.
struct Sidecar {
    address: SocketAddr,
    _process: Process,
    _directory: TempDir,
}

impl Sidecar {
    fn start(node: SocketAddr) -> Self {
        let (address, directory) = (reserve_address(), TempDir::new().expect("a directory"));
        let config = format!(
            "name = \"shop\"\n[[listen]]\naddress = \"{address}\"\ntarget = \"api\"\n\
             [[target]]\nname = \"api\"\nurls = [\"http://{node}\"]\n"
        );
        std::fs::write(directory.path().join("egress.toml"), config).expect("a writable directory");
        let process = binary().start(directory.path(), ["egress", "--config", "egress.toml"]);
        eventually("the sidecar", || process.stderr().contains("egress ready").then_some(()));
        Self { address, _process: process, _directory: directory }
    }
}
