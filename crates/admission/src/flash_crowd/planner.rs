//! The planner: detector, ceiling and hot-spots together.
use super::{Plan, Sample};
use crate::Planner;
use flashweir_core::{Duration, Instant};

/// Which rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlannerMode {
    /// The paper's text.
    Paper,
    /// The order and constants of the authors' simulator code.
    Scoreboard,
    /// Our repairs.
    #[default]
    Repaired,
}

/// What may be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Which rules decide.
    pub mode: PlannerMode,
    /// Shortest time between two decisions (T of the paper).
    pub interval: Duration,
    /// Tolerated degradation (delta of the paper), a fraction between 0 and 1.
    pub margin: f64,
    /// How many gates share the ceiling.
    pub gates: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: PlannerMode::Repaired, interval: Duration::from_millis(100), margin: 0.10, gates: 1 }
    }
}

/// The operating point learned in quiet times: what the state file keeps across restarts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// People's attempts per second.
    pub unique_offered_rps: Option<f64>,
    /// Mean rate of the fastest tenth of large responses, bytes/s.
    pub fast_rate_bytes_per_s: Option<f64>,
    /// Mean latency score of the fastest tenth.
    pub fast_score: Option<f64>,
    /// Median latency by body-size bucket, (floor(log2(bytes)), seconds).
    pub latency_by_size_s: alloc::vec::Vec<(u8, f64)>,
}

/// Detector, ceiling and hot-spots of one service.
#[derive(Debug)]
pub struct FlashCrowdPlanner {
    settings: Settings,
    plan: Plan,
    next_plan_at: Instant,
}

impl FlashCrowdPlanner {
    /// A planner that starts from `baseline` (of an earlier run) or, where empty, learns it.
    #[must_use]
    pub fn new(settings: Settings, _baseline: &Baseline) -> Self {
        Self { settings, plan: Plan::open(settings.gates), next_plan_at: Instant::ZERO }
    }

    /// What to keep across a restart.
    #[must_use]
    pub fn baseline(&self) -> Baseline {
        Baseline::default()
    }
}

impl Planner for FlashCrowdPlanner {
    type Sample = Sample;
    type Plan = Plan;

    fn observe(&mut self, _now: Instant, _sample: &Sample) {}

    fn plan(&mut self, now: Instant) -> Plan {
        self.next_plan_at = now + self.settings.interval;
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }
}
