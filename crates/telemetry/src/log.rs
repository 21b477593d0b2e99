//! Warnings that stay readable under load: each kind of happening is counted always and logged rarely.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use flashweir_core::Instant;

use crate::counter::{Counter, CounterSet};
use crate::label::{Label as _, labels};

labels! {
    /// A kind of happening worth a warning, that load can make frequent.
    Happening, "event" {
        /// A connection could not be accepted.
        AcceptFailed => "accept_failed",
        /// A bound was met.
        BoundMet => "bound_met",
        /// A client sent what is no request.
        BadRequest => "bad_request",
        /// A client's connection failed.
        ConnectionFailed => "connection_failed",
        /// An upstream could not be reached or broke an exchange.
        UpstreamFailed => "upstream_failed",
        /// An upstream's message about its overload cannot be believed.
        FeedbackRefused => "feedback_refused",
        /// Responses of an upstream lack the field of overload while a limit holds.
        FeedbackMissing => "feedback_missing",
        /// An upstream is left out or back.
        UpstreamHealth => "upstream_health",
        /// A report or a share of another gateway was not taken, or did not come.
        Cluster => "cluster",
        /// An agent beside a server gave no report.
        Agent => "agent",
        /// A report between nodes of a cluster of replicas was not taken, or a copy differed.
        Replication => "replication",
        /// The verdict on why load is high changed.
        CauseChanged => "cause_changed",
        /// The planner is behind or samples wait.
        PlannerLate => "planner_late",
        /// A planner failed and starts again.
        PlannerRestarted => "planner_restarted",
        /// The thread that runs a planner does nothing any more, or does again.
        PlannerStalled => "planner_stalled",
        /// The clock went back or jumped ahead.
        ClockJumped => "clock_jumped",
        /// The state file could not be read or written.
        StateFile => "state_file",
        /// A certificate could not be read again.
        Certificate => "certificate",
        /// The gate in the kernel does not accept an order, or an interface is gone.
        Kernel => "kernel",
        /// The kernel began to refuse connections, or stopped.
        KernelCeiling => "kernel_ceiling",
        /// Lines of the log were dropped, because standard error did not take them; counted by line.
        LogDropped => "log_dropped",
    }
}

static DROPPED_LINES: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>> = OnceLock::new();

/// Has the lines that the process's one log drops counted as [`Happening::LogDropped`]; the first caller's
/// count holds.
pub fn count_dropped_lines(count: impl Fn() -> u64 + Send + Sync + 'static) {
    let _first_holds = DROPPED_LINES.set(Box::new(count));
}

/// Counts happenings and logs each kind at most once in ten seconds; shared by all threads without a lock.
#[derive(Debug)]
pub struct Warnings {
    counts: CounterSet<Happening>,
    throttles: Box<[Throttle]>,
}

/// Six lines a minute per kind: enough to see that it goes on, few enough to read the rest.
const LOG_EVERY: Duration = Duration::from_secs(10);

impl Default for Warnings {
    fn default() -> Self {
        let throttles = Happening::ALL.iter().map(|_| Throttle::default()).collect();
        Self { counts: CounterSet::default(), throttles }
    }
}

impl Warnings {
    /// Counts one happening and, when none of its kind was logged within ten seconds before `now`, logs it
    /// with the number left out since. The message is only formatted when it is logged. Name no client
    /// address and no URL.
    pub fn warn(&self, now: Instant, happening: Happening, message: fmt::Arguments<'_>) {
        if let Some(suppressed) = self.count(now, happening) {
            tracing::warn!(event = happening.as_str(), suppressed, "{message}");
        }
    }

    /// As [`warn`](Self::warn), at level info.
    pub fn inform(&self, now: Instant, happening: Happening, message: fmt::Arguments<'_>) {
        if let Some(suppressed) = self.count(now, happening) {
            tracing::info!(event = happening.as_str(), suppressed, "{message}");
        }
    }

    /// Counts one happening; how many were left out since the last logged one when this one is to be logged.
    pub fn count(&self, now: Instant, happening: Happening) -> Option<u64> {
        self.counts.increment(happening);
        self.throttles[happening.index()].due(now)
    }

    /// Count of this happening.
    #[must_use]
    pub fn value(&self, happening: Happening) -> u64 {
        match happening {
            Happening::LogDropped => DROPPED_LINES.get().map_or(0, |count| count()),
            counted => self.counts.value(counted),
        }
    }
}

#[derive(Debug, Default)]
struct Throttle {
    next_ns: AtomicU64,
    suppressed: Counter,
    reported: AtomicU64,
}

impl Throttle {
    fn due(&self, now: Instant) -> Option<u64> {
        let next = self.next_ns.load(Ordering::Relaxed);
        let then = (now + LOG_EVERY).as_nanos();
        // Of several threads that find it due, the exchange lets exactly one log.
        let won = now.as_nanos() >= next
            && self.next_ns.compare_exchange(next, then, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !won {
            self.suppressed.increment();
            return None;
        }
        let suppressed = self.suppressed.value();
        Some(suppressed.saturating_sub(self.reported.swap(suppressed, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Happening, Warnings};
    use flashweir_core::Instant;

    #[test]
    fn the_first_is_logged_then_one_every_ten_seconds_with_what_was_left_out() {
        let warnings = Warnings::default();
        let at = |millis| warnings.count(Instant::from_millis(millis), Happening::BoundMet);
        assert_eq!(at(0), Some(0));
        assert_eq!(at(1), None);
        assert_eq!(at(9_999), None);
        assert_eq!(at(10_000), Some(2));
        assert_eq!(at(10_001), None);
        assert_eq!(at(50_000), Some(1));
        assert_eq!(warnings.value(Happening::BoundMet), 6);
    }

    #[test]
    fn kinds_do_not_silence_each_other() {
        let warnings = Warnings::default();
        assert_eq!(warnings.count(Instant::ZERO, Happening::BoundMet), Some(0));
        assert_eq!(warnings.count(Instant::ZERO, Happening::StateFile), Some(0));
    }
}
