//! Statistics by which a run is judged: the load tool's words, and a few of the server's and the policy's.

use crate::scenario::packet_view::{LinkFlow, PacketView};
use crate::scenario::scope::{Scope, Within};
use flashweir_admission::flash_crowd::Rule;
use flashweir_core::Duration;
use flashweir_core::measure::Histogram;
use flashweir_sim::request::{Counts, MeanLevel, PlanTaken};

/// A statistic of a run.
#[derive(Debug)]
pub struct Statistic {
    /// Its name in scenarios and tables; the unit last, if it has one.
    pub name: &'static str,
    /// Unit of the number.
    pub unit: Unit,
    /// Its meaning, in a few words.
    pub meaning: &'static str,
    reach: Reach,
    value: fn(&View<'_>) -> Option<f64>,
}

/// Unit of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count.
    Count,
    /// A part of a whole, 0 to 1.
    Share,
    /// A rate per second.
    PerSecond,
    /// A ratio of two numbers.
    Factor,
    /// Milliseconds.
    Milliseconds,
    /// Thousands of bits a second.
    KilobitsPerSecond,
}

/// Scopes in which a statistic exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Runs, windows, classes.
    All,
    /// Runs and classes: histograms are kept of whole runs only.
    NotWindows,
    /// Runs and windows: all classes share the server.
    NotClasses,
    /// Runs.
    RunOnly,
    /// Runs and windows, with the controller at a router.
    Router,
    /// Links.
    Links,
    /// Long transfers.
    Transfers,
    /// Sources of datagrams.
    Datagrams,
}

/// Inputs of the statistics.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) counts: Counts,
    /// Requests that came after all others because their clients were over a fair share.
    pub(crate) demoted: u64,
    /// The longest time that one person's requests did.
    pub(crate) demoted_longest: Duration,
    pub(crate) seconds: f64,
    /// Revenue of the goodput.
    pub(crate) revenue: f64,
    /// Mean processor time of what became goodput, summed, seconds.
    pub(crate) useful_s: f64,
    pub(crate) processors: f64,
    pub(crate) latency_us: Option<&'a Histogram>,
    pub(crate) refusal_us: Option<&'a Histogram>,
    pub(crate) served_us: Option<&'a Histogram>,
    pub(crate) level: Option<MeanLevel>,
    pub(crate) plans: &'a [PlanTaken],
    pub(crate) packets: PacketView<'a>,
}

