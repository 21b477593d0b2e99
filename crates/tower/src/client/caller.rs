//! One request's way to a node: deadline, retry budget, work that has begun, and then the node's own limit.

use crate::client::node::{Node, Pass};
use flashweir_admission::gapping::Reason;
use flashweir_core::Duration;
use flashweir_feedback::caller::{BudgetSettings, CallerRefusal, RecentTraces, RetryBudget};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Properties of a request that the caller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Place in the order of importance, 0 the first.
    pub rank: u8,
    /// Time after which its answer is of no use.
    pub deadline: Option<Instant>,
    /// Its effect on the retry budget.
    pub budget: Draw,
    /// The trace it belongs to: a later call of a trace that was sent goes on credit.
    pub trace: Option<u128>,
}

/// Effect of a request on the retry budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draw {
    /// A first attempt adds to it.
    #[default]
    Deposit,
    /// A request that was sent before and failed takes from it, or is refused.
    Withdraw,
    /// Leave was given before, by [`Caller::may_retry`].
    Granted,
}

/// One node with what a target's nodes share: clones share it, too.
#[derive(Clone, Debug)]
pub struct Caller {
    node: Node,
    shared: Arc<Mutex<Shared>>,
    origin: Instant,
}

#[derive(Debug)]
struct Shared {
    budget: RetryBudget,
    traces: RecentTraces,
}

/// A request that was not sent, or whose answer is not awaited any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Node whose limit it was.
    pub node: String,
    /// Reason of the refusal.
    pub why: Why,
    /// Time until another try may be worth it.
    pub retry_after: Duration,
}

/// Reason for which a request was not sent, or is not awaited any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The node asked for less, and this request could not go in time.
    #[error("the node asked for less")]
    Limit(Reason),
    /// The node answers nothing.
    #[error("the node answers nothing")]
    Silent,
    /// Its deadline is over.
    #[error("its deadline is over")]
    Deadline,
    /// It was sent, and no answer came before its deadline.
    #[error("no answer came before its deadline")]
    NoAnswer,
    /// Too many requests are retries.
    #[error("the retry budget is spent")]
    RetryBudget,
}

/// The estimate for a limit that is spent: feedback is renewed ten times a second, so that no more than a
/// second ahead is known.
const AFTER_LIMIT: Duration = Duration::from_secs(1);
/// The same for the retry budget, which fills with first attempts.
const AFTER_BUDGET: Duration = Duration::from_secs(1);

impl Default for Ask {
    /// The least important rank: who does not say what its request is worth goes after those who do.
    fn default() -> Self {
        Self { rank: RANK_LAST, deadline: None, budget: Draw::Deposit, trace: None }
    }
}

/// The least important rank.
const RANK_LAST: u8 = flashweir_core::limits::CLASSES as u8 - 1;

impl Why {
    /// The spelling in metrics, fields and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit(_) => "limit",
            Self::Silent => "silent",
            Self::Deadline | Self::NoAnswer => "deadline",
            Self::RetryBudget => "retry_budget",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, why, .. } = self;
        match why {
            Why::NoAnswer => write!(f, "sent to {node}: {why}"),
            _ => write!(f, "not sent to {node}: {why}"),
        }
    }
}

impl std::error::Error for Refused {}

impl Caller {
    /// With the default budget: retries are a tenth of all requests.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self::with_budget(node, BudgetSettings::default())
    }

    /// With a budget of one's own.
    #[must_use]
    pub fn with_budget(node: Node, budget: BudgetSettings) -> Self {
        let shared = Shared { budget: RetryBudget::new(budget), traces: RecentTraces::default() };
        Self { node, shared: Arc::new(Mutex::new(shared)), origin: Instant::now() }
    }

    /// The same budget and traces for another node of the same target.
    #[must_use]
    pub fn for_node(&self, node: Node) -> Self {
        Self { node, shared: self.shared.clone(), origin: self.origin }
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Waits for leave to send a request, until its deadline at most.
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent, and nothing should be.
    pub async fn admit(&self, ask: &Ask) -> Result<Pass, Refused> {
        if ask.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(self.refused(Why::Deadline, AFTER_LIMIT));
        }
        let is_continued = {
            let now = self.now();
            let mut shared = self.lock();
            match ask.budget {
                Draw::Deposit => shared.budget.deposit(),
                Draw::Withdraw if !shared.budget.withdraw() => {
                    return Err(self.refused(Why::RetryBudget, AFTER_BUDGET));
                }
                Draw::Withdraw | Draw::Granted => {}
            }
            // A retry of a first call is a first call.
            ask.budget == Draw::Deposit && ask.trace.is_some_and(|trace| shared.traces.continues(now, trace))
        };
        let admitted = self.node.admit(ask.rank, is_continued, ask.deadline).await;
        match admitted {
            Ok(pass) => {
                if let Some(trace) = ask.trace {
                    let now = self.now();
                    self.lock().traces.begin(now, trace);
                }
                Ok(pass)
            }
            Err(CallerRefusal::Limit(reason)) => Err(self.refused(Why::Limit(reason), AFTER_LIMIT)),
            Err(CallerRefusal::Silent { retry_in }) => Err(self.refused(Why::Silent, retry_in)),
        }
    }

    /// Returns whether a further attempt is within the budget; then it counts as made. For attempts that this
    /// caller makes by itself.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        self.lock().budget.withdraw()
    }

    /// Further attempts that were made, and those that the budget did not allow.
    #[must_use]
    pub fn retries(&self) -> (u64, u64) {
        let shared = self.lock();
        (shared.budget.granted(), shared.budget.denied())
    }

    fn refused(&self, why: Why, retry_after: Duration) -> Refused {
        Refused { node: self.node.label().to_owned(), why, retry_after }
    }

    fn now(&self) -> flashweir_core::Instant {
        flashweir_core::Instant::from_duration(self.origin.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A balance and a table, right after every statement.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
