//! The catalogue as OpenMetrics text.

use core::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::catalogue::{About, Catalogue, Sink, Values};

/// The `Content-Type` of [`Telemetry::open_metrics`](crate::Telemetry::open_metrics).
pub const OPEN_METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Sums over the workers at each scrape.
#[derive(Debug)]
pub(crate) struct Exporter(pub(crate) Arc<Catalogue>);

impl Collector for Exporter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.visit(&mut OpenMetrics(encoder))
    }
}

pub(crate) fn encode(registry: &Registry) -> String {
    let mut text = String::with_capacity(32 * 1024);
    // Writing to a string cannot fail, and no collector of ours makes an error of its own.
    if text::encode(&mut text, registry).is_err() {
        tracing::error!("the metrics could not be written");
    }
    text
}

struct OpenMetrics<'a>(DescriptorEncoder<'a>);

impl Sink for OpenMetrics<'_> {
    fn metric(&mut self, about: About, values: Values) -> fmt::Result {
        let unit = about.unit.map(unit);
        let label = about.label.unwrap_or("");
        let mut encoder =
            self.0.encode_descriptor(about.name, about.help, unit.as_ref(), type_of(&values))?;
        match values {
            Values::Counter(count) => counter(&mut encoder, count),
            Values::KnownCounter(count) => count.map_or(Ok(()), |count| counter(&mut encoder, count)),
            Values::Counters(counts) => counts
                .into_iter()
                .try_for_each(|(name, count)| counter(&mut encoder.encode_family(&[(label, name)])?, count)),
            Values::Gauge(value) => value.map_or(Ok(()), |value| encoder.encode_gauge(&value)),
            Values::Gauges(values) => values.into_iter().try_for_each(|(name, value)| {
                encoder.encode_family(&[(label, name.as_str())])?.encode_gauge(&value)
            }),
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
            Values::Info(value) => encoder.encode_info(&[(label, value.as_str())]),
        }
    }
}

fn labels<'a>(names: &[&'a str], values: &'a [String]) -> Vec<(&'a str, &'a str)> {
    names.iter().copied().zip(values.iter().map(String::as_str)).collect()
}

fn counter(encoder: &mut MetricEncoder<'_>, count: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, u64, f64>(&count, None)
}

fn unit(name: &str) -> Unit {
    match name {
        "seconds" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        other => Unit::Other(other.to_owned()),
    }
}

fn type_of(values: &Values) -> MetricType {
    match values {
        Values::Counter(_) | Values::KnownCounter(_) | Values::Counters(_) | Values::CounterSeries(..) => {
            MetricType::Counter
        }
        Values::Gauge(_) | Values::Gauges(_) | Values::GaugeSeries(..) => MetricType::Gauge,
        Values::Histogram(_) => MetricType::Histogram,
        Values::Info(_) => MetricType::Info,
    }
}