/// All statistics, in the order of tables.
pub(crate) const STATISTICS: &[Statistic] = &[
    all("offered", Unit::Count, "tries that began", |view| Some(view.counts.offered as f64)),
    all("unique_offered", Unit::Count, "requests, their tries counted once", |view| {
        Some(view.counts.unique_offered as f64)
    }),
    all("offered_rps", Unit::PerSecond, "tries a second", |view| view.rate(view.counts.offered)),
    all("admitted_rps", Unit::PerSecond, "let in by the gate", |view| view.rate(view.counts.admitted)),
    all("completed_rps", Unit::PerSecond, "whole answers", |view| view.rate(view.counts.completed)),
    all("goodput_rps", Unit::PerSecond, "whole answers within the target", |view| {
        view.rate(view.counts.goodput)
    }),
    all("goodput_ratio", Unit::Share, "goodput of unique offered", |view| {
        view.of_requests(view.counts.goodput)
    }),
    all("revenue_rate", Unit::PerSecond, "what the goodput is worth, a second", |view| {
        ratio(view.revenue, view.seconds)
    }),
    all("completed_ratio", Unit::Share, "completed of unique offered", |view| {
        view.of_requests(view.counts.completed)
    }),
    all("abandoned_ratio", Unit::Share, "abandoned of unique offered", |view| {
        view.of_requests(view.counts.abandoned)
    }),
    all("shed_ratio", Unit::Share, "refused by the gate, of offered", |view| {
        view.of_tries(view.counts.shed_total())
    }),
    all("refused_ratio", Unit::Share, "refusals heard, the server's too, of offered", |view| {
        view.of_tries(view.counts.refused)
    }),
    all("timed_out_ratio", Unit::Share, "timed out of offered", |view| view.of_tries(view.counts.timed_out)),
    all("error_ratio", Unit::Share, "broken of offered", |view| view.of_tries(view.counts.broken)),
    all("retry_amplification", Unit::Factor, "tries for each request", |view| {
        ratio(view.counts.offered as f64, view.counts.unique_offered as f64)
    }),
    all("useful_ratio", Unit::Share, "processor time that became goodput, of all there was", |view| {
        ratio(view.useful_s, view.processors * view.seconds)
    }),
    all("in_time_ratio", Unit::Share, "goodput of completed", |view| {
        ratio(view.counts.goodput as f64, view.counts.completed as f64)
    }),
    all(
        "demoted_ratio",
        Unit::Share,
        "tries that came last because their clients were over a fair share",
        |view| view.of_tries(view.demoted),
    ),
    quantile(
        "demoted_longest_ms",
        "the longest time without a break that one client's tries came last",
        |view| Some(view.demoted_longest.as_secs_f64() * 1e3),
    ),
    all("mean_ms", Unit::Milliseconds, "mean latency of the completed", |view| {
        view.counts.mean_latency_s().map(|seconds| seconds * 1e3)
    }),
    quantile("p50_ms", "half of the completed are quicker", |view| millis(view.latency_us, 0.50)),
    quantile("p90_ms", "nine of ten completed are quicker", |view| millis(view.latency_us, 0.90)),
    quantile("p99_ms", "99 of 100 completed are quicker", |view| millis(view.latency_us, 0.99)),
    quantile("p999_ms", "999 of 1000 completed are quicker", |view| millis(view.latency_us, 0.999)),
    quantile("served_p99_ms", "the same over all tries of a request", |view| millis(view.served_us, 0.99)),
    quantile("refusal_p99_ms", "99 of 100 refusals are heard within", |view| millis(view.refusal_us, 0.99)),
    server("waiting", "mean requests waiting for a worker", |view| view.level.map(|level| level.waiting)),
    server("in_service", "mean requests in service", |view| view.level.map(|level| level.in_service)),
    server("busy", "mean processors at work", |view| view.level.map(|level| level.busy)),
    Statistic {
        name: "alarms",
        unit: Unit::Count,
        meaning: "times the policy found a crowd",
        reach: Reach::RunOnly,
        value: |view| Some(alarms(view) as f64),
    },
    router(
        "router_offered_rps",
        Unit::PerSecond,
        "SYNs of new connections that came to the router, a second",
        |view| ratio(view.packets.router?.offered as f64, view.packets.seconds),
    ),
    router(
        "router_shed_ratio",
        Unit::Share,
        "SYNs that the router dropped, of those that came to it",
        |view| {
            let syns = view.packets.router?;
            ratio(syns.shed as f64, syns.offered as f64)
        },
    ),
    link(
        "there_loss_ratio",
        "packets lost of those that came to the link, from its first end to its second",
        |view| view.packets.link?[THERE].loss_ratio(),
    ),
    link("back_loss_ratio", "the same the other way", |view| view.packets.link?[BACK].loss_ratio()),
    link("there_marked_ratio", "packets marked instead of lost, there", |view| {
        view.packets.link?[THERE].marked_ratio()
    }),
    link("back_marked_ratio", "the same the other way", |view| view.packets.link?[BACK].marked_ratio()),
    link("there_utilization", "bits that arrived, of those that the link carries, there", |view| {
        view.packets.link?[THERE].utilization(view.packets.seconds)
    }),
    link("back_utilization", "the same the other way", |view| {
        view.packets.link?[BACK].utilization(view.packets.seconds)
    }),
    Statistic {
        name: "goodput_kbps",
        unit: Unit::KilobitsPerSecond,
        meaning: "kilobits a second that a transfer's receiver got in order, over the whole run or window",
        reach: Reach::Transfers,
        value: |view| ratio(view.packets.received_bytes? as f64 * 8e-3, view.packets.seconds),
    },
    Statistic {
        name: "delivered_ratio",
        unit: Unit::Share,
        meaning: "datagrams that arrived, of those sent",
        reach: Reach::Datagrams,
        value: |view| {
            let datagrams = view.packets.datagrams?;
            ratio(datagrams.delivered as f64, datagrams.sent as f64)
        },
    },
];

const THERE: usize = 0;
const BACK: usize = 1;

