//! The tables of all metrics in `docs/metrics.md`, generated from what each shell registers.

use core::fmt::{self, Write as _};
use std::sync::Arc;

use crate::group::{Metric, MetricGroup, Scrape, Values};
use crate::{EgressGroup, Telemetry};

/// The page as committed.
#[must_use]
pub fn markdown() -> String {
    let egress = Telemetry::egress(EgressGroup::new(Arc::default(), Vec::new), "");
    let shells = [
        ("run", Telemetry::gateway(1, "")),
        ("router", Telemetry::router("")),
        ("control", Telemetry::control_plane(vec![(String::new(), Arc::default())], "")),
        ("control --kubernetes", Telemetry::kubernetes(Arc::default(), "")),
        ("egress", egress),
    ];
    let mut page = HEADER.to_owned();
    let mut title = "";
    // A group stands where the first shell that has it has it.
    for (index, (_, shell)) in shells.iter().enumerate() {
        for group in shell.groups() {
            if shells[..index].iter().any(|(_, earlier)| has(earlier, group)) {
                continue;
            }
            let commands = shells.iter().filter(|(_, shell)| has(shell, group));
            let commands: Vec<_> = commands.map(|(command, _)| format!("`flashweir {command}`")).collect();
            // Writing to a string cannot fail.
            let _infallible = section(&mut page, group, &mut title, &commands.join(" and "));
        }
    }
    page
}

const HEADER: &str = "\
# Metrics

Served by the admin listener at `/metrics` as Prometheus text, and as OpenMetrics where `Accept` names it. This page is generated from the groups in
`crates/telemetry`; `FLASHWEIR_BLESS=1 cargo test -p flashweir-telemetry` rewrites it. Each component has a section, which
says which command exports it.

Labels are closed lists or small numbers: never a client's address, never a URL. Offered, unique offered,
admitted, completed and shed are different numbers; none stands in for another. Always: offered = admitted + shed +
left + waiting, and admitted = completed + failed + abandoned + in flight. Services and classes are called as in the
configuration; beyond 63 of them the rest is `(other)`. In the kernel connections are counted, not requests: there
offered = admitted + refused.
";

fn has(shell: &Telemetry, group: &Arc<dyn MetricGroup>) -> bool {
    let metrics = metrics(group);
    shell.groups().iter().any(|other| {
        let others = self::metrics(other);
        others.len() == metrics.len()
            && others.iter().zip(&metrics).all(|(one, other)| one.name == other.name)
    })
}

fn metrics(group: &Arc<dyn MetricGroup>) -> Vec<Metric> {
    let mut scrape = Scrape::default();
    group.export(&mut scrape);
    scrape.0
}

fn section(
    page: &mut String,
    group: &Arc<dyn MetricGroup>,
    title: &mut &'static str,
    commands: &str,
) -> fmt::Result {
    if *title != group.title() {
        *title = group.title();
        writeln!(page, "\n## {title}\n\nExported by {commands}.\n")?;
        page.push_str("| Metric | Type | Label | Meaning |\n|---|---|---|---|\n");
    }
    metrics(group).iter().try_for_each(|metric| row(page, metric))
}

fn row(page: &mut String, Metric { name, help, values }: &Metric) -> fmt::Result {
    let (kind, suffix) = match values {
        Values::Counter(_) | Values::Counters(..) | Values::CounterSeries(..) => ("counter", "_total"),
        Values::Gauge(_) | Values::Gauges(..) | Values::GaugeSeries(..) => ("gauge", ""),
        Values::Histogram(_) => ("histogram", ""),
        Values::Info(..) => ("info", "_info"),
    };
    let label = match values {
        Values::Counter(_) | Values::Gauge(_) | Values::Histogram(_) => String::new(),
        Values::Counters(label, values) => listed(label, values.iter().map(|(value, _)| *value)),
        Values::Gauges(label, values) => listed(label, values.iter().map(|(value, _)| *value)),
        Values::CounterSeries(names, _) | Values::GaugeSeries(names, _) => {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
        Values::Info(label, _) => format!("`{label}`"),
    };
    writeln!(page, "| `flashweir_{name}{suffix}` | {kind} | {label} | {help} |")
}

/// The label and the values it can take.
fn listed<'a>(label: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
    format!("`{label}`: {}", values.join(", "))
}
