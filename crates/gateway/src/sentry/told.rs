//! What `/status` and `/explain` say of the sentry, as JSON.

use super::service::Sentry;
use super::stage::Basis;
use crate::decisions::ExplainedSentry;
use flashweir_admission::sentry::{ClassPlan, Explanation};
use serde_json::{Value, json};
use std::sync::Arc;

/// One service in `/status`.
pub(crate) fn status(sentry: &Arc<Sentry>) -> Value {
    let plan = Basis::of(sentry, &sentry.plan.load());
    json!({
        "in_flight": sentry.common.in_flight(),
        "waiting": (0..sentry.names.classes.len()).map(|class| sentry.common.held(class)).sum::<u32>(),
        "plan": plan_json(&plan),
    })
}

/// What a refusal rests on.
pub(crate) fn refusal(record: &ExplainedSentry) -> Value {
    json!({
        "service": record.basis.sentry.names.service,
        "class": record.basis.sentry.class_name(record.class),
        "limit": limit_of(record),
        "in_flight": record.in_flight,
        "waiting": record.waiting,
        "plan": plan_json(&record.basis),
    })
}

/// The limit that the request's class was under.
pub(crate) fn limit_of(record: &ExplainedSentry) -> u32 {
    record.basis.classes.get(usize::from(record.class)).map_or(record.basis.limit, |class| class.limit)
}

fn plan_json(plan: &Basis) -> Value {
    let why: &Explanation = &plan.explanation;
    json!({
        "epoch": plan.epoch,
        "limit": plan.limit,
        "rule": why.rule.as_str(),
        "knee": why.knee,
        "stretch": why.stretch,
        "in_flight_mean": why.in_flight,
        "completed_rps": why.completed_rps,
        "capacity_rps": why.capacity_rps,
        "response_p95_s": why.response_p95_s,
        "quantile_over_mean": why.quantile_over_mean,
        "target_s": why.target.as_secs_f64(),
        "target_infeasible": why.target_infeasible,
        "guarantees_infeasible": why.guarantees_infeasible,
        "price": plan.price,
        "classes": plan.classes.iter().zip(&plan.sentry.names.classes).map(class_json).collect::<Vec<_>>(),
    })
}

fn class_json((class, name): (&ClassPlan, &String)) -> Value {
    json!({
        "name": name,
        "limit": class.limit,
        "target_s": class.target.as_secs_f64(),
        "waiting_most": class.hold_len,
        "waiting_longest_s": class.hold_for.as_secs_f64(),
        "newest_first_after_s": class.newest_first_after.as_secs_f64(),
        "guaranteed_rps": class.guaranteed_rate.per_second(),
        "retry_after_s": class.retry_after.as_secs_f64(),
    })
}
