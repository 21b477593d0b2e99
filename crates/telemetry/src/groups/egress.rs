//! Targets of `flashweir egress`: what the process asked for, what was held back, and what the nodes say.

use core::fmt;
use std::sync::Arc;

use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Row, Scrape};
use crate::histogram::{FINE_BOUNDS_NS, Histogram};
use crate::label::{Label as _, labels};

labels! {
    /// Reason for which the process got an answer of the sidecar's own.
    EgressRefusal, "reason" {
        /// The node asked for less.
        Limit => "limit",
        /// The node answers nothing.
        Silent => "silent",
        /// The deadline is over.
        Deadline => "deadline",
        /// Too many requests are retries.
        RetryBudget => "retry_budget",
        /// Every connection allowed to the server is busy.
        Connections => "connections",
        /// The target's host has no address.
        Unresolved => "unresolved",
        /// No answer came, or one that cannot be passed on.
        Failed => "failed",
        /// No target has this host.
        NoTarget => "no_target",
        /// The request cannot be understood.
        BadRequest => "bad_request",
    }
}

labels! {
    /// Outcome of a datagram with feedback.
    EgressDatagram, "outcome" {
        /// Its node heard it.
        Heard => "heard",
        /// Its node refused its message; why is counted with the fields.
        Refused => "refused",
        /// It is for another sender, or of a node that is not known.
        Unknown => "unknown",
        /// It is none.
        Malformed => "malformed",
        /// Too many came at once.
        Dropped => "dropped",
    }
}

/// Datagrams by what became of them.
pub type EgressDatagrams = CounterSet<EgressDatagram>;

/// Counts of one target.
#[derive(Debug)]
pub struct EgressCounters {
    /// Requests of the process.
    pub requests: Counter,
    /// Requests that got an answer of a server.
    pub answered: Counter,
    /// Requests that got none.
    pub refused: CounterSet<EgressRefusal>,
    /// Further attempts that were made here.
    pub retries: Counter,
    /// Second requests beside slow ones.
    pub hedges: Counter,
    /// From a request's head to that of its answer.
    pub duration: Histogram,
}

/// One target at a scrape. What it has of several nodes is added up; the age is that of the newest feedback.
#[derive(Clone, Debug)]
pub struct EgressTarget {
    /// The label, from the configuration.
    pub name: String,
    /// The target's own counts.
    pub counters: Arc<EgressCounters>,
    /// Nodes by what holds requests to them back.
    pub conditions: Vec<(&'static str, u64)>,
    /// Fields of feedback by what became of them.
    pub feedback: Vec<(&'static str, u64)>,
    /// Limit in force, requests a second; none without a limit.
    pub rate_rps: Option<f64>,
    /// Arrivals, requests a second.
    pub offered_rps: f64,
    /// Age of the newest feedback, seconds; none before the first.
    pub feedback_age_s: Option<f64>,
    /// Time for which requests were held back, seconds, over all nodes.
    pub held_for_s: f64,
    /// Requests that wait.
    pub waiting: u64,
    /// Exchanges without answer.
    pub unanswered: u64,
    /// Further attempts that the budget did not allow.
    pub retries_denied: u64,
}

/// All targets, read when they are scraped.
pub struct EgressGroup {
    datagrams: Arc<EgressDatagrams>,
    read: Box<dyn Fn() -> Vec<EgressTarget> + Send + Sync>,
}

impl Default for EgressCounters {
    fn default() -> Self {
        Self {
            requests: Counter::default(),
            answered: Counter::default(),
            refused: CounterSet::default(),
            retries: Counter::default(),
            hedges: Counter::default(),
            duration: Histogram::new(FINE_BOUNDS_NS),
        }
    }
}

impl EgressGroup {
    /// Reads the targets by this function.
    #[must_use]
    pub fn new(
        datagrams: Arc<EgressDatagrams>,
        read: impl Fn() -> Vec<EgressTarget> + Send + Sync + 'static,
    ) -> Self {
        Self { datagrams, read: Box::new(read) }
    }
}

impl fmt::Debug for EgressGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EgressGroup")
    }
}

/// Counters of a target by a second label.
type Labelled = fn(&EgressTarget) -> Vec<(&'static str, u64)>;

impl MetricGroup for EgressGroup {
    fn title(&self) -> &'static str {
        "Egress"
    }

    fn export(&self, scrape: &mut Scrape) {
        let targets = (self.read)();
        for &(name, help, value) in COUNTERS {
            let series = targets.iter().map(|target| (vec![target.name.clone()], value(target)));
            scrape.counter_series(name, help, &["target"], series);
        }
        for &(name, help, value) in GAUGES {
            let series =
                targets.iter().filter_map(|target| Some((vec![target.name.clone()], value(target)?)));
            scrape.gauge_series(name, help, &["target"], series);
        }
        let by = |values: Labelled| {
            targets.iter().flat_map(move |target| {
                let name = target.name.clone();
                values(target)
                    .into_iter()
                    .map(move |(label, count)| (vec![name.clone(), label.to_owned()], count as f64))
            })
        };
        let help = "Answers of the sidecar's own, by why.";
        let refused: Labelled = |target| {
            let refused = &target.counters.refused;
            EgressRefusal::ALL.iter().map(|&why| (why.as_str(), refused.value(why))).collect()
        };
        scrape.counter_series("egress_refused", help, &["target", "reason"], by(refused));
        let help = "Fields Flashweir-Overload of the nodes, by what became of them.";
        scrape.counter_series(
            "egress_feedback",
            help,
            &["target", "outcome"],
            by(|target| target.feedback.clone()),
        );
        let help = "Nodes by what holds requests to them back.";
        scrape.gauge_series(
            "egress_nodes",
            help,
            &["target", "condition"],
            by(|target| target.conditions.clone()),
        );
        let copies: Vec<&EgressCounters> = targets.iter().map(|target| &*target.counters).collect();
        let help = "Datagrams with feedback, by what became of them.";
        scrape.counter_set("egress_datagrams", help, &[&*self.datagrams], |datagrams| datagrams);
        let help = "From a request's head to that of its answer, of all targets.";
        scrape.histogram("egress_response_seconds", help, &copies, |counters| &counters.duration);
    }
}

const COUNTERS: &[Row<EgressTarget, f64>] = &[
    ("egress_requests", "Requests of the process.", |t| t.counters.requests.value() as f64),
    ("egress_answered", "Requests that got an answer of a server.", |t| t.counters.answered.value() as f64),
    ("egress_retries", "Further attempts that were made here.", |t| t.counters.retries.value() as f64),
    ("egress_retries_denied", "Further attempts that the budget did not allow.", |t| t.retries_denied as f64),
    ("egress_hedges", "Second requests beside slow ones.", |t| t.counters.hedges.value() as f64),
    ("egress_unanswered", "Exchanges without an answer.", |t| t.unanswered as f64),
    ("egress_held_seconds", "How long requests were held back, over all nodes.", |t| t.held_for_s),
];

const GAUGES: &[Row<EgressTarget, Option<f64>>] = &[
    ("egress_rate_requests_per_second", "What the limits in force allow together.", |t| t.rate_rps),
    ("egress_offered_requests_per_second", "What arrives, before any limit.", |t| Some(t.offered_rps)),
    ("egress_feedback_age_seconds", "Age of the newest feedback.", |t| t.feedback_age_s),
    ("egress_waiting", "Requests that wait for their turn.", |t| Some(t.waiting as f64)),
];