const fn all(
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: fn(&View<'_>) -> Option<f64>,
) -> Statistic {
    Statistic { name, unit, meaning, reach: Reach::All, value }
}

const fn quantile(
    name: &'static str,
    meaning: &'static str,
    value: fn(&View<'_>) -> Option<f64>,
) -> Statistic {
    Statistic { name, unit: Unit::Milliseconds, meaning, reach: Reach::NotWindows, value }
}

const fn server(name: &'static str, meaning: &'static str, value: fn(&View<'_>) -> Option<f64>) -> Statistic {
    Statistic { name, unit: Unit::Factor, meaning, reach: Reach::NotClasses, value }
}

const fn router(
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: fn(&View<'_>) -> Option<f64>,
) -> Statistic {
    Statistic { name, unit, meaning, reach: Reach::Router, value }
}

const fn link(name: &'static str, meaning: &'static str, value: fn(&View<'_>) -> Option<f64>) -> Statistic {
    Statistic { name, unit: Unit::Share, meaning, reach: Reach::Links, value }
}

impl Statistic {
    /// All there are, in the order of tables.
    #[must_use]
    pub fn all() -> &'static [Self] {
        STATISTICS
    }

    /// Returns whether it exists in this scope.
    pub(crate) fn is_of(&self, scope: &Scope) -> bool {
        use Reach::{All, Datagrams, Links, NotClasses, NotWindows, Router, Transfers};
        match scope {
            Scope::Run => !matches!(self.reach, Links | Transfers | Datagrams),
            Scope::Window(_) => matches!(self.reach, All | NotClasses | Router),
            Scope::Class(Within { window: Some(_), .. }) => self.reach == All,
            Scope::Class(_) => matches!(self.reach, All | NotWindows),
            Scope::Link(_) => self.reach == Links,
            Scope::Transfer(_) => self.reach == Transfers,
            Scope::Datagrams(_) => self.reach == Datagrams,
        }
    }

    /// The scopes in which it exists, for messages.
    pub(crate) fn scopes(&self) -> &'static str {
        match self.reach {
            Reach::All => "runs, windows and classes",
            Reach::NotWindows => "runs and classes",
            Reach::NotClasses | Reach::Router => "runs and windows",
            Reach::RunOnly => "runs",
            Reach::Links => "links",
            Reach::Transfers => "transfers",
            Reach::Datagrams => "datagrams",
        }
    }

    /// Returns whether there is nothing to tell without a router.
    pub(crate) fn needs_router(&self) -> bool {
        self.reach == Reach::Router
    }

    /// Its value; `None` if there was nothing to measure.
    pub(crate) fn value(&self, view: &View<'_>) -> Option<f64> {
        (self.value)(view)
    }
}

/// The statistic of this name, or what there is instead.
pub(crate) fn statistic(name: &str) -> Result<&'static Statistic, String> {
    STATISTICS.iter().find(|statistic| statistic.name == name).ok_or_else(|| {
        let names: Vec<_> = STATISTICS.iter().map(|statistic| statistic.name).collect();
        format!("there is no statistic \"{name}\": expected one of {}", names.join(", "))
    })
}

impl View<'_> {
    fn rate(&self, count: u64) -> Option<f64> {
        ratio(count as f64, self.seconds)
    }

    fn of_requests(&self, count: u64) -> Option<f64> {
        ratio(count as f64, self.counts.unique_offered as f64)
    }

    fn of_tries(&self, count: u64) -> Option<f64> {
        ratio(count as f64, self.counts.offered as f64)
    }
}

impl LinkFlow {
    fn loss_ratio(&self) -> Option<f64> {
        ratio(self.packets.dropped as f64, self.packets.offered as f64)
    }

    fn marked_ratio(&self) -> Option<f64> {
        ratio(self.packets.marked as f64, self.packets.offered as f64)
    }

    fn utilization(&self, seconds: f64) -> Option<f64> {
        ratio(self.packets.delivered_bytes as f64 * 8.0, self.rate_bits_per_s as f64 * seconds)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn millis(histogram: Option<&Histogram>, share: f64) -> Option<f64> {
    histogram?.quantile(share).map(|micros| micros as f64 / 1e3)
}

/// Of the planner before the server and of the router's: there is one of them at most.
fn alarms(view: &View<'_>) -> usize {
    let at_gate = view.plans.iter().filter(|plan| plan.explanation.rule == Rule::Raise).count();
    let explanations = view.packets.ticks.iter().filter_map(|tick| tick.explanation.as_ref());
    at_gate + explanations.filter(|explanation| explanation.rule == Rule::Raise).count()
}
