//! Report on one node for an operator: which limit holds, since when, how much it held back, how old the
//! feedback is.

use crate::{FieldError, Limit, Taken};
use flashweir_core::{Duration, Rate};

/// Condition that holds requests to a node back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Open,
    /// The node asked for less.
    Limited,
    /// The node asked for less and says nothing any more: its limit opens.
    Expired,
    /// A quota of the standard fields is spent.
    Quota,
    /// The node answers nothing.
    Silent,
    /// The node answers again and gets its load step by step.
    Returning,
}

/// Outcome of a field `Flashweir-Overload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackOutcome {
    /// News.
    New,
    /// The newest message again.
    Repeated,
    /// An older message: late, or replayed.
    Stale,
    /// An answer without a field while the node's limit holds: stripped on its way, or the node has another
    /// version.
    Missing,
    /// More than one line.
    Lines,
    /// A wrong length.
    Length,
    /// No Byte Sequence.
    Syntax,
    /// Another version.
    Version,
    /// No tag, where there are keys.
    Untagged,
    /// A key that is not there.
    UnknownKey,
    /// A wrong tag.
    Forged,
    /// A number out of range.
    Absurd,
}

impl FeedbackOutcome {
    /// All, in order.
    pub const ALL: [Self; 12] = [
        Self::New,
        Self::Repeated,
        Self::Stale,
        Self::Missing,
        Self::Lines,
        Self::Length,
        Self::Syntax,
        Self::Version,
        Self::Untagged,
        Self::UnknownKey,
        Self::Forged,
        Self::Absurd,
    ];

    /// The spelling in metrics, status and log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Repeated => "repeated",
            Self::Stale => "stale",
            Self::Missing => "missing",
            Self::Lines => "lines",
            Self::Length => "length",
            Self::Syntax => "syntax",
            Self::Version => "version",
            Self::Untagged => "untagged",
            Self::UnknownKey => "unknown_key",
            Self::Forged => "forged",
            Self::Absurd => "absurd",
        }
    }
}

impl From<Taken> for FeedbackOutcome {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::New => Self::New,
            Taken::Repeated => Self::Repeated,
            Taken::Stale => Self::Stale,
        }
    }
}

impl From<FieldError> for FeedbackOutcome {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Length { .. } => Self::Length,
            FieldError::Syntax => Self::Syntax,
            FieldError::Version { .. } => Self::Version,
            FieldError::Untagged => Self::Untagged,
            FieldError::UnknownKey { .. } => Self::UnknownKey,
            FieldError::Forged => Self::Forged,
            FieldError::Absurd { .. } => Self::Absurd,
        }
    }
}

/// Counts of the outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounts([u64; FeedbackOutcome::ALL.len()]);

impl FeedbackCounts {
    pub(crate) fn count(&mut self, outcome: FeedbackOutcome) {
        self.0[outcome as usize] += 1;
    }

    /// Count of this outcome.
    #[must_use]
    pub fn of(&self, outcome: FeedbackOutcome) -> u64 {
        self.0[outcome as usize]
    }
}

impl Condition {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Limited, Self::Expired, Self::Quota, Self::Silent, Self::Returning];

    /// The spelling in metrics, status and log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Limited => "limited",
            Self::Expired => "expired",
            Self::Quota => "quota",
            Self::Silent => "silent",
            Self::Returning => "returning",
        }
    }
}

/// A snapshot of one node's state. Counts are since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The condition that holds requests back now.
    pub condition: Condition,
    /// Since when.
    pub since: Duration,
    /// The limit that the node asked for, where that holds.
    pub limit: Option<Limit>,
    /// The rate that is kept, whether the node, a quota or silence set it.
    pub rate: Option<Rate>,
    /// Age of the newest feedback.
    pub feedback_age: Option<Duration>,
    /// Arrivals now, before any limit.
    pub offered: Rate,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that were refused because of a limit.
    pub refused_limit: u64,
    /// Requests that were refused because the node answers nothing.
    pub refused_silent: u64,
    /// Requests whose callers gave up while they waited.
    pub withdrawn: u64,
    /// Requests that wait.
    pub waiting: usize,
    /// Total time for which requests were held back.
    pub held_for: Duration,
    /// Exchanges without answer.
    pub unanswered: u64,
    /// Fields `Flashweir-Overload`.
    pub feedback: FeedbackCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_count_in_their_own_places() {
        let mut counts = FeedbackCounts::default();
        for (place, outcome) in FeedbackOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place);
            (0..=place).for_each(|_| counts.count(outcome));
        }
        let counted = FeedbackOutcome::ALL.map(|outcome| counts.of(outcome));
        assert_eq!(counted, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert!(Condition::ALL.into_iter().enumerate().all(|(place, it)| it as usize == place));
    }
}
