//! Lets planners decide again what they decided when a recording was made.
//!
//! The same samples give the same plans, bit for bit: the planners know no clock and no chance. So a plan that differs was made
//! by other code or other settings, or records were lost before it. With other settings nothing that would have followed is
//! known: the samples are those of the gates that obeyed the recorded plans.

use crate::Difference;
use crate::field::Field;
use crate::recording::{Event, Planned, Record, Stream};
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{self, FlashCrowdPlanner, Limit};
use flashweir_admission::sentry::{self, SentryPlanner};
use flashweir_core::Instant;
use flashweir_core::limits::REPLAY_PARTINGS;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What planners are made from instead of what is recorded.
#[derive(Clone, Debug, Default)]
pub struct OtherPolicy {
    /// Planners of flash crowds; how many gates there are is kept as recorded.
    pub flash_crowd: Option<flash_crowd::Settings>,
    /// Planners of sentries, by the name of their service.
    pub sentries: BTreeMap<String, sentry::Policy>,
}

/// Planners that decide again.
#[derive(Debug, Default)]
pub struct Replay {
    other: Option<OtherPolicy>,
    streams: BTreeMap<Stream, Replayed>,
    summary: Summary,
}

/// What came of a replay.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Planners.
    pub planners: usize,
    /// Samples they were given.
    pub samples: u64,
    /// Plans compared.
    pub plans: u64,
    /// Those that differ, in any bit; with another policy, in what gates are to do.
    pub different: u64,
    /// The time from the first record to the last.
    pub span: core::time::Duration,
    /// Records missing in the recording.
    pub lost: u64,
    /// A planner was older than the recording, and what it had learned is not known.
    pub begins_in_the_middle: bool,
    /// A record was of a planner that the recording does not name, or of the wrong kind.
    pub stray: u64,
    /// Where plans begin to differ, at most [`REPLAY_PARTINGS`] of them, in the order in which they happened.
    pub partings: Vec<Parting>,
    first: Option<Instant>,
}

/// Where a planner's plans begin to differ from those recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// When.
    pub at: Instant,
    /// The planner's service.
    pub name: String,
    /// Which of its plans, from 0.
    pub plan: u64,
    /// Records were lost before.
    pub after_loss: bool,
    /// What was decided, in words: as recorded, and now.
    pub decisions: [String; 2],
    /// Field by field: as recorded, and now.
    pub differences: Vec<Difference>,
}

#[derive(Debug)]
struct Replayed {
    name: String,
    planner: Driven,
    plans: u64,
    /// The last plan differed.
    differs: bool,
}

#[derive(Debug)]
enum Driven {
    FlashCrowd(Box<PlannerDriver<FlashCrowdPlanner>>),
    Sentry(Box<PlannerDriver<SentryPlanner>>),
}

impl Replay {
    /// With the settings that are recorded.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With other ones.
    #[must_use]
    pub fn with(other: OtherPolicy) -> Self {
        Self { other: Some(other), ..Self::default() }
    }

    /// Does again what a record says.
    pub fn take(&mut self, record: Record) {
        let Record { at, stream, event } = record;
        if !matches!(event, Event::Begin { goes_on: true, .. }) {
            let first = *self.summary.first.get_or_insert(at);
            self.summary.span = self.summary.span.max(at.saturating_since(first));
        }
        let event = match event {
            Event::Begin { name, planner, goes_on } => {
                return self.begin(at, stream, name, &planner, goes_on);
            }
            Event::Lost(count) => return self.summary.lost += count,
            event => event,
        };
        let Some(replayed) = self.streams.get_mut(&stream) else {
            self.summary.stray += 1;
            return;
        };
        match (event, &mut replayed.planner) {
            (Event::FlashCrowdSample(sample), Driven::FlashCrowd(driver)) => {
                self.summary.samples += 1;
                driver.observe(at, &sample);
            }
            (Event::SentrySample(sample), Driven::Sentry(driver)) => {
                self.summary.samples += 1;
                driver.observe(at, &sample);
            }
            (Event::DecidingLoad(share), Driven::Sentry(driver)) => {
                driver.planner_mut().observe_deciding_load(at, share);
            }
            (Event::FlashCrowdPlan(recorded), Driven::FlashCrowd(driver)) => {
                let plan = driver.plan(at);
                let is_same = self.other.is_some() && recorded.limit == plan.limit;
                let decided = || [words(&recorded), words(&plan)];
                compare(at, replayed, &mut self.summary, is_same, decided, (&recorded, &plan));
            }
            (Event::SentryPlan(recorded), Driven::Sentry(driver)) => {
                let plan = driver.plan(at);
                let orders = |plan: &sentry::Plan| (plan.limit, plan.classes.clone(), plan.decide);
                let is_same = self.other.is_some() && orders(&recorded) == orders(&plan);
                let decided = || [sentry_words(&recorded), sentry_words(&plan)];
                compare(at, replayed, &mut self.summary, is_same, decided, (&recorded, &plan));
            }
            _ => self.summary.stray += 1,
        }
    }

