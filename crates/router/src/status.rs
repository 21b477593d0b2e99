//! The documents `/status` and `/explain`, as JSON.

use crate::figures::with_flows;
use crate::record::Decision;
use crate::sample::{DestinationFigures, Sampled};
use crate::settings::is_shadow;
use flashweir_admission::flash_crowd::{Baseline, Limit, Plan};
use flashweir_config::RouterConfig;
use flashweir_core::kernel_counts::{GateCounts, TierCounts};
use flashweir_core::{Duration, Instant, Rate};
use flashweir_kernel::gate::Hook;
use flashweir_kernel::observe::Observed;
use flashweir_runtime::kernel::InterfaceState;
use flashweir_runtime::{plan_json, unix_seconds_now};
use flashweir_telemetry::{KernelFigures, KernelService};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Snapshot of everything that is reported, at most a second old.
#[derive(Clone, Debug)]
pub(crate) struct RouterStatus {
    pub(crate) name: String,
    pub(crate) decision: Arc<Decision>,
    pub(crate) refusal: &'static str,
    pub(crate) fail_closed: bool,
    pub(crate) pin: Option<String>,
    pub(crate) interval: Duration,
    pub(crate) baseline: Baseline,
    pub(crate) interfaces: Vec<InterfaceState>,
    pub(crate) protected: Vec<SocketAddr>,
    /// Since the start, by place; the destinations that have one.
    pub(crate) kernel: KernelFigures,
    pub(crate) place_destinations: Vec<Vec<SocketAddr>>,
    /// Counts of the last interval; `measured` is its length.
    pub(crate) destinations: Vec<DestinationFigures>,
    pub(crate) measured: Duration,
}

impl RouterStatus {
    /// Before anything was seen.
    pub(crate) fn of(config: &RouterConfig, baseline: Baseline) -> Self {
        let shadow = is_shadow(config);
        let decision = Decision { at: Instant::ZERO, plan: Plan::open(1), hot_spots: Vec::new(), shadow };
        Self {
            name: config.gateway.name.clone(),
            decision: Arc::new(decision),
            refusal: config.kernel.refusal.as_str(),
            fail_closed: config.kernel.fail_closed,
            pin: config.kernel.pin.as_ref().map(|path| path.display().to_string()),
            interval: config.flash_crowd.interval,
            baseline,
            interfaces: Vec::new(),
            protected: config.kernel.protect.clone(),
            kernel: KernelFigures::default(),
            place_destinations: Vec::new(),
            destinations: Vec::new(),
            measured: Duration::ZERO,
        }
    }

    /// An interval is over.
    pub(crate) fn measured(&mut self, sampled: &Sampled, observed: &Observed) {
        self.measured = sampled.sample.to.saturating_since(sampled.sample.from);
        self.destinations.clone_from(&sampled.destinations);
        self.kernel.flows = Some(with_flows(self.kernel.flows.unwrap_or_default(), observed));
        self.kernel.queue = observed.queue;
    }
}

/// The document of `/status`.
pub(crate) fn status(snapshot: &RouterStatus, now: Instant) -> Value {
    let why = &snapshot.decision.plan.explanation;
    let total = |count: fn(&GateCounts) -> u64| {
        snapshot.kernel.services.iter().map(|service| count(&service.counts)).sum::<u64>()
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "service": snapshot.name,
        "uptime_s": now.as_secs_f64(),
        "mode": why.mode.as_str(),
        "cause": why.cause.as_str(),
        "ceiling_per_s": why.ceiling_rps,
        "shadow": snapshot.decision.shadow,
        "refusal": snapshot.refusal,
        "fail_closed": snapshot.fail_closed,
        "pin": snapshot.pin,
        "interval_s": snapshot.interval.as_secs_f64(),
        "interfaces": snapshot.interfaces.iter().map(interface).collect::<Vec<_>>(),
        "protect": snapshot.protected.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "connections": {
            "offered": total(|counts| counts.offered),
            "unique_offered": total(|counts| counts.unique_offered),
            "admitted": total(|counts| counts.admitted),
            "refused": total(refused),
            "failed_open": total(|counts| counts.failed_open),
            "shadowed": total(|counts| counts.shadowed),
        },
        "places": snapshot.kernel.services.iter().zip(&snapshot.place_destinations).map(place).collect::<Vec<_>>(),
        "destinations": {
            "interval_s": snapshot.measured.as_secs_f64(),
            "busiest": snapshot.destinations.iter().map(destination).collect::<Vec<_>>(),
            "attempts_left_out": snapshot.kernel.flows.map(|flows| flows.attempts_left_out),
        },
        "flows": snapshot.kernel.flows.map(|flows| json!({
            "tracked": flows.tracked, "begun": flows.begun, "evicted": flows.evicted, "expired": flows.expired,
            "left_out": flows.left_out,
        })),
        "queue": snapshot.kernel.queue.map(|queue| json!({
            "packets": queue.packets, "dropped": queue.dropped, "marked": queue.marked,
            "backlog_bytes": queue.backlog_bytes,
        })),
        "generation": snapshot.kernel.generation,
        "plan": plan_json(&snapshot.decision.plan),
        "baseline": {
            "unique_offered_rps": snapshot.baseline.unique_offered_rps,
            "fast_rate_bytes_per_s": snapshot.baseline.fast_rate_bytes_per_s,
        },
    })
}

