//! The thesis's servers, redirectors and documents.

use crate::experiments::laboratory::Simulation;
use crate::experiments::{ExperimentError, Options};
use flashweir_replication::distribution::Policy;
use flashweir_replication::placement::Watermarks;
use flashweir_replication::placement::published::PublishedRule;
use flashweir_replication::{RedirectorSettings, ServerSettings};
use flashweir_sim::replicas::{Front, Phase, PlacementRule, ReplicasOutcome, Scenario, StationModel, run};
use flashweir_workload::ArrivalProcess;
use flashweir_workload::documents::Popularity;
use std::time::Duration;

/// Minix3's documents (Table 3.2), of which ten get 79 % of the requests.
pub(super) const DOCUMENTS: u32 = 507;
pub(super) const HIGH_RPS: f64 = 300.0;

/// A replica server: two processors, 360 requests a second, and 36 requests in it at most, which is the peak
/// of 100 ms.
pub(super) const SERVER: StationModel = StationModel {
    processors: 2,
    work: Duration::from_micros(5_556),
    requests_max: 36,
    delay: Duration::ZERO,
};

/// A redirector or distributor: two processors, 1,540 requests a second, 3 ms when idle.
pub(super) const FRONT: StationModel = StationModel {
    processors: 2,
    work: Duration::from_micros(1_299),
    requests_max: 1_000,
    delay: Duration::from_micros(1_700),
};

/// Rules in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// ACDN's weights and offload, reports each interval.
    Published(PublishedRule),
    /// The repaired ones, early reports.
    Repaired { redirectors: u16 },
}

/// A step of load on servers of which one has everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) mode: Mode,
    pub(super) servers: u16,
    pub(super) low_rps: f64,
    pub(super) interval_s: u64,
    pub(super) quiet_rps: u32,
    pub(super) crowd_rps: u32,
    pub(super) crowd_s: u64,
    /// Time of the servers' first reports; none: each at its own moment.
    pub(super) first_report_s: Option<u64>,
    pub(super) seed: u64,
}

/// Onset of the crowd (Figure 4.8).
pub(super) const QUIET_S: u64 = 21;

impl Simulation for Step {
    type Outcome = ReplicasOutcome;

    fn run(&self) -> Result<ReplicasOutcome, ExperimentError> {
        let phases = vec![phase(self.quiet_rps, QUIET_S), phase(self.crowd_rps, self.crowd_s)];
        let mut scenario =
            Scenario { servers: self.servers, ..self.mode.scenario(self.low_rps, self.interval_s) };
        (scenario.phases, scenario.seed) = (phases, self.seed);
        scenario.first_report = self.first_report_s.map(Duration::from_secs);
        Ok(run(&scenario)?)
    }
}

/// One load on servers that have everything, with or without redirectors before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    pub(super) servers: u16,
    /// Distributors, and as many redirectors; 0: clients go to the servers.
    pub(super) fronts: u16,
    pub(super) rps: u32,
    pub(super) length_s: u64,
    pub(super) seed: u64,
}

impl Simulation for Even {
    type Outcome = ReplicasOutcome;

    fn run(&self) -> Result<ReplicasOutcome, ExperimentError> {
        let front = (self.fronts > 0).then_some(Front { distributors: self.fronts, station: FRONT });
        let repaired = Mode::Repaired { redirectors: self.fronts.max(1) }.scenario(200.0, 10);
        Ok(run(&Scenario {
            servers: self.servers,
            is_everywhere: true,
            front,
            placement: PlacementRule::Never,
            phases: vec![phase(self.rps, self.length_s)],
            seed: self.seed,
            ..repaired
        })?)
    }
}

impl Mode {
    pub(super) const ESSER: Self = Self::Published(PublishedRule::ESSER);

    /// Two servers, half-second bins; phases and seed are the caller's.
    pub(super) fn scenario(self, low_rps: f64, interval_s: u64) -> Scenario {
        let watermarks = Watermarks { high_rps: HIGH_RPS, low_rps };
        let servers =
            ServerSettings { report_interval: Duration::from_secs(interval_s), ..ServerSettings::default() };
        let settings = RedirectorSettings { watermarks, servers, ..RedirectorSettings::default() };
        let (placement, policy, redirectors, has_early_reports) = match self {
            Self::Published(rule) => (PlacementRule::Published(rule), Policy::Acdn { memory: 0.0 }, 1, false),
            Self::Repaired { redirectors } => {
                (PlacementRule::Repaired, Policy::TwoChoices, redirectors, true)
            }
        };
        Scenario {
            servers: 2,
            server: SERVER,
            documents: DOCUMENTS,
            is_everywhere: false,
            front: None,
            redirectors,
            settings: RedirectorSettings { policy, ..settings },
            placement,
            has_early_reports,
            first_report: None,
            fetch_time: Duration::from_millis(20),
            phases: Vec::new(),
            silence: None,
            bin: Duration::from_millis(500),
            seed: 0,
        }
    }
}

/// Method 4 of the thesis: as many workers as requests per second.
fn phase(rps: u32, length_s: u64) -> Phase {
    // Holds because the experiments' loads and documents are valid.
    let arrivals = ArrivalProcess::random_timing(rps, Duration::from_secs(length_s)).expect("workers");
    Phase { arrivals, popularity: Popularity::zipf(1.5, DOCUMENTS).expect("documents") }
}

/// Differences between these runs and the thesis's.
pub(super) fn notes(options: &Options, seeds: u32) -> Vec<String> {
    vec![
        "The server was chosen by figures 4.4, 4.5 and 4.7: two processors with exponential work, 360 requests/s, 36 requests in it \
         at most. Documents are Minix3's by number and concentration (507, Zipf with exponent 1.5: ten get 79 %); requests come by the thesis's \
         method 4. Lengths of quiet and crowd make no difference here."
            .to_owned(),
        format!("{seeds} seeds, from {}; the thesis tells of one run.", options.seed),
    ]
}
