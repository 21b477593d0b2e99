//! Settings of the flash-crowd planner, and its memory across restarts.

use alloc::vec::Vec;
use flashweir_core::Duration;

/// Rules that decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlannerMode {
    /// The paper's text: one alarm, averages with switching memory (NEWS §4.2, §6.3).
    Paper,
    /// The order and constants of the authors' simulator code: two latched alarms, one memory.
    Scoreboard,
    /// Our repairs (docs/algorithms/news.md).
    #[default]
    Repaired,
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Rules that decide.
    pub mode: PlannerMode,
    /// Shortest time between two decisions (T of the paper).
    pub interval: Duration,
    /// Tolerated degradation (delta of the paper), a fraction between 0 and 1.
    pub margin: f64,
    /// Number of gates that share the ceiling.
    pub gates: usize,
    /// Limit only the hosts the crowd went to, where they can be identified.
    pub hot_spots: bool,
    /// The plan is recorded but not acted on, so a ceiling cannot be judged by its effect: it stays as
    /// raised.
    pub shadow: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: PlannerMode::Repaired,
            interval: Duration::from_millis(100),
            margin: 0.10,
            gates: 1,
            hot_spots: true,
            shadow: false,
        }
    }
}

/// The operating point learned in quiet times: what the state file keeps, so that a gateway restarted inside
/// a crowd does not take the crowd for the usual (flaw N-5 in docs/algorithms/news.md).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// People's attempts per second.
    pub unique_offered_rps: Option<f64>,
    /// Mean rate of the fastest tenth of large responses, bytes/s.
    pub fast_rate_bytes_per_s: Option<f64>,
    /// Mean latency score of the fastest tenth.
    pub fast_score: Option<f64>,
    /// Median latency by latency class (a hash of URL class and body size below
    /// [`URL_CLASSES`](flashweir_core::limits::URL_CLASSES)), in seconds; trained classes only.
    pub latency_by_class_s: Vec<(u16, f64)>,
}
