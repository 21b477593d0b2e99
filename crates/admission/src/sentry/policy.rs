//! Inputs from the operator: classes, their worth, targets and guarantees. Nothing here has to be tuned.

use super::published::Published;
use alloc::vec::Vec;
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Rate};

/// The policy of one service.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The classes, in the order in which they were written: a class is its place in here. 1 to [`CLASSES`].
    pub classes: Vec<ClassPolicy>,
    /// Way in which capacity is given out among them.
    pub policing: Policing,
    /// Answers are to come within this time from the request's arrival, where neither class nor ladder says
    /// otherwise.
    pub target: Duration,
    /// Targets by arrival rate, rates rising; empty for one target at any rate (Cataclysm §2, table 1).
    pub ladder: Vec<LadderStep>,
    /// Interval of the planner's evaluations. Shorter finds changes of fast services sooner and costs more.
    pub interval: Duration,
}

/// One class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassPolicy {
    /// Worth of one request answered in time: a class worth more goes first. Positive and finite.
    pub revenue: f64,
    /// Requests a second that are let in at any load. The planner scales all down together if the origin
    /// cannot serve them all.
    pub guaranteed_rate: Rate,
    /// The class's own response-time target.
    pub target: Option<Duration>,
    /// Requests that may wait at most; without it, as many as can be answered in time.
    pub queue: Option<u32>,
}

/// Way in which capacity is given out among classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policing {
    /// Room in flight is kept for the more important; who waits goes in order of importance.
    #[default]
    Reservation,
    /// Requests of a class gather for a while and are tested bucket by bucket of service time (Cataclysm
    /// §3.2).
    Batch,
    /// Classes below a threshold are refused at once (Cataclysm §3.3).
    Threshold,
    /// `Batch` while deciding costs little, `Threshold` when it costs much (Cataclysm §3.3).
    Auto,
    /// As the paper has it, for an origin that is known: to compare with.
    Published(Published),
}

/// One step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadderStep {
    /// Below this arrival rate; infinite in the last step.
    pub below_rps: f64,
    /// the target is this.
    pub target: Duration,
}

impl Policy {
    /// One class, one target, nothing guaranteed.
    #[must_use]
    pub fn single(target: Duration) -> Self {
        Self {
            classes: alloc::vec![ClassPolicy::default()],
            policing: Policing::Reservation,
            target,
            ladder: Vec::new(),
            interval: Duration::from_millis(20),
        }
    }

    /// The target of the most demanding class where the ladder begins.
    #[must_use]
    pub fn usual_target(&self) -> Duration {
        let first = self.ladder.first().map_or(self.target, |step| step.target);
        self.classes.iter().map(|class| class.target.unwrap_or(first)).min().unwrap_or(first)
    }

    /// Each class's place in the order of importance, 0 the first; classes of equal revenue share one.
    #[must_use]
    pub fn ranks(&self) -> Vec<u8> {
        let is_worth_more = |than: f64| {
            let mut worth: Vec<f64> = self.classes.iter().map(|class| class.revenue).collect();
            worth.retain(|&revenue| revenue > than);
            worth.sort_by(f64::total_cmp);
            worth.dedup();
            worth.len() as u8
        };
        const { assert!(CLASSES <= u8::MAX as usize) };
        self.classes.iter().map(|class| is_worth_more(class.revenue)).collect()
    }
}

impl Default for ClassPolicy {
    fn default() -> Self {
        Self { revenue: 1.0, guaranteed_rate: Rate::ZERO, target: None, queue: None }
    }
}
