//! Everything that defines a run at request level.

use super::{Fault, NetworkModel, Policy, ServerModel, SignModel, Work};
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_core::limits::{SIM_FAULTS, SIM_SERIES_BINS};
use flashweir_core::{Duration, Instant};
use flashweir_workload::Schedule;
use flashweir_workload::documents::{Popularity, Sizes};
use flashweir_workload::people::Habits;
use std::num::NonZeroU32;

/// One run. Made by [`Scenario::new`], then changed at will.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Arrivals of people, and their classes. It has its own seed.
    pub schedule: Schedule,
    /// The classes, in the order of the schedule's numbers.
    pub classes: Vec<ClassModel>,
    /// Draws each person's habits and documents, each request's work, and the gate's keys. With the seed of
    /// `flashweir load` (and the same schedule and habits) the very same people come.
    pub seed: u64,
    /// Network between clients and gate. Gate and server are next to each other.
    pub network: NetworkModel,
    /// Admission policy.
    pub policy: Policy,
    /// Requests between gate and server at once; more are shed.
    pub requests_in_flight: Option<u64>,
    /// The server.
    pub server: ServerModel,
    /// Faults during the run.
    pub faults: Vec<Fault>,
    /// Width of the series' bins.
    pub bin: Duration,
}

/// Behaviour of the people of one class, as in the load tool, and its cost to the server.
#[derive(Clone, Debug)]
pub struct ClassModel {
    /// Its name in reports.
    pub name: String,
    /// Host that they go to: it distinguishes hot spots.
    pub host: u32,
    /// Index of their class in the sentry's policy.
    pub policy_class: u8,
    /// Priority of its requests under a ceiling; exempt ones are none of the sentry's.
    pub ceiling_priority: CeilingPriority,
    /// True if they all are one client, with a connection for each: a machine, or one address of many.
    pub is_one_client: bool,
    /// Signs of clients in its requests; none: fairness among clients does not judge them.
    pub signs: Option<SignModel>,
    /// Documents they ask for.
    pub popularity: Popularity,
    /// Sizes of those.
    pub sizes: Sizes,
    /// Time for which a request, once in service, waits for something elsewhere before its work: it keeps its
    /// worker and uses no processor (a long poll, a call to another service). The same for all its tries.
    pub wait: Work,
    /// Requests that wait longer at first: caches are empty, code is not compiled, connections are not open.
    pub warm_up: Option<WarmUp>,
    /// Processor time of a request; the same for all its tries.
    pub work: Work,
    /// Sessions, patience, retries.
    pub habits: Habits,
    /// True if people go on with their session after a request they gave up: machines do, people leave.
    pub goes_on_unserved: bool,
    /// Time that the client waits for the whole answer of one try before it gives the try up.
    pub timeout: Duration,
    /// A completed answer within this time of the moment the try was to begin is goodput.
    pub good_within: Duration,
}

/// A class's first requests after a start of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Moment of that start; the server is warm before it.
    pub from: Instant,
    /// Requests of the class that the server takes in before it is warm.
    pub requests: u64,
    /// Time that each of them waits before its work, besides the class's wait.
    pub wait: Duration,
}

/// The scenario makes no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ScenarioError {
    /// Part of the scenario.
    pub key: String,
    /// Description of the problem.
    pub problem: String,
}

impl ClassModel {
    /// Every client asks for one document of 1 kB, once: timeout 2 s, goodput within 1 s, as in the load
    /// tool.
    #[must_use]
    pub fn new(name: impl Into<String>, work: Work) -> Self {
        Self {
            name: name.into(),
            host: 0,
            policy_class: 0,
            ceiling_priority: CeilingPriority::LAST,
            is_one_client: false,
            signs: None,
            popularity: Popularity::InOrder { count: NonZeroU32::MIN },
            sizes: Sizes::Constant(1_000),
            wait: Work::Constant(Duration::ZERO),
            warm_up: None,
            work,
            habits: Habits::default(),
            goes_on_unserved: false,
            timeout: Duration::from_secs(2),
            good_within: Duration::from_secs(1),
        }
    }
}

impl Scenario {
    /// A run of one class before one server, without delay, policy or faults; seed 1, bins of a second.
    #[must_use]
    pub fn new(schedule: Schedule, class: ClassModel, server: ServerModel) -> Self {
        Self {
            schedule,
            classes: vec![class],
            seed: 1,
            network: NetworkModel::Delay(Duration::ZERO),
            policy: Policy::None,
            requests_in_flight: None,
            server,
            faults: Vec::new(),
            bin: Duration::from_secs(1),
        }
    }

