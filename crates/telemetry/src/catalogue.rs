//! The one list of all metrics: name, unit, label, help and where the number comes from.
//!
//! The scrape and the table in `docs/metrics.md` both walk this list, so neither can know a metric the other
//! lacks.

mod candidate;
mod control;
mod kernel;
mod sentry;
mod workers;

use core::fmt;
use std::sync::Arc;

use crate::control::ControlMetrics;
use crate::counter::CounterSet;
use crate::histogram::{Histogram, HistogramValues};
use crate::label::Label;
use crate::log::Warnings;
use crate::worker::WorkerMetrics;

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) workers: Vec<Arc<WorkerMetrics>>,
    pub(crate) control: Arc<ControlMetrics>,
    pub(crate) warnings: Arc<Warnings>,
    version: &'static str,
}

/// A metric's description. The exported name is `flashweir_NAME[_UNIT][_total]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    /// `seconds`, `bytes` or `ratio`.
    pub(crate) unit: Option<&'static str>,
    pub(crate) label: Option<&'static str>,
    /// One sentence; the manual text.
    pub(crate) help: &'static str,
}

/// A metric's numbers, with the label's value where it has a label.
#[derive(Debug)]
pub(crate) enum Values {
    Counter(u64),
    /// `None` is left out, as with a gauge.
    KnownCounter(Option<u64>),
    Counters(Vec<(&'static str, u64)>),
    /// `None` is left out of the scrape: there is no number, which is not zero.
    Gauge(Option<f64>),
    Gauges(Vec<(String, f64)>),
    /// With the names of several labels, and a value for each.
    CounterSeries(&'static [&'static str], Vec<(Vec<String>, f64)>),
    GaugeSeries(&'static [&'static str], Vec<(Vec<String>, f64)>),
    Histogram(HistogramValues),
    Info(String),
}

/// Takes the metrics one by one.
pub(crate) trait Sink {
    fn metric(&mut self, about: About, values: Values) -> fmt::Result;
}

impl Catalogue {
    pub(crate) fn new(workers: usize, version: &'static str) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            control: Arc::default(),
            warnings: Arc::default(),
            version,
        }
    }

    /// Hands every metric to the sink, always in the same order.
    pub(crate) fn visit(&self, sink: &mut dyn Sink) -> fmt::Result {
        self.visit_requests(sink)?;
        self.visit_responses(sink)?;
        self.visit_connections(sink)?;
        self.visit_upstreams(sink)?;
        self.visit_plan(sink)?;
        self.visit_plan_rates(sink)?;
        self.visit_classes(sink)?;
        self.visit_sentries(sink)?;
        self.visit_candidates(sink)?;
        self.visit_kernel(sink)?;
        self.visit_process(sink)
    }

    pub(crate) fn sum(&self, value: impl Fn(&WorkerMetrics) -> u64) -> u64 {
        self.workers.iter().map(|worker| value(worker)).sum()
    }

    pub(crate) fn requests_in_flight(&self) -> u64 {
        // Finished before admitted: read the other way round, a request finishing in between would go
        // negative.
        let finished = self
            .sum(|w| w.requests.completed.value() + w.requests.failed.value() + w.requests.abandoned.value());
        self.sum(|w| w.requests.admitted.value()).saturating_sub(finished)
    }

    pub(crate) fn connections_open(&self) -> u64 {
        let closed = self.sum(|w| w.connections.closed.value());
        self.sum(|w| w.connections.opened.value()).saturating_sub(closed)
    }

    pub(crate) fn tunnels_open(&self) -> u64 {
        let closed = self.sum(|w| w.connections.tunnels_closed.value());
        self.sum(|w| w.connections.tunnels_opened.value()).saturating_sub(closed)
    }

    fn sum_set<L: Label>(&self, set: impl Fn(&WorkerMetrics) -> &CounterSet<L>) -> Values {
        Values::Counters(L::ALL.iter().map(|&l| (l.as_str(), self.sum(|w| set(w).value(l)))).collect())
    }

    fn sum_histogram(&self, histogram: impl Fn(&WorkerMetrics) -> &Histogram) -> Values {
        let mut total = HistogramValues::default();
        self.workers.iter().for_each(|worker| histogram(worker).add_to(&mut total));
        Values::Histogram(total)
    }
}

/// The numbers of a set that one thread owns.
fn set_values<L: Label>(set: &CounterSet<L>) -> Values {
    Values::Counters(L::ALL.iter().map(|&label| (label.as_str(), set.value(label))).collect())
}

impl About {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: None, label: None, help }
    }

    const fn labelled<L: Label>(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: None, label: Some(L::NAME), help }
    }

    const fn in_seconds(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: Some("seconds"), label: None, help }
    }

    const fn in_bytes(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: Some("bytes"), label: None, help }
    }

    const fn as_ratio(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: Some("ratio"), label: None, help }
    }
}