/// The document of `/explain`.
pub(crate) fn explanation(decision: &Decision, now: Instant) -> Value {
    let age = now.saturating_since(decision.at);
    let spots = decision.hot_spots.iter();
    json!({
        "epoch": decision.plan.epoch,
        "decided_at_unix_s": unix_seconds_now().saturating_sub(age.as_secs()),
        "age_s": age.as_secs_f64(),
        "shadow": decision.shadow,
        "retry_after_s": decision.plan.retry_after.as_secs_f64(),
        "hot_spots": spots.map(|(at, rate)| json!({ "destination": at.to_string(), "ceiling_per_s": rate })).collect::<Vec<_>>(),
        "plan": plan_json(&decision.plan),
        "text": sentence(decision),
    })
}

fn sentence(decision: &Decision) -> String {
    let why = &decision.plan.explanation;
    let whom = match &decision.plan.limit {
        Limit::Open => {
            return format!(
                "Every new connection is let in: load is judged {}, {:.1} a second arrived.",
                why.cause.as_str(),
                why.offered_rps
            );
        }
        Limit::All(rate) => format!("beyond {rate} to all servers together"),
        Limit::HotSpots(_) => {
            let named = decision.hot_spots.iter();
            let named = named.map(|(at, rate)| format!("beyond {} to {at}", Rate::from_per_second(*rate)));
            named.collect::<Vec<_>>().join(" and ")
        }
    };
    let are = if decision.shadow { "would be (shadow mode: they are let in)" } else { "are" };
    let usual =
        why.unique_offered_reference_rps.map_or_else(String::new, |usual| format!(" (usually {usual:.1})"));
    let quality = why.quality.map_or_else(String::new, |quality| {
        format!(", and the fastest responses had {:.0} % of their usual speed", quality * 100.0)
    });
    format!(
        "New connections {whom} {are} refused, because load was judged {}: {:.1} new connections a second arrived{usual}{quality}.",
        why.cause.as_str(),
        why.offered_rps,
    )
}

fn interface(state: &InterfaceState) -> Value {
    let hook = match state.hook {
        Some(Hook::Native) => Some("native"),
        Some(Hook::Generic) => Some("generic"),
        Some(Hook::Auto) | None => None,
    };
    json!({ "name": state.name, "guarded": state.hook.is_some(), "hook": hook })
}

fn place((service, destinations): (&KernelService, &Vec<SocketAddr>)) -> Value {
    let counts = &service.counts;
    json!({
        "name": service.name,
        "destinations": destinations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "ceiling_per_s": service.ceiling_per_s,
        "offered": counts.offered, "unique_offered": counts.unique_offered, "admitted": counts.admitted,
        "refused": refused(counts),
        "tiers": service.tiers().iter().enumerate().map(tier).collect::<Vec<_>>(),
    })
}

fn tier((rank, counts): (usize, &TierCounts)) -> Value {
    json!({
        "rank": rank, "offered": counts.offered, "admitted": counts.admitted, "refused": counts.refused(),
    })
}

fn destination(figures: &DestinationFigures) -> Value {
    json!({
        "destination": figures.destination.to_string(),
        "offered": figures.counts.offered,
        "unique_offered": figures.counts.unique_offered,
        "admitted": figures.counts.admitted,
        "refused": figures.counts.refused(),
    })
}

fn refused(counts: &GateCounts) -> u64 {
    counts.dropped + counts.reset + counts.answered + counts.purged
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