    /// Checks what the types cannot, and that the run fits its bounds of memory.
    ///
    /// # Errors
    /// The first thing that is wrong, by the name of the field.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if self.schedule.classes().iter().any(|class| usize::from(*class) >= self.classes.len()) {
            return wrong("schedule", "it has people of a class that is not described");
        }
        if self.schedule.expected() <= 0.0 {
            return wrong("schedule", "nobody would come");
        }
        if self.schedule.length() > LENGTH_MOST {
            return wrong("schedule", format!("a run lasts at most {} s", LENGTH_MOST.as_secs()));
        }
        for class in &self.classes {
            class.check()?;
        }
        let series = match &self.network {
            NetworkModel::Delay(delay) if *delay > DELAY_MOST => {
                return wrong("network.one_way_delay", format!("at most {} s", DELAY_MOST.as_secs()));
            }
            NetworkModel::Delay(_) => self.classes.len() + 1,
            NetworkModel::Packets(packets) => {
                packets.check(&self.classes, self.schedule.length())?;
                self.classes.len() + 1 + packets.series()
            }
        };
        if let Some(policy) = self.policy.flash_crowd_policy() {
            let settings = &policy.settings;
            if settings.interval < INTERVAL_LEAST {
                return wrong("policy.interval", format!("at least {} ms", INTERVAL_LEAST.as_millis()));
            }
            if !(settings.margin > 0.0 && settings.margin < 1.0) {
                return wrong("policy.margin", format!("{} is not between 0 and 1", settings.margin));
            }
            if settings.gates == 0 || settings.gates > flashweir_core::limits::WORKERS {
                return wrong("policy.gates", format!("{} gates", settings.gates));
            }
        }
        if let Some(sentry) = self.policy.sentry_policy() {
            if let Some((part, problem)) = sentry.problem() {
                return wrong(format!("policy.{part}"), problem);
            }
            let count = sentry.policy.classes.len();
            if let Some(class) = self.classes.iter().find(|class| usize::from(class.policy_class) >= count) {
                return wrong(format!("class {}, policy_class", class.name), "the policy has no such class");
            }
        }
        if let Some(problem) = self.server.problem() {
            return wrong("server", problem);
        }
        if self.faults.len() > SIM_FAULTS {
            return wrong("faults", format!("{} are more than {SIM_FAULTS}", self.faults.len()));
        }
        for (index, fault) in self.faults.iter().enumerate() {
            if let Some(problem) = fault.problem().or_else(|| self.server.problem_with(&fault.kind)) {
                return wrong(format!("faults[{index}]"), problem);
            }
        }
        if self.bin < BIN_LEAST {
            return wrong("bin", format!("at least {} ms", BIN_LEAST.as_millis()));
        }
        match self.bins().checked_mul(series) {
            Some(bins) if bins <= SIM_SERIES_BINS => Ok(()),
            _ => wrong(
                "bin",
                format!("the series would have more than {SIM_SERIES_BINS} bins: make them wider"),
            ),
        }
    }

    /// Time from which nothing begins any more.
    #[must_use]
    pub fn ends_at(&self) -> Instant {
        Instant::from_duration(self.schedule.length())
    }

    /// Bins of each series; the last one reaches beyond the end of the schedule.
    pub(super) fn bins(&self) -> usize {
        let bins = self.schedule.length().as_nanos() / self.bin.as_nanos().max(1) + 1;
        usize::try_from(bins).unwrap_or(usize::MAX)
    }
}

impl ClassModel {
    fn check(&self) -> Result<(), ScenarioError> {
        let key = |field: &str| format!("class {}, {field}", self.name);
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MOST {
            return wrong(key("timeout"), format!("above 0 and at most {} s", TIMEOUT_MOST.as_secs()));
        }
        if let Some(problem) = self.wait.problem() {
            return wrong(key("wait"), problem);
        }
        if self.warm_up.is_some_and(|warm_up| warm_up.wait > TIMEOUT_MOST) {
            return wrong(key("warm_up"), format!("at most {} s", TIMEOUT_MOST.as_secs()));
        }
        match self.work.problem() {
            Some(problem) => wrong(key("work"), problem),
            None => Ok(()),
        }
    }
}

fn wrong<T>(key: impl Into<String>, problem: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError { key: key.into(), problem: problem.into() })
}

/// A week, as for the load tool.
const LENGTH_MOST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Latencies end at an hour.
const TIMEOUT_MOST: Duration = Duration::from_secs(3600);
/// Farther than anything on Earth, and than the Moon.
const DELAY_MOST: Duration = Duration::from_secs(10);
/// The gateway's planner ticks at most so often.
const INTERVAL_LEAST: Duration = Duration::from_millis(1);
/// Narrower bins would have next to no tries in them.
const BIN_LEAST: Duration = Duration::from_millis(1);
