//! Agents beside the servers: asked once a second for what their machines are short of, and how busy they
//! are.
//!
//! Their reports name the shortage in the verdict and shift the servers' shares within a factor of two. They
//! refuse no request: an agent that lies, is slow or is gone costs a word.

mod report;

pub(crate) use report::{Machines, machines_json};

use crate::exchange::{ExchangeError, exchange};
use crate::shared::{Live, Shared};
use bytes::Bytes;
use flashweir_core::limits::{AGENT_POLLS, AGENT_REPORT_BYTES};
use flashweir_core::{Duration, Shortage};
use flashweir_telemetry::{AgentAnswer, Happening};
use http::{Request, Uri};
use report::{MachineReport, ReportError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// As often as an agent reads.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// An answer takes a millisecond; one that comes later is of a machine that has other cares, or is gone.
const ANSWER_WITHIN: Duration = Duration::from_millis(800);

/// Reason for which an agent gave no report.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Asks all agents of all services until the future is dropped.
pub(crate) async fn watch_agents(shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(AGENT_POLLS));
    let mut ticks = tokio::time::interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let live = shared.live.load_full();
        let asked = ask_all(&shared, &live, &room).await;
        publish(&shared, &live, &asked);
    }
}

/// Asks each agent once, however many servers it stands for.
async fn ask_all(shared: &Shared, live: &Live, room: &Arc<Semaphore>) -> BTreeMap<String, MachineReport> {
    let agents = live.config.services.iter().flat_map(|service| &service.upstream.agents);
    let agents: BTreeMap<String, Uri> = agents.map(|agent| (agent.to_string(), agent.clone())).collect();
    let mut asked = JoinSet::new();
    for (name, agent) in agents {
        let room = room.clone();
        asked.spawn_local(async move {
            // Never closed.
            let _place = room.acquire_owned().await;
            (name, ask(&agent).await)
        });
    }
    let mut reports = BTreeMap::new();
    while let Some(ended) = asked.join_next().await {
        let Ok((name, answer)) = ended else { continue };
        let control = shared.telemetry.control();
        match answer {
            Ok((short_of, utilisation_milli, explanation)) => {
                control.count_agent(AgentAnswer::Used);
                let at = shared.clock.now();
                reports.insert(name, MachineReport { at, short_of, utilisation_milli, explanation });
            }
            Err(error) => {
                let is_report = matches!(
                    error,
                    AskError::Report(_) | AskError::Exchange(ExchangeError::Body | ExchangeError::Status(_))
                );
                control.count_agent(if is_report { AgentAnswer::Malformed } else { AgentAnswer::NoAnswer });
                shared.warn(Happening::Agent, format_args!("an agent gave no report: {error}"));
            }
        }
    }
    reports
}

/// Publishes the reports for the verdict and `/status`, and lets the servers' shares learn from them.
fn publish(shared: &Shared, live: &Live, reports: &BTreeMap<String, MachineReport>) {
    let before = shared.machines.load();
    let mut machines = Machines::default();
    let mut words = Vec::new();
    for (service, upstreams) in live.services() {
        let agents = service.upstream.agents.iter().map(ToString::to_string);
        for (place, agent) in agents.enumerate() {
            let fresh = reports.get(&agent);
            if let Some(report) = fresh {
                upstreams.record_utilisation(place, report.utilisation_milli);
            }
            machines.insert(&service.name, place, fresh.or_else(|| before.of_server(&service.name, place)));
        }
        if let Some(short_of) = machines.short_of(shared.clock.now(), &service.name) {
            words.push((service.name.clone(), short_of));
        }
    }
    shared.telemetry.control().publish_machines(words);
    shared.machines.store(Arc::new(machines));
}

async fn ask(agent: &Uri) -> Result<(Shortage, u32, String), AskError> {
    let bounds = (ANSWER_WITHIN, AGENT_REPORT_BYTES);
    let body = exchange(agent, Request::get("/load"), Bytes::new(), bounds).await?;
    Ok(report::parse(&body)?)
}
