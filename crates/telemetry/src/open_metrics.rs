//! Metrics as OpenMetrics text.

use core::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::group::{Metric, MetricGroup, Scrape, Values};

/// The `Content-Type` of [`Telemetry::open_metrics`](crate::Telemetry::open_metrics).
pub const OPEN_METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Asks a group at each scrape.
#[derive(Debug)]
pub(crate) struct Exporter(pub(crate) Arc<dyn MetricGroup>);

impl Collector for Exporter {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut scrape = Scrape::default();
        self.0.export(&mut scrape);
        scrape.0.into_iter().try_for_each(|metric| write(metric, &mut encoder))
    }
}

pub(crate) fn encode(registry: &Registry) -> String {
    let mut text = String::with_capacity(32 * 1024);
    // Writing to a string cannot fail, and no collector of ours makes its own error.
    if text::encode(&mut text, registry).is_err() {
        tracing::error!("the metrics could not be written");
    }
    text
}

fn write(metric: Metric, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, unit) = metric.name_and_unit();
    let unit = unit.map(unit_of);
    let Metric { help, values, .. } = metric;
    let mut encoder = encoder.encode_descriptor(name, help, unit.as_ref(), type_of(&values))?;
    match values {
        Values::Counter(count) => count.map_or(Ok(()), |count| counter(&mut encoder, count)),
        Values::Counters(label, counts) => counts
            .into_iter()
            .try_for_each(|(name, count)| counter(&mut encoder.encode_family(&[(label, name)])?, count)),
        Values::Gauge(value) => value.map_or(Ok(()), |value| encoder.encode_gauge(&value)),
        Values::Gauges(label, values) => values
            .into_iter()
            .try_for_each(|(name, value)| encoder.encode_family(&[(label, name)])?.encode_gauge(&value)),
        Values::CounterSeries(names, series) => series.into_iter().try_for_each(|(values, count)| {
            let labels = labels(names, &values);
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, f64, f64>(&count, None)
        }),
        Values::GaugeSeries(names, series) => series.into_iter().try_for_each(|(values, value)| {
            encoder.encode_family(&labels(names, &values))?.encode_gauge(&value)
        }),
        Values::Histogram(values) => {
            encoder.encode_histogram::<NoLabelSet>(values.sum_s, values.count, &values.buckets, None)
        }
        Values::Info(label, value) => encoder.encode_info(&[(label, value.as_str())]),
    }
}

fn labels<'a>(names: &[&'a str], values: &'a [String]) -> Vec<(&'a str, &'a str)> {
    names.iter().copied().zip(values.iter().map(String::as_str)).collect()
}

fn counter(encoder: &mut MetricEncoder<'_>, count: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, u64, f64>(&count, None)
}

fn unit_of(name: &str) -> Unit {
    match name {
        "seconds" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        other => Unit::Other(other.to_owned()),
    }
}

fn type_of(values: &Values) -> MetricType {
    match values {
        Values::Counter(_) | Values::Counters(..) | Values::CounterSeries(..) => MetricType::Counter,
        Values::Gauge(_) | Values::Gauges(..) | Values::GaugeSeries(..) => MetricType::Gauge,
        Values::Histogram(_) => MetricType::Histogram,
        Values::Info(..) => MetricType::Info,
    }
}
