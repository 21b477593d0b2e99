//! Metrics and `/status` of the gate in the kernel.

use super::ceiling::{CeilingInputs, Decision, connections_per_request, headroom};
use super::guard::{Guard, GuardError};
use flashweir_config::Config;
use flashweir_core::Duration;
use flashweir_core::kernel_counts::{GateCounts, TierCounts};
use flashweir_kernel::gate::Hook;
use flashweir_runtime::kernel::shown_ranks;
use flashweir_telemetry::{KernelFigures, KernelService};
use serde_json::{Value, json};

/// For the metrics.
pub(super) fn figures(
    config: &Config,
    guard: &Guard,
    counts: GateCounts,
    beat_age: Duration,
) -> Result<KernelFigures, GuardError> {
    let service = KernelService {
        name: config.gateway.name.clone(),
        ceiling_per_s: guard.ceiling_per_s(),
        ranks: shown_ranks(&config.kernel),
        counts,
    };
    Ok(KernelFigures {
        services: vec![service],
        passed: guard.passed()?.map(|(reason, count)| (reason.as_str(), count)).to_vec(),
        interfaces: guard.interfaces().filter(|interface| interface.hook.is_some()).count(),
        generation: guard.generation(),
        heartbeat_age_s: beat_age.as_secs_f64(),
        flows: None,
        queue: None,
    })
}

/// For `/status`.
pub(super) fn status(
    config: &Config,
    guard: &Guard,
    inputs: &CeilingInputs,
    decision: Option<&Decision>,
    figures: &KernelFigures,
    of_ranks: &[TierCounts],
) -> Value {
    let interfaces = guard.interfaces().map(|interface| {
        let hook = interface.hook.map(|hook| if hook == Hook::Native { "native" } else { "generic" });
        json!({ "name": interface.name, "hook": hook, "is_guarded": hook.is_some() })
    });
    let counts = figures.services.first().map(|service| service.counts).unwrap_or_default();
    json!({
        "interfaces": interfaces.collect::<Vec<_>>(),
        "refusal": config.kernel.refusal.as_str(),
        "fail_closed": config.kernel.fail_closed,
        "generation": figures.generation,
        "pin": config.kernel.pin.as_ref().map(|path| path.display().to_string()),
        "ceiling_connections_per_s": figures.services.first().and_then(|service| service.ceiling_per_s),
        "reason": decision.map(|decision| decision.reason.as_str()),
        "shadow": decision.map_or(config.kernel.shadow, |decision| decision.shadow),
        "useful_rps": decision.map(|decision| decision.admissible.total_rps),
        "headroom": headroom(inputs),
        "connections_per_request": connections_per_request(inputs),
        "arriving_connections_per_s": inputs.arriving_per_s,
        "connections": {
            "offered": counts.offered,
            "unique_offered": counts.unique_offered,
            "admitted": counts.admitted,
            "dropped": counts.dropped,
            "reset": counts.reset,
            "answered": counts.answered,
            "purged": counts.purged,
            "failed_open": counts.failed_open,
            "shadowed": counts.shadowed,
        },
        "tiers": tiers(guard, of_ranks),
    })
}

/// Every rank that is in use: its ceiling, where it has one, and what became of its connections.
fn tiers(guard: &Guard, of_ranks: &[TierCounts]) -> Vec<Value> {
    let ceilings = guard.tiers();
    let in_use = |(rank, counts): &(usize, &TierCounts)| *rank < ceilings.len() || counts.offered > 0;
    let tier = |(rank, counts): (usize, &TierCounts)| {
        let ceiling = ceilings.get(rank);
        json!({
            "rank": rank,
            "rate_connections_per_s": ceiling.map(|ceiling| ceiling.rate.per_second()),
            "burst": ceiling.map(|ceiling| ceiling.burst),
            "offered": counts.offered,
            "admitted": counts.admitted,
            "refused": counts.refused(),
        })
    };
    of_ranks.iter().enumerate().filter(in_use).map(tier).collect()
}
