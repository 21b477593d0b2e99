//! Everything that defines a run with senders.

use crate::request::{SentryPolicy, ServerModel, Work};
use flashweir_admission::gapping::{SEVERITIES, Settings};
use flashweir_admission::ladder::Published;
use flashweir_core::limits::{CLASSES, SIM_CLIENTS, SIM_SERIES_BINS};
use flashweir_core::{Duration, Instant};
use flashweir_workload::ArrivalProcess;
use std::ops::Range;

/// One run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Draws arrivals, work, and what becomes of feedback.
    pub seed: u64,
    /// Arrivals end here; what is under way then still ends.
    pub length: Duration,
    /// User requests that begin within this time are counted.
    pub measured: Range<Duration>,
    /// From a sender to the node, and back.
    pub one_way_delay: Duration,
    /// A user request is good if it is completed within this time.
    pub target: Duration,
    /// The senders.
    pub senders: Vec<SenderModel>,
    /// The overloaded node.
    pub node: NodeModel,
    /// Model of the feedback from the node to its senders.
    pub feedback: FeedbackModel,
    /// Width of the series' bins.
    pub bin: Duration,
}

/// One sender.
#[derive(Clone, Debug)]
pub struct SenderModel {
    /// Arrivals of user requests at it.
    pub arrivals: ArrivalProcess,
    /// It sends within this time only: senders join and leave.
    pub present: Range<Duration>,
    /// Rank of its requests, 0 the most important.
    pub rank: u8,
    /// Of its requests, this part is of rank 0 instead.
    pub important_share: f64,
    /// Its weight in the division.
    pub weight: u32,
    /// Calls to the node that each of its user requests needs.
    pub calls: u32,
    /// Reaction to feedback.
    pub obedience: Obedience,
    /// The part of its connections that the node's network interface drops while the ladder discards; only
    /// with published ladders.
    pub dropped_share: f64,
    /// Number of times that a dropped connection is tried again, after 1.5 s at first and twice as long each
    /// time (§4.2).
    pub connection_retries: u32,
}

/// Reaction of a sender to feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obedience {
    /// Nothing: every request goes at once.
    Ignores,
    /// Gapping. Calls of user requests that have begun go on and are charged to those that have not.
    Gaps(Settings),
    /// The paper's clients (§5.3): while throttled, the time to the next request of the trace grows by the
    /// gap of the severity. No request is refused; fewer are made.
    Stretches([Duration; SEVERITIES]),
}

/// The overloaded node.
#[derive(Clone, Debug)]
pub struct NodeModel {
    /// The server.
    pub server: ServerModel,
    /// Processor time of one call.
    pub work: Work,
    /// The sentry before the server, with a class for each rank; none where the server alone decides.
    pub sentry: Option<SentryPolicy>,
    /// The ladder.
    pub ladder: LadderModel,
}

/// Ladder of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderModel {
    /// None: no feedback.
    None,
    /// The paper's, on the server's queue length, read each `poll`.
    Published {
        /// Settings of one of its experiments.
        settings: Published,
        /// Between two readings of the queue length.
        poll: Duration,
    },
    /// That of the sentry's plan, with an advertised rate; without a sentry it knows nothing and asks for
    /// nothing.
    Derived,
}

/// Model of the way of feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackModel {
    /// On which messages.
    pub transport: Transport,
    /// The part of the messages that get lost.
    pub lost_share: f64,
    /// The part of the others that come late, and so out of order.
    pub late_share: f64,
    /// A late message comes up to this much later.
    pub late_by: Duration,
}

/// Messages that carry feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One message when throttling begins and one when it ends (the paper's §5.3).
    Edges,
    /// The same messages each `refresh`, with a time to live of four of them.
    SoftState {
        /// Between two messages.
        refresh: Duration,
    },
    /// The field on every response; the node plans each 100 ms.
    Responses,
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

impl SenderModel {
    /// A sender of rank 0 that is there all the time, with one call for each user request.
    #[must_use]
    pub fn new(arrivals: ArrivalProcess, obedience: Obedience) -> Self {
        Self {
            arrivals,
            present: Duration::ZERO..Duration::MAX,
            rank: 0,
            important_share: 0.0,
            weight: 1,
            calls: 1,
            obedience,
            dropped_share: 0.0,
            connection_retries: 3,
        }
    }

    pub(super) fn is_present(&self, now: Instant) -> bool {
        self.present.contains(&now.saturating_since(Instant::ZERO))
    }
}

impl FeedbackModel {
    /// On every response, nothing lost or late.
    #[must_use]
    pub fn reliable() -> Self {
        let transport = Transport::Responses;
        Self { transport, lost_share: 0.0, late_share: 0.0, late_by: Duration::from_millis(500) }
    }
}

impl Scenario {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// The first thing that is wrong, by the name of the field.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |key: &str, problem: String| Err(ScenarioError { key: key.to_owned(), problem });
        if self.senders.is_empty() || self.senders.len() > SIM_CLIENTS {
            return wrong("senders", format!("{}: expected 1 to {SIM_CLIENTS}", self.senders.len()));
        }
        let classes = self.ranks();
        for (index, sender) in self.senders.iter().enumerate() {
            if usize::from(sender.rank) >= classes.min(CLASSES) {
                return wrong(
                    &format!("senders[{index}].rank"),
                    format!("{}: the policy has {classes} classes", sender.rank),
                );
            }
            if sender.calls == 0 {
                return wrong(&format!("senders[{index}].calls"), "0: expected 1 or more".to_owned());
            }
        }
        if self.bin.is_zero() || self.bins() > SIM_SERIES_BINS {
            return wrong("bin", format!("the series would have more than {SIM_SERIES_BINS} bins"));
        }
        let shares = [("lost_share", self.feedback.lost_share), ("late_share", self.feedback.late_share)];
        if let Some((key, share)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return wrong(&format!("feedback.{key}"), format!("{share}: expected 0 to 1"));
        }
        Ok(())
    }

    /// The ranks that the node distinguishes: the sentry's classes, or those that senders have.
    pub(super) fn ranks(&self) -> usize {
        let of_senders = || self.senders.iter().map(|sender| usize::from(sender.rank) + 1).max().unwrap_or(1);
        self.node.sentry.as_ref().map_or_else(of_senders, |sentry| sentry.policy.classes.len())
    }

    pub(super) fn bins(&self) -> usize {
        let bins = self.length.as_nanos() / self.bin.as_nanos().max(1) + 1;
        usize::try_from(bins).unwrap_or(usize::MAX)
    }
}
