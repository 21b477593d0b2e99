//! Lets planners decide again what they decided when a recording was made.
//!
//! The same samples give the same plans, bit for bit: the planners know no clock and no chance. So a plan
//! that differs was made by other code or other settings, or records were lost before it. With other settings
//! nothing that would have followed is known: the samples are those of the gates that obeyed the recorded
//! plans.

use crate::Difference;
use crate::field::Field;
use crate::recording::{
    Event, FLASH_CROWD_CANDIDATE, Planned, Record, Stream, fingerprint, orders_same, sentry_orders_same,
};
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{self, FlashCrowdPlanner, Limit};
use flashweir_admission::sentry::{self, SentryPlanner};
use flashweir_core::Instant;
use flashweir_core::limits::REPLAY_PARTINGS;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Settings of planners in place of the recorded ones.
#[derive(Clone, Debug, Default)]
pub struct OtherPolicy {
    /// Planners of flash crowds; how many gates there are is kept as recorded.
    pub flash_crowd: Option<flash_crowd::Settings>,
    /// The same of candidates ([`FLASH_CROWD_CANDIDATE`]).
    pub flash_crowd_candidate: Option<flash_crowd::Settings>,
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

/// Results of a replay.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Planners.
    pub planners: usize,
    /// Samples they were given.
    pub samples: u64,
    /// Plans compared.
    pub plans: u64,
    /// Plans that differ in any bit; with another policy, in their orders to gates or in the rule behind
    /// them.
    pub different: u64,
    /// The time from the first record to the last.
    pub span: core::time::Duration,
    /// Records missing in the recording.
    pub lost: u64,
    /// A planner was older than the recording, and what it had learned is not known.
    pub begins_in_the_middle: bool,
    /// A record was of a planner that the recording does not name, or of the wrong kind.
    pub stray: u64,
    /// First differences of plans, at most [`REPLAY_PARTINGS`] of them, in the order in which they happened.
    pub partings: Vec<Parting>,
    first: Option<Instant>,
}

/// First difference of a planner's plans from those recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// Time of the plan.
    pub at: Instant,
    /// The planner's service.
    pub name: String,
    /// Number of the plan, from 0.
    pub plan: u64,
    /// Records were lost before.
    pub after_loss: bool,
    /// Decisions, in words: as recorded, and now.
    pub decisions: [String; 2],
    /// Field by field, of the first plan from there on that is recorded whole (one a second at least): as
    /// recorded, and now.
    pub differences: Vec<Difference>,
}

#[derive(Debug)]
struct Replayed {
    name: String,
    planner: Driven,
    plans: u64,
    /// The last plan differed.
    differs: bool,
    /// Index of the parting whose fields are compared with the next whole plan.
    untold: Option<usize>,
}

/// The planner, and the last plan that is recorded whole.
#[derive(Debug)]
enum Driven {
    FlashCrowd(Box<PlannerDriver<FlashCrowdPlanner>>, Option<flash_crowd::Plan>),
    Sentry(Box<PlannerDriver<SentryPlanner>>, Option<sentry::Plan>),
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
        let is_other = self.other.is_some();
        let made = match (event, &mut replayed.planner) {
            (Event::FlashCrowdSample(sample), Driven::FlashCrowd(driver, _)) => {
                self.summary.samples += 1;
                return driver.observe(at, &sample);
            }
            (Event::SentrySample(sample), Driven::Sentry(driver, _)) => {
                self.summary.samples += 1;
                return driver.observe(at, &sample);
            }
            (Event::FlashCrowdPlan(recorded), Driven::FlashCrowd(driver, whole)) => {
                let plan = driver.plan(at);
                let is_same = if is_other { orders_same(&recorded, &plan) } else { recorded.is_same(&plan) };
                let made = Made::of(is_same, &recorded, &plan, words);
                *whole = Some(recorded);
                made
            }
            (Event::SentryPlan(recorded), Driven::Sentry(driver, whole)) => {
                let plan = driver.plan(at);
                let is_same =
                    if is_other { sentry_orders_same(&recorded, &plan) } else { recorded.is_same(&plan) };
                let made = Made::of(is_same, &recorded, &plan, sentry_words);
                *whole = Some(recorded);
                made
            }
            (Event::Fingerprint(mark), Driven::FlashCrowd(driver, Some(whole))) => {
                let plan = driver.plan(at);
                let is_same = if is_other { orders_same(whole, &plan) } else { fingerprint(&plan) == mark };
                Made::by_fingerprint(is_same, whole, &plan, words)
            }
            (Event::Fingerprint(mark), Driven::Sentry(driver, Some(whole))) => {
                let plan = driver.plan(at);
                let is_same =
                    if is_other { sentry_orders_same(whole, &plan) } else { fingerprint(&plan) == mark };
                Made::by_fingerprint(is_same, whole, &plan, sentry_words)
            }
            _ => return self.summary.stray += 1,
        };
        count(at, replayed, &mut self.summary, made);
    }

    /// Results so far.
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
                let is_candidate = name == FLASH_CROWD_CANDIDATE;
                let other = other.and_then(|other| match is_candidate {
                    true => other.flash_crowd_candidate,
                    false => other.flash_crowd,
                });
                let settings = flash_crowd::Settings { gates: recorded.gates, ..other.unwrap_or(*recorded) };
                Driven::FlashCrowd(
                    Box::new(PlannerDriver::new(FlashCrowdPlanner::new(settings, baseline), at)),
                    None,
                )
            }
            Planned::Sentry(recorded) => {
                let policy = other.and_then(|other| other.sentries.get(&name)).unwrap_or(recorded).clone();
                // What it knew before is nothing.
                Driven::Sentry(Box::new(PlannerDriver::new(SentryPlanner::new(Arc::new(policy)), at)), None)
            }
        };
        self.streams.insert(stream, Replayed { name, planner, plans: 0, differs: false, untold: None });
    }
}

/// A plan made again, and how it differs.
struct Made {
    is_same: bool,
    is_whole: bool,
    decisions: [String; 2],
    differences: Vec<Difference>,
}

impl Made {
    fn same(is_whole: bool) -> Self {
        Self { is_same: true, is_whole, decisions: Default::default(), differences: Vec::new() }
    }

    fn of<P: Field>(is_same: bool, recorded: &P, now: &P, words: fn(&P) -> String) -> Self {
        if is_same {
            return Self::same(true);
        }
        let mut differences = Vec::new();
        recorded.compare(now, "", &mut differences);
        Self { is_same, is_whole: true, decisions: [words(recorded), words(now)], differences }
    }

    /// The recorded plan orders what the last whole one did.
    fn by_fingerprint<P>(is_same: bool, whole: &P, now: &P, words: fn(&P) -> String) -> Self {
        if is_same {
            return Self::same(false);
        }
        Self { is_same, is_whole: false, decisions: [words(whole), words(now)], differences: Vec::new() }
    }
}

fn count(at: Instant, replayed: &mut Replayed, summary: &mut Summary, made: Made) {
    let Made { is_same, is_whole, decisions, differences } = made;
    if !is_same {
        summary.different += 1;
        if !replayed.differs && summary.partings.len() < REPLAY_PARTINGS {
            replayed.untold = (!is_whole).then_some(summary.partings.len());
            let (name, plan, after_loss) = (replayed.name.clone(), replayed.plans, summary.lost > 0);
            summary.partings.push(Parting { at, name, plan, after_loss, decisions, differences });
        } else if is_whole && let Some(untold) = replayed.untold.take() {
            summary.partings[untold].differences = differences;
        }
    }
    replayed.differs = !is_same;
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
