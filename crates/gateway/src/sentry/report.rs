//! The sentry and a candidate policy in `/status` and `/explain`, as JSON.

use super::candidate::{Candidate, CandidateCounts};
use super::refused::Basis;
use super::service::Sentry;
use crate::decisions::{ExplainedCandidate, ExplainedSentry};
use flashweir_admission::sentry::{ClassPlan, ClassPolicy, Explanation, LongRequests, VirtualDecision};
use flashweir_core::{Instant, Reason};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One service in `/status`.
pub(crate) fn status(sentry: &Arc<Sentry>, now: Instant) -> Value {
    let plan = sentry.plan.load();
    let long = long_json(sentry.common.long(), &plan.long);
    let plan = Basis::of(sentry, &plan);
    let classes = sentry.names.classes.iter().enumerate();
    let waiting = classes.map(|(class, name)| {
        json!({
            "name": name,
            "waiting": sentry.common.held(class),
            "oldest_waiting_s": sentry.oldest_held(now, class).as_secs_f64(),
            "queue_stands": sentry.common.stands(class),
        })
    });
    json!({
        "in_flight": sentry.common.in_flight(),
        "long": long,
        "waiting": (0..sentry.names.classes.len()).map(|class| sentry.common.held(class)).sum::<u32>(),
        "classes": waiting.collect::<Vec<_>>(),
        "plan": plan_json(&plan),
    })
}

/// Requests that hold no place.
fn long_json(in_flight: u32, long: &LongRequests) -> Value {
    json!({
        "in_flight": in_flight,
        "means": format!("{in_flight} requests counted separately: they are long, or prompt while others are late, and hold no place in the limit"),
        "url_classes": long.url_classes.len(),
        "most": long.limit,
        "any_request_after_s": (!long.release_after.is_zero()).then_some(long.release_after.as_secs_f64()),
    })
}

/// Grounds of a refusal.
pub(crate) fn refusal(record: &ExplainedSentry) -> Value {
    json!({
        "service": record.basis.sentry.names.service,
        "class": record.basis.sentry.class_name(record.class),
        "limit": limit_of(record),
        "in_flight": record.in_flight,
        "waiting": record.waiting,
        "oldest_waiting_s": f64::from(record.oldest_waiting_us) / 1e6,
        "plan": plan_json(&record.basis),
        "candidate": record.candidate.as_ref().map(candidates_say),
    })
}

/// A candidate in `/status`.
pub(crate) fn candidate(candidate: &Candidate, now: Instant) -> Value {
    let sentry = &candidate.sentry;
    let counts = candidate.class_counts();
    let classes = sentry.names.classes.iter().zip(&sentry.policy.classes).zip(counts.iter());
    let classes: Vec<Value> =
        classes.map(|((name, policy), counts)| class_of_candidate(name, policy, counts)).collect();
    json!({
        "means": "what would have happened to the requests that came, had this policy been in force; those that only it \
                  lets in never ran, and how long they would have taken is estimated",
        "virtual": status(sentry, now),
        "classes": classes,
    })
}

fn class_of_candidate(name: &str, policy: &ClassPolicy, counts: &CandidateCounts) -> Value {
    let CandidateCounts { counts, compared } = counts;
    let shed = Reason::ALL.iter().zip(compared.shed).filter(|(_, count)| *count > 0);
    let shed: Map<String, Value> = shed.map(|(reason, count)| (reason.to_string(), count.into())).collect();
    json!({
        "name": name,
        "revenue": policy.revenue,
        "guaranteed_rps": policy.guaranteed_rate.per_second(),
        "offered": counts.offered,
        "admitted": counts.admitted,
        "held": compared.held,
        "left": counts.left,
        "shed": shed,
        "good": { "candidate": counts.good, "live": compared.live_good },
        "earned": {
            "candidate": counts.good as f64 * policy.revenue,
            "live": compared.live_good as f64 * policy.revenue,
        },
        "let_in_by": {
            "both": compared.both, "live": compared.only_live,
            "candidate": compared.only_candidate, "neither": compared.neither,
        },
    })
}

/// A candidate's decision about a refused request.
fn candidates_say(candidate: &ExplainedCandidate) -> Value {
    let ExplainedCandidate { decision, class, in_flight, basis } = candidate;
    let (would, reason) = match decision {
        VirtualDecision::Admit => ("let_in", None),
        VirtualDecision::Hold => ("hold", None),
        VirtualDecision::Shed(reason) => ("refuse", Some(reason.as_str())),
    };
    json!({
        "class": basis.sentry.class_name(*class),
        "would": would,
        "reason": reason,
        "limit": basis.classes.get(usize::from(*class)).map_or(basis.limit, |class| class.limit),
        "in_flight": in_flight,
    })
}

/// The same in words.
pub(crate) fn candidate_sentence(candidate: &ExplainedCandidate) -> String {
    let class = candidate.basis.sentry.class_name(candidate.class);
    let would = match candidate.decision {
        VirtualDecision::Admit => "let it in".to_owned(),
        VirtualDecision::Hold => "made it wait".to_owned(),
        VirtualDecision::Shed(reason) => format!("refused it, too ({reason})"),
    };
    format!("The candidate policy would have {would}, in class {class}.")
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
        "standing_most": class.standing_len,
        "standing_longest_s": class.standing_for.as_secs_f64(),
        "newest_first_after_s": class.newest_first_after.as_secs_f64(),
        "oldest_first_below": class.oldest_first_below,
        "guaranteed_rps": class.guaranteed_rate.per_second(),
        "retry_after_s": class.retry_after.as_secs_f64(),
    })
}
