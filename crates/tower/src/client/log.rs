//! Log of a node: each change of the condition that holds requests back, and each kind of bad feedback, once
//! in a while.

use flashweir_core::{Duration, Instant};
use flashweir_feedback::caller::{Condition, FeedbackError, FeedbackOutcome, Report};
use tracing::{info, warn};

/// Lines of one kind for one node are this far from each other: a node at its limit may change its mind every
/// second.
const EVERY: Duration = Duration::from_secs(10);
/// The same for bad feedback, which says the same with each answer.
const BAD_EVERY: Duration = Duration::from_secs(600);

/// Last log lines about one node, and their times.
#[derive(Debug, Default)]
pub(crate) struct Log {
    condition: Condition,
    conditions: [Option<Instant>; Condition::ALL.len()],
    bad: [Option<Instant>; FeedbackOutcome::ALL.len()],
}

impl Log {
    /// Returns whether there is something to say of this condition.
    pub(crate) fn is_news(&self, condition: Condition) -> bool {
        condition != self.condition
    }

    pub(crate) fn condition(&mut self, now: Instant, node: &str, report: &Report) {
        self.condition = report.condition;
        if !is_due(&mut self.conditions[report.condition as usize], now, EVERY) {
            return;
        }
        let rate_rps = report.rate.map(|rate| rate.per_second());
        let offered_rps = report.offered.per_second();
        let missing = report.feedback.of(FeedbackOutcome::Missing);
        match report.condition {
            Condition::Open => info!(
                node,
                held_for_s = report.held_for.as_secs_f64(),
                refused = report.refused_limit + report.refused_silent,
                "nothing holds requests back any more"
            ),
            Condition::Limited => {
                let from_rank = report.limit.map(|limit| limit.from_rank);
                warn!(
                    node,
                    rate_rps, offered_rps, from_rank, "the node asks for less: requests are held back here"
                );
            }
            Condition::Expired => warn!(
                node,
                answers_without_field = missing,
                "no feedback comes any more although a limit holds: it opens step by step; where answers come without the field, \
                 something on the way strips it"
            ),
            Condition::Quota => warn!(node, rate_rps, "the quota is spent: requests are held back here"),
            Condition::Silent => {
                warn!(
                    node,
                    unanswered = report.unanswered,
                    "the node answers nothing: requests are refused here but for trials"
                );
            }
            Condition::Returning => {
                info!(node, rate_rps, "the node answers again and gets its load step by step")
            }
        }
    }

    pub(crate) fn bad_feedback(&mut self, now: Instant, node: &str, error: FeedbackError) {
        let outcome = match error {
            FeedbackError::Lines => FeedbackOutcome::Lines,
            FeedbackError::Field(error) => error.into(),
        };
        if is_due(&mut self.bad[outcome as usize], now, BAD_EVERY) {
            warn!(node, %error, "a field Flashweir-Overload is ignored; further ones are counted");
        }
    }
}

fn is_due(last: &mut Option<Instant>, now: Instant, every: Duration) -> bool {
    let is_due = last.is_none_or(|last| now.saturating_since(last) >= every);
    if is_due {
        *last = Some(now);
    }
    is_due
}
