//! Form of a scenario file. The keys of `[workload]` and of the behaviour of people are the load tool's
//! words.

use crate::scenario::packet_file::{
    ClientsFile, ControllerPlace, DatagramsFile, LinkFile, TcpName, TransferFile,
};
use crate::scenario::text::{OneOrMany, RateAt, Stretch, Text, Time};
use crate::scenario::work::WorkText;
use flashweir_admission::sentry;
use flashweir_core::Duration;
use flashweir_workload::documents::Sizes;
use flashweir_workload::people::{Failures, Pace, SessionLength, Wait};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) duration: Option<Text<Time>>,
    #[serde(default = "one")]
    pub(crate) seed: u64,
    #[serde(default = "usual_seeds")]
    pub(crate) seeds: u32,
    #[serde(default = "second")]
    pub(crate) bin: Text<Time>,
    pub(crate) workload: Option<ArrivalsFile>,
    #[serde(default, rename = "class")]
    pub(crate) classes: Vec<ClassFile>,
    #[serde(default)]
    pub(crate) network: NetworkFile,
    #[serde(default, rename = "link")]
    pub(crate) links: Vec<LinkFile>,
    #[serde(default, rename = "transfer")]
    pub(crate) transfers: Vec<TransferFile>,
    #[serde(default)]
    pub(crate) datagrams: Vec<DatagramsFile>,
    #[serde(default)]
    pub(crate) server: ServerFile,
    #[serde(default)]
    pub(crate) controller: ControllerFile,
    #[serde(default, rename = "fault")]
    pub(crate) faults: Vec<FaultFile>,
    #[serde(default)]
    pub(crate) window: BTreeMap<String, Text<Stretch>>,
    #[serde(default)]
    pub(crate) accept: toml::Table,
}

/// Arrivals of people.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrivalsFile {
    pub(crate) rate: Option<f64>,
    pub(crate) step: Option<OneOrMany<RateAt>>,
    pub(crate) ramp: Option<Text<RateAt>>,
    pub(crate) spike: Option<Text<RateAt>>,
    #[serde(alias = "half-life")]
    pub(crate) half_life: Option<Text<Time>>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) column: Option<Text<String>>,
    pub(crate) bin: Option<Text<Time>>,
    #[serde(default)]
    pub(crate) crowd: bool,
    pub(crate) squeeze: Option<f64>,
    pub(crate) scale: Option<f64>,
    pub(crate) peak: Option<f64>,
    #[serde(default)]
    pub(crate) arrivals: Spread,
    #[serde(alias = "pareto-alpha")]
    pub(crate) pareto_alpha: Option<f64>,
    pub(crate) gap: Option<Text<Time>>,
}

/// Spread of arrivals at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Spread {
    #[default]
    Poisson,
    Constant,
    #[serde(alias = "self-similar")]
    SelfSimilar,
}

/// Behaviour of the people of one class, and its cost to the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassFile {
    pub(crate) name: String,
    pub(crate) weight: Option<f64>,
    pub(crate) workload: Option<ArrivalsFile>,
    pub(crate) work: Text<WorkText>,
    #[serde(default)]
    pub(crate) host: u32,
    #[serde(default = "one_document")]
    pub(crate) documents: NonZeroU32,
    pub(crate) zipf: Option<f64>,
    pub(crate) sizes: Option<Text<Sizes>>,
    pub(crate) target: Option<Text<Time>>,
    pub(crate) timeout: Option<Text<Time>>,
    pub(crate) patience: Option<Text<Wait>>,
    pub(crate) session: Option<Text<SessionLength>>,
    pub(crate) think: Option<Text<Wait>>,
    pub(crate) retry: Option<Text<Pace>>,
    #[serde(alias = "retry-share")]
    pub(crate) retry_share: Option<f64>,
    pub(crate) tries: Option<NonZeroU32>,
    #[serde(alias = "retry-on")]
    pub(crate) retry_on: Option<Text<Failures>>,
    #[serde(default)]
    pub(crate) goes_on_unserved: bool,
    pub(crate) policy_class: Option<String>,
    pub(crate) revenue: Option<f64>,
    pub(crate) guaranteed_rate: Option<f64>,
    pub(crate) response_target: Option<Text<Time>>,
    pub(crate) queue: Option<u32>,
    pub(crate) clients: Option<ClientsFile>,
    pub(crate) server: Option<String>,
    pub(crate) signs: Option<SignsFile>,
}

/// Attributes that the requests of a class show of their clients to a gateway that compares them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignsFile {
    pub(crate) of: SignsOf,
    pub(crate) addresses: Option<NonZeroU32>,
    pub(crate) assets: Option<u32>,
    #[serde(default)]
    pub(crate) tls: bool,
}

