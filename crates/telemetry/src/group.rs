//! The metrics that a component exports, and how it hands its numbers over at a scrape.

use core::fmt;
use std::sync::Arc;

use crate::counter::{Counter, CounterSet};
use crate::groups::WorkerMetrics;
use crate::histogram::{Histogram, HistogramValues};
use crate::label::Label;

/// The metrics of one component. A shell exports the groups it registered, and nothing else.
pub trait MetricGroup: fmt::Debug + Send + Sync + 'static {
    /// The heading of its metrics in the manual; groups in a row with the same title share one.
    fn title(&self) -> &'static str;

    /// Hands over every metric, always the same ones in the same order.
    fn export(&self, scrape: &mut Scrape);
}

/// A group of which every worker has a copy that it alone writes; exported added up.
pub trait WorkerGroup: fmt::Debug + Send + Sync + Sized + 'static {
    /// As [`MetricGroup::title`].
    const TITLE: &'static str;

    /// As [`MetricGroup::export`], of all workers' copies.
    fn export(copies: &[&Self], scrape: &mut Scrape);
}

/// All workers' copies of a group, as one group.
#[derive(Debug)]
pub(crate) struct OfWorkers<G> {
    pub(crate) workers: Arc<[Arc<WorkerMetrics>]>,
    pub(crate) of: fn(&WorkerMetrics) -> &G,
}

impl<G: WorkerGroup> MetricGroup for OfWorkers<G> {
    fn title(&self) -> &'static str {
        G::TITLE
    }

    fn export(&self, scrape: &mut Scrape) {
        let copies: Vec<_> = self.workers.iter().map(|worker| (self.of)(worker)).collect();
        G::export(&copies, scrape);
    }
}

/// The numbers of one scrape, or, before anything was counted, what there is to be scraped. A metric's name
/// is given without `flashweir_` before it and without `_total` behind, with its unit; its text is one
/// sentence.
#[derive(Debug, Default)]
pub struct Scrape(pub(crate) Vec<Metric>);

/// One metric and its numbers.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) values: Values,
}

/// A metric's numbers. What is `None` is left out: there is no number, which is not zero.
#[derive(Debug)]
pub(crate) enum Values {
    Counter(Option<u64>),
    /// By the values of a closed label.
    Counters(&'static str, Vec<(&'static str, u64)>),
    Gauge(Option<f64>),
    /// By the values of a closed label.
    Gauges(&'static str, Vec<(&'static str, f64)>),
    /// With the names of several labels, and a value for each.
    CounterSeries(LabelNames, Vec<(Vec<String>, f64)>),
    GaugeSeries(LabelNames, Vec<(Vec<String>, f64)>),
    Histogram(HistogramValues),
    Info(&'static str, String),
}

/// A metric's name, its text and where its number comes from.
pub type Row<T, V> = (&'static str, &'static str, fn(&T) -> V);
/// A metric's name, its text and which counter of a group it is.
pub type CounterRow<T> = (&'static str, &'static str, fn(&T) -> &Counter);
/// The names of the labels of a series.
pub type LabelNames = &'static [&'static str];

impl Scrape {
    /// A number that only grows.
    pub fn counter(&mut self, name: &'static str, help: &'static str, count: impl Into<Option<u64>>) {
        self.add(name, help, Values::Counter(count.into()));
    }

    /// Counters of one or several copies of a group, added up.
    pub fn counters<T>(&mut self, copies: &[&T], rows: &[CounterRow<T>]) {
        for &(name, help, of) in rows {
            self.counter(name, help, sum(copies, of));
        }
    }

    /// A counter for each value of a label, added up over copies.
    pub fn counter_set<T, L: Label>(
        &mut self,
        name: &'static str,
        help: &'static str,
        copies: &[&T],
        of: fn(&T) -> &CounterSet<L>,
    ) {
        self.counters_by(name, help, L::ALL, |label| copies.iter().map(|copy| of(copy).value(label)).sum());
    }

    /// A counter for each of these values of a label.
    pub fn counters_by<L: Label>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[L],
        count: impl Fn(L) -> u64,
    ) {
        let counts = labels.iter().map(|&label| (label.as_str(), count(label)));
        self.add(name, help, Values::Counters(L::NAME, counts.collect()));
    }

    /// Histogram: counts of durations by bucket, added up over copies; the name ends in `_seconds`.
    pub fn histogram<T>(
        &mut self,
        name: &'static str,
        help: &'static str,
        copies: &[&T],
        of: fn(&T) -> &Histogram,
    ) {
        let mut total = HistogramValues::default();
        copies.iter().for_each(|copy| of(copy).add_to(&mut total));
        self.add(name, help, Values::Histogram(total));
    }

    /// A number that rises and falls.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Option<f64>>) {
        self.add(name, help, Values::Gauge(value.into()));
    }

    /// A gauge that is 1 where it is so and 0 where it is not.
    pub fn flag(&mut self, name: &'static str, help: &'static str, is: bool) {
        self.gauge(name, help, flag(is));
    }

    /// Gauges of one value; all are left out where there is none.
    pub fn gauges<T>(&mut self, rows: &[Row<T, Option<f64>>], of: Option<&T>) {
        for &(name, help, value) in rows {
            self.gauge(name, help, of.and_then(value));
        }
    }

    /// 1 for the present one of several states, 0 for the others.
    pub fn states(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        states: impl Iterator<Item = (&'static str, bool)>,
    ) {
        self.add(name, help, Values::Gauges(label, states.map(|(state, is)| (state, flag(is))).collect()));
    }

    /// A counter with labels whose values come from the configuration.
    pub fn counter_series(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: LabelNames,
        series: impl Iterator<Item = (Vec<String>, f64)>,
    ) {
        self.add(name, help, Values::CounterSeries(labels, series.collect()));
    }

    /// A gauge with such labels.
    pub fn gauge_series(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: LabelNames,
        series: impl Iterator<Item = (Vec<String>, f64)>,
    ) {
        self.add(name, help, Values::GaugeSeries(labels, series.collect()));
    }

    /// A word instead of a number.
    pub fn info(&mut self, name: &'static str, help: &'static str, label: &'static str, value: &str) {
        self.add(name, help, Values::Info(label, value.to_owned()));
    }

    fn add(&mut self, name: &'static str, help: &'static str, values: Values) {
        self.0.push(Metric { name, help, values });
    }
}

impl Metric {
    /// The name without its unit, and the unit.
    pub(crate) fn name_and_unit(&self) -> (&'static str, Option<&'static str>) {
        let split =
            |unit: &&'static str| Some((self.name.strip_suffix(unit)?.strip_suffix('_')?, Some(*unit)));
        ["seconds", "bytes", "ratio"].iter().find_map(split).unwrap_or((self.name, None))
    }
}

/// The sum of a counter over copies.
pub(crate) fn sum<T>(copies: &[&T], of: fn(&T) -> &Counter) -> u64 {
    copies.iter().map(|copy| of(copy).value()).sum()
}

/// 1 for what is so.
pub(crate) fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}
