//! Exported metrics of targets and their nodes.

use crate::status::Views;
use crate::target::TargetView;
use flashweir_telemetry::{EgressDatagrams, EgressGroup, EgressTarget};
use flashweir_tower::client::{Condition, FeedbackOutcome};
use std::sync::Arc;

/// The group of metrics that reads the targets at each scrape.
pub(crate) fn group(views: Views, datagrams: Arc<EgressDatagrams>) -> EgressGroup {
    EgressGroup::new(datagrams, move || {
        let of_target = |view: &Arc<TargetView>| {
            let known = view.known();
            let reports: Vec<_> = known.iter().map(|(_, caller)| caller.node().report()).collect();
            let conditions = Condition::ALL.map(|condition| {
                let count = reports.iter().filter(|report| report.condition == condition).count();
                (condition.as_str(), count as u64)
            });
            let feedback = FeedbackOutcome::ALL.map(|outcome| {
                (outcome.as_str(), reports.iter().map(|report| report.feedback.of(outcome)).sum())
            });
            let limited = reports.iter().filter_map(|report| report.rate);
            EgressTarget {
                name: view.name.clone(),
                counters: view.counters.clone(),
                conditions: conditions.to_vec(),
                feedback: feedback.to_vec(),
                rate_rps: limited.map(|rate| rate.per_second()).reduce(|one, other| one + other),
                offered_rps: reports.iter().map(|report| report.offered.per_second()).sum(),
                feedback_age_s: reports
                    .iter()
                    .filter_map(|report| report.feedback_age)
                    .min()
                    .map(|age| age.as_secs_f64()),
                held_for_s: reports.iter().map(|report| report.held_for.as_secs_f64()).sum(),
                waiting: reports.iter().map(|report| report.waiting as u64).sum(),
                unanswered: reports.iter().map(|report| report.unanswered).sum(),
                retries_denied: known.first().map_or(0, |(_, caller)| caller.retries().1),
            }
        };
        views.iter().map(of_target).collect()
    })
}
