//! Plans from the planner to the gate, and their explanations.

use super::long::LongRequests;
use alloc::sync::Arc;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Rate};

/// The limit in force and the numbers behind it.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// Counts changes; a gate applies a plan once.
    pub epoch: u64,
    /// Requests in flight at most, at least 1.
    pub limit: u32,
    /// For each class of the policy, in its order.
    pub classes: Vec<ClassPlan>,
    /// Way in which the gate decides.
    pub decide: Decide,
    /// Requests that the origin serves at once without any waiting for another, thousandths; 0 while unknown.
    pub knee_milli: u64,
    /// Requests that hold no place.
    pub long: LongRequests,
    /// Costs of requests, for decisions that go by them.
    pub costs: Arc<Costs>,
    /// Revenue per server-second of the least important request that is let in; 0 while there is room for
    /// all.
    pub price: f64,
    /// Reason for the plan.
    pub explanation: Explanation,
}

impl Clone for Plan {
    fn clone(&self) -> Self {
        let (classes, long, costs) = (self.classes.clone(), self.long.clone(), self.costs.clone());
        Self { classes, long, costs, ..*self }
    }

    /// Allocates nothing where both have as many classes: a gate takes a plan over fifty times a second.
    fn clone_from(&mut self, source: &Self) {
        let Self { epoch, limit, classes, decide, knee_milli, long, costs, price, explanation } = source;
        (self.epoch, self.limit, self.decide, self.knee_milli) = (*epoch, *limit, *decide, *knee_milli);
        (self.price, self.explanation) = (*price, *explanation);
        self.classes.clone_from(classes);
        let LongRequests { url_classes, limit, release_after } = long;
        (self.long.limit, self.long.release_after) = (*limit, *release_after);
        self.long.url_classes.clone_from(url_classes);
        self.costs.clone_from(costs);
    }
}

impl Plan {
    /// Limit for clients over their share: the number that the origin serves at once; while that is unknown,
    /// half of the limit. Never more than any class may have: where there is room for clients over their
    /// share, there is room for all others.
    pub(super) fn spare_limit(&self) -> u32 {
        let knee = match self.knee_milli {
            0 => (self.limit / 2).max(1),
            knee_milli => u32::try_from(knee_milli / 1_000).unwrap_or(u32::MAX).max(1),
        };
        self.classes.iter().map(|class| class.limit).fold(knee, u32::min)
    }
}

/// Way in which the gate decides which requests it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decide {
    /// Below the class's limit, and no request as important waits; others wait.
    Reservation,
    /// Requests wait for their class's next round, in which those go that would be answered in time.
    Batch(BatchTest),
    /// The class's share of requests, and those as by reservation.
    Threshold,
}

/// Inputs of a round's test besides what the gate counts itself (Cataclysm §3.2, eq. 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTest {
    /// Requests served at once, thousandths (n).
    pub servers_milli: u64,
    /// Ratio of the time that late responses take to the mean, thousandths: 1,000 in the paper.
    pub quantile_milli: u64,
    /// All of a lane or none, as published; else as many as would be answered in time.
    pub is_whole: bool,
}

/// Plan of the gate for one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassPlan {
    /// Place in the order of importance, 0 the first; classes worth the same share one.
    pub rank: u8,
    /// Requests in flight, of all classes together, below which one of this class is let in; the least
    /// important class has [`Plan::limit`], the others a little more.
    pub limit: u32,
    /// Requests of this class that may wait for room, over all gates.
    pub hold_len: u32,
    /// Maximum wait of a request: afterwards it could not be answered within the target. While nothing is
    /// known of the origin, longer.
    pub hold_for: Duration,
    /// Requests of this class that may wait, over all gates, once its queue stands (see `room`); never more
    /// than [`hold_len`](Self::hold_len).
    pub standing_len: u32,
    /// Maximum wait of a request in a queue that stands. Equal to [`hold_for`](Self::hold_for) where a queue
    /// that stands keeps its room.
    pub standing_for: Duration,
    /// Age of the oldest queued request beyond which the newest go first: they can still be answered in time.
    pub newest_first_after: Duration,
    /// While fewer wait, the oldest go first instead: what is left of a burst is served before any of it is
    /// late.
    pub oldest_first_below: u32,
    /// Answers are to come within this time from the request's arrival.
    pub target: Duration,
    /// [`Decide::Batch`]: the time between two rounds; 0 decides on arrival.
    pub delay: Duration,
    /// [`Decide::Threshold`]: of 2³² requests, the number let in if there is room; `u32::MAX` is all of them.
    pub admit_share: u32,
    /// The guaranteed rate, scaled down if the origin cannot serve all guarantees.
    pub guaranteed_rate: Rate,
    /// Time after which a refused client may hope for better; shells round up to seconds and add jitter.
    pub retry_after: Duration,
}

