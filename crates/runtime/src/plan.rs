//! A plan in JSON and in the log: the same words for every kind of limit.

use flashweir_admission::flash_crowd::{Explanation, Limit, Mode, Plan, Rule};
use flashweir_core::Instant;
use flashweir_telemetry::{Happening, Warnings};
use serde_json::{Value, json};

/// A plan with the numbers behind it.
#[must_use]
pub fn plan_json(plan: &Plan) -> Value {
    let limit = match &plan.limit {
        Limit::Open => json!({ "kind": "open" }),
        Limit::All(rate) => json!({ "kind": "all", "rps": rate.per_second() }),
        Limit::HotSpots(spots) => {
            let rates: Vec<f64> = spots.iter().map(|spot| spot.rate.per_second()).collect();
            json!({ "kind": "hot_spots", "rps": rates })
        }
    };
    let Explanation { mode, cause, rule, .. } = plan.explanation;
    let why = &plan.explanation;
    json!({
        "epoch": plan.epoch,
        "mode": mode.as_str(),
        "cause": cause.as_str(),
        "rule": rule.as_str(),
        "limit": limit,
        "hot_hosts": plan.hot_hosts.len(),
        "gate_shares_milli": plan.gate_shares_milli,
        "ceiling_rps": why.ceiling_rps,
        "quality": why.quality,
        "margin": why.margin,
        "fast_rate_bytes_per_s": why.fast_rate_bytes_per_s,
        "fast_rate_reference": why.fast_rate_reference,
        "fast_score": why.fast_score,
        "fast_score_reference": why.fast_score_reference,
        "offered_rps": why.offered_rps,
        "unique_offered_rps": why.unique_offered_rps,
        "unique_offered_reference_rps": why.unique_offered_reference_rps,
        "admitted_rps": why.admitted_rps,
        "completed_rps": why.completed_rps,
        "responses": why.responses,
    })
}

/// Logs the change of the plan from `before` to `after`: alarm and release.
pub fn tell_change(shadow: bool, [before, after]: [&Explanation; 2]) {
    let ceiling = after.ceiling_rps.unwrap_or(f64::INFINITY);
    match (before.mode, after.mode) {
        (Mode::Normal, Mode::Alarm | Mode::Probe) => tracing::warn!(
            cause = after.cause.as_str(),
            ceiling_rps = ceiling,
            offered_rps = after.offered_rps,
            unique_offered_rps = after.unique_offered_rps,
            quality = after.quality,
            shadow,
            "a flash crowd: admission has a ceiling now"
        ),
        (Mode::Alarm | Mode::Probe, Mode::Normal)
            if before.rule == Rule::Decay || after.rule == Rule::Decay =>
        {
            tracing::info!(shadow, "the ceiling of the planner that failed is removed");
        }
        (Mode::Alarm | Mode::Probe, Mode::Normal) => tracing::info!(
            cause = after.cause.as_str(),
            offered_rps = after.offered_rps,
            shadow,
            "the flash crowd is over: the ceiling is removed"
        ),
        _ => {}
    }
}

/// Logs a changed verdict, at most every ten seconds.
pub fn tell_verdict(warnings: &Warnings, now: Instant, [before, after]: [&str; 2]) {
    if before != after {
        let what = format_args!("load is judged {after} now, was {before}");
        warnings.inform(now, Happening::CauseChanged, what);
    }
}
