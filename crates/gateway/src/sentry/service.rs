//! State of one service's sentry that all threads share.

use crate::feedback::inbox::Inbox;
use crate::feedback::{FeedbackReport, Orders};
use arc_swap::ArcSwap;
use flashweir_admission::sentry::{ClassCounts, Common, Plan, Policy, SentryPlanner};
use flashweir_core::{Duration, Instant};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// One service's sentry.
pub(crate) struct Sentry {
    /// The service's name, and its classes' in the policy's order.
    pub(crate) names: Names,
    /// The operator's policy.
    pub(crate) policy: Arc<Policy>,
    /// Decide and record, never act.
    pub(crate) shadow: bool,
    /// Counts of all gates.
    pub(crate) common: Arc<Common>,
    /// The plan for the gates.
    pub(crate) plan: Arc<ArcSwap<Plan>>,
    /// The orders that come from nodes in front and upstreams.
    pub(crate) orders: Arc<ArcSwap<Orders>>,
    /// The same for `/status`.
    pub(crate) feedback_report: ArcSwap<FeedbackReport>,
    /// Datagrams of upstreams, for the planner.
    pub(crate) inbox: Inbox,
    /// By class: since when the oldest that waits has waited, nanoseconds, as of the last samples.
    oldest_since: Box<[AtomicU64]>,
    bells: Box<[Bell]>,
}

/// An instant that never comes: the queue is empty.
const NONE_WAITS: u64 = u64::MAX;

/// Names of a service and of its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) service: String,
    pub(crate) classes: Vec<String>,
}

/// Means by which other threads wake a worker.
#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    sample_wanted: AtomicBool,
}

impl Sentry {
    /// Nothing is known of the origin yet; a gate for each worker.
    pub(crate) fn new(names: Names, policy: Policy, shadow: bool, workers: usize) -> Arc<Self> {
        let policy = Arc::new(policy);
        let plan = SentryPlanner::new(policy.clone()).current().clone();
        Arc::new(Self {
            names,
            shadow,
            common: Arc::new(Common::new(workers)),
            plan: Arc::new(ArcSwap::from_pointee(plan)),
            orders: Arc::default(),
            feedback_report: ArcSwap::default(),
            inbox: Inbox::default(),
            oldest_since: policy.classes.iter().map(|_| AtomicU64::new(NONE_WAITS)).collect(),
            policy,
            bells: (0..workers).map(|_| Bell::default()).collect(),
        })
    }

    /// Name of a class.
    pub(crate) fn class_name(&self, class: u8) -> &str {
        self.names.classes.get(usize::from(class)).map_or("", String::as_str)
    }

    /// Takes over how long the oldest of each class has waited, at any worker.
    pub(super) fn tell_oldest(&self, now: Instant, counts: &[ClassCounts]) {
        for (since, counts) in self.oldest_since.iter().zip(counts) {
            let since_nanos = match counts.oldest_held_us {
                0 => NONE_WAITS,
                age_us => now.as_nanos().saturating_sub(age_us.saturating_mul(1_000)),
            };
            since.store(since_nanos, Ordering::Relaxed);
        }
    }

    /// Waiting time of the oldest of a class, at any worker; zero if none of it waits.
    pub(super) fn oldest_held(&self, now: Instant, class: usize) -> Duration {
        let since = self.oldest_since.get(class).filter(|_| self.common.held(class) > 0);
        since.map_or(Duration::ZERO, |since| {
            now.saturating_since(Instant::from_nanos(since.load(Ordering::Relaxed)))
        })
    }

    /// One gate for each worker.
    pub(crate) fn workers(&self) -> usize {
        self.bells.len()
    }

    /// Wakes the attendant of this worker's gate: a queued request there may be next, or has to leave the
    /// queue earlier than expected.
    pub(crate) fn ring(&self, worker: usize) {
        if let Some(bell) = self.bells.get(worker) {
            bell.rung.notify_one();
        }
    }

    /// Asks this worker for what it measured.
    pub(crate) fn want_sample(&self, worker: usize) {
        if let Some(bell) = self.bells.get(worker) {
            // The bell itself orders it before the look.
            bell.sample_wanted.store(true, Ordering::Relaxed);
            bell.rung.notify_one();
        }
    }

    /// Waits for the bell of this worker.
    pub(crate) async fn rung(&self, worker: usize) {
        self.bells[worker].rung.notified().await;
    }

    /// Returns whether this worker's sample is wanted; asked once for each wish.
    pub(crate) fn take_sample_wanted(&self, worker: usize) -> bool {
        self.bells[worker].sample_wanted.swap(false, Ordering::Relaxed)
    }
}

impl fmt::Debug for Sentry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentry").field("policy", &self.policy).finish_non_exhaustive()
    }
}