/// Inherent service times, microseconds: what a request takes at the origin when it is alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// By URL class; 0 where nothing is known. [`URL_CLASSES`] of them.
    pub by_url_class_us: Vec<u32>,
    /// By class of the policy, of a URL class of which nothing is known; 0 where nothing is known of the
    /// class either.
    pub by_class_us: Vec<u32>,
    /// Of a request of which nothing is known; 0 if nothing at all is.
    pub usual_us: u32,
}

impl Costs {
    /// Of one request; 0 if nothing at all is known.
    #[must_use]
    pub fn of(&self, url_class: u32, class: u8) -> u32 {
        let by_url = self.by_url_class_us.get(url_class as usize % URL_CLASSES);
        let known = [by_url, self.by_class_us.get(usize::from(class))];
        known.into_iter().flatten().copied().find(|&us| us > 0).unwrap_or(self.usual_us)
    }
}

/// Rule that made the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing was decided since the last plan.
    None,
    /// The limit does not bind: nothing is to be decided.
    Quiet,
    /// Before there is evidence: doubled while twice as many do much more, halved where what is in flight is
    /// late already.
    Start,
    /// More in flight are expected to do more in time.
    Raise,
    /// Fewer are expected to do as much, or more of it in time.
    Knee,
    /// Lowered because the origin refuses requests.
    Target,
    /// Rises because the planner that set it failed.
    Decay,
}

impl Rule {
    /// All rules, in the order of their discriminants.
    pub const ALL: &'static [Self] =
        &[Self::None, Self::Quiet, Self::Start, Self::Raise, Self::Knee, Self::Target, Self::Decay];

    /// The one spelling used in metrics, logs and `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Quiet => "quiet",
            Self::Start => "start",
            Self::Raise => "raise",
            Self::Knee => "knee",
            Self::Target => "target",
            Self::Decay => "decay",
        }
    }
}

/// The inputs and the rule that fired: for the log, the decision record, `/status` and the simulator alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The rule that made this plan.
    pub rule: Rule,
    /// Requests in flight on average over the measurement.
    pub in_flight: f64,
    /// Requests completed per second over the measurement.
    pub completed_rps: f64,
    /// Requests in flight from which on more do not serve more, as far as known.
    pub knee: Option<f64>,
    /// Ratio of the time that requests take to the time they would take alone, as far as known.
    pub stretch: Option<f64>,
    /// The 95th percentile of the time at the origin, seconds, those still in flight counted with their ages.
    pub response_p95_s: Option<f64>,
    /// The service's own responses are slower than the target at any limit.
    pub target_infeasible: bool,
    /// The target in force: by the ladder if there is one, and the shortest of all classes.
    pub target: Duration,
    /// Requests per second that can be completed, as far as seen.
    pub capacity_rps: f64,
    /// Ratio of the 95th percentile to the mean response time, 1 to 6 (q in Cataclysm's test, repaired).
    pub quantile_over_mean: f64,
    /// In the last ten seconds the guarantees together were more than the origin can serve and were scaled
    /// down, or there was no room for a request within its class's.
    pub guarantees_infeasible: bool,
}
