//! The table of all metrics in `docs/metrics.md`, generated from the catalogue.

use core::fmt::{self, Write as _};

use crate::catalogue::{About, Catalogue, Sink, Values};

/// The table as committed.
#[must_use]
pub fn markdown() -> String {
    let mut table = Table(HEADER.to_owned());
    // Writing to a string cannot fail.
    let _infallible = Catalogue::new(1, "").visit(&mut table);
    table.0
}

const HEADER: &str = "\
# Metrics

Served by the admin listener at `/metrics` as OpenMetrics text. This page is generated from the catalogue in
`crates/telemetry`; `FLASHWEIR_BLESS=1 cargo test -p flashweir-telemetry` rewrites it.

Labels are closed lists or small numbers: never a client's address, never a URL. Offered, unique offered,
admitted, completed and shed are different numbers; none stands in for another. Always: offered = admitted + shed +
left + waiting, and admitted = completed + failed + abandoned + in flight. Services and classes are called as in the
configuration; beyond 63 of them the rest is `(other)`. In the kernel connections are counted, not requests: there
offered = admitted + refused.

| Metric | Type | Label | Meaning |
|---|---|---|---|
";

struct Table(String);

impl Sink for Table {
    fn metric(&mut self, about: About, values: Values) -> fmt::Result {
        let About { name, unit, label, help } = about;
        let unit = unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let (kind, suffix) = match values {
            Values::Counter(_)
            | Values::KnownCounter(_)
            | Values::Counters(_)
            | Values::CounterSeries(..) => ("counter", "_total"),
            Values::Gauge(_) | Values::Gauges(_) | Values::GaugeSeries(..) => ("gauge", ""),
            Values::Histogram(_) => ("histogram", ""),
            Values::Info(_) => ("info", "_info"),
        };
        let label = match (label, &values) {
            (None, Values::CounterSeries(names, _) | Values::GaugeSeries(names, _)) => {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            }
            (None, _) => String::new(),
            (Some(label), Values::Counters(values)) => listed(label, values.iter().map(|(value, _)| *value)),
            (Some(label), Values::Gauges(values)) => {
                listed(label, values.iter().map(|(value, _)| value.as_str()))
            }
            (Some(label), _) => format!("`{label}`"),
        };
        writeln!(self.0, "| `flashweir_{name}{unit}{suffix}` | {kind} | {label} | {help} |")
    }
}

/// The label and the values it can take, where they are known beforehand.
fn listed<'a>(label: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
    if values.is_empty() { format!("`{label}`") } else { format!("`{label}`: {}", values.join(", ")) }
}