    /// What has come of it until now.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    fn begin(&mut self, at: Instant, stream: Stream, name: String, planner: &Planned, goes_on: bool) {
        if goes_on && self.streams.contains_key(&stream) {
            return;
        }
        self.summary.begins_in_the_middle |= goes_on;
        self.summary.planners += 1;
        let other = self.other.as_ref();
        let planner = match planner {
            Planned::FlashCrowd(recorded, baseline) => {
                let other = other.and_then(|other| other.flash_crowd);
                let settings = flash_crowd::Settings { gates: recorded.gates, ..other.unwrap_or(*recorded) };
                Driven::FlashCrowd(Box::new(PlannerDriver::new(
                    FlashCrowdPlanner::new(settings, baseline),
                    at,
                )))
            }
            Planned::Sentry(recorded) => {
                let policy = other.and_then(|other| other.sentries.get(&name)).unwrap_or(recorded).clone();
                // As in the gateway: what it knew before is nothing.
                Driven::Sentry(Box::new(PlannerDriver::new(
                    SentryPlanner::new(Arc::new(policy)),
                    Instant::ZERO,
                )))
            }
        };
        self.streams.insert(stream, Replayed { name, planner, plans: 0, differs: false });
    }
}

fn compare<P: Field>(
    at: Instant,
    replayed: &mut Replayed,
    summary: &mut Summary,
    is_same: bool,
    decided: impl FnOnce() -> [String; 2],
    (recorded, now): (&P, &P),
) {
    let differs = !is_same && !recorded.is_same(now);
    if differs {
        summary.different += 1;
        if !replayed.differs && summary.partings.len() < REPLAY_PARTINGS {
            let mut differences = Vec::new();
            recorded.compare(now, "", &mut differences);
            summary.partings.push(Parting {
                at,
                name: replayed.name.clone(),
                plan: replayed.plans,
                after_loss: summary.lost > 0,
                decisions: decided(),
                differences,
            });
        }
    }
    replayed.differs = differs;
    replayed.plans += 1;
    summary.plans += 1;
}

fn words(plan: &flash_crowd::Plan) -> String {
    let why = &plan.explanation;
    let limit = match &plan.limit {
        Limit::Open => "open".to_owned(),
        Limit::All(rate) => format!("at most {:.1} requests a second", rate.per_second()),
        Limit::HotSpots(spots) => format!("a limit on {} hosts", spots.len()),
    };
    format!("{limit} ({}, {}, rule {})", why.mode.as_str(), why.cause.as_str(), why.rule.as_str())
}

fn sentry_words(plan: &sentry::Plan) -> String {
    let rule = plan.explanation.rule.as_str();
    format!("at most {} in flight (rule {rule}, {})", plan.limit, decide(plan.decide))
}

fn decide(decide: sentry::Decide) -> &'static str {
    match decide {
        sentry::Decide::Reservation => "reservation",
        sentry::Decide::Batch(_) => "batch",
        sentry::Decide::Threshold => "threshold",
    }
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [recorded, now] = &self.decisions;
        let at_s = self.at.as_secs_f64();
        write!(f, "{at_s:.3} s, {}, plan {}: recorded {recorded}; now {now}", self.name, self.plan)?;
        if self.after_loss { write!(f, " (records were lost before)") } else { Ok(()) }
    }
}