/// Behaviour of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignsOf {
    People,
    Crawler,
}

/// The network between people and the gate, unless links describe it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkFile {
    pub(crate) one_way_delay: Option<Text<Time>>,
    pub(crate) tcp: Option<TcpName>,
}

/// The server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerFile {
    pub(crate) kind: ServerKind,
    pub(crate) processors: NonZeroU32,
    pub(crate) workers: Option<NonZeroU32>,
    pub(crate) queue: Option<u32>,
    pub(crate) overflow: OverflowKind,
    pub(crate) refusal_cost: Text<Time>,
    pub(crate) departed: DepartedKind,
    pub(crate) memory: Option<MemoryFile>,
}

/// Scheduling of the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerKind {
    #[default]
    FirstCome,
    Shared,
}

/// Treatment of requests for which there is no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverflowKind {
    #[default]
    Drop,
    Refuse,
}

/// The server's work for a client that has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DepartedKind {
    Stops,
    /// Most programs notice only when they write.
    #[default]
    WorksOn,
}

/// Memory that can run short.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryFile {
    pub(crate) memory_mib: u64,
    pub(crate) base_mib: u64,
    pub(crate) request_kib: u64,
    pub(crate) penalty: f64,
}

/// The controller. Keys that the mode does not use are checked all the same and have no effect, so that
/// `--set controller.mode=none` alone takes the controller away.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ControllerFile {
    pub(crate) mode: ControllerMode,
    pub(crate) at: ControllerPlace,
    pub(crate) link: Option<String>,
    pub(crate) guards: Option<Vec<String>>,
    pub(crate) max_requests_in_flight: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) burst: Option<u64>,
    pub(crate) interval: Option<Text<Time>>,
    pub(crate) margin: Option<f64>,
    pub(crate) target: Option<Text<Time>>,
    pub(crate) gates: Option<usize>,
    /// Processor time that one decision of the sentry takes.
    pub(crate) decision_time: Option<Text<Time>>,
    pub(crate) hot_spots: Option<bool>,
    pub(crate) shadow: bool,
    pub(crate) first_tick: Option<Text<Time>>,
    pub(crate) policing: Option<Policing>,
    pub(crate) ladder: Vec<LadderStepFile>,
}

/// A step of the ladder of targets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LadderStepFile {
    pub(crate) below: Option<f64>,
    pub(crate) response_target: Text<Time>,
}

/// Division of capacity among classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Policing {
    /// The rule of the gateway: room in flight is kept for the more important, and queued requests go in
    /// order of importance.
    #[default]
    Reservation,
    /// Cataclysm's batches, with repairs.
    Batch,
    /// Cataclysm's threshold, with repairs.
    Threshold,
    /// `Batch` while deciding costs little, `Threshold` when it costs much.
    Auto,
    /// No request is refused.
    Off,
}

impl Policing {
    /// The rule of the sentry; `None` where no request is refused.
    pub(crate) fn rule(self) -> Option<sentry::Policing> {
        match self {
            Self::Reservation => Some(sentry::Policing::Reservation),
            Self::Batch => Some(sentry::Policing::Batch),
            Self::Threshold => Some(sentry::Policing::Threshold),
            Self::Auto => Some(sentry::Policing::Auto),
            Self::Off => None,
        }
    }
}

/// Rules that admit requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControllerMode {
    #[default]
    None,
    Static,
    Repaired,
    Paper,
    Scoreboard,
    Sentry,
    Default,
}

/// A fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultFile {
    pub(crate) kind: FaultName,
    pub(crate) during: Text<Stretch>,
    pub(crate) factor: Option<f64>,
    pub(crate) share: Option<f64>,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultName {
    Crash,
    Slow,
    LinkCut,
    LostFeedback,
}

impl Default for ServerFile {
    fn default() -> Self {
        Self {
            kind: ServerKind::default(),
            processors: NonZeroU32::MIN,
            workers: None,
            queue: None,
            overflow: OverflowKind::default(),
            refusal_cost: Text(Time(Duration::ZERO)),
            departed: DepartedKind::default(),
            memory: None,
        }
    }
}

const fn one() -> u64 {
    1
}

/// Three give a confidence interval, if a wide one.
const fn usual_seeds() -> u32 {
    3
}

const fn second() -> Text<Time> {
    Text(Time(Duration::from_secs(1)))
}

const fn one_document() -> NonZeroU32 {
    NonZeroU32::MIN
}
