//! Controllers of new connections, and their settings.

use flashweir_admission::flash_crowd::PlannerMode;
use flashweir_core::{Duration, Rate};

/// A router's controller and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSettings {
    /// Controller of new connections.
    pub controller: Controller,
    /// Time between two looks at the responses, and two decisions (T of the paper).
    pub interval: Duration,
    /// Reading of the rates for the planner.
    pub reading: Reading,
    /// True if NEWS distinguishes a hot server from the ones beside it and limits that one alone (§5.2); else
    /// it limits all that it guards.
    pub hot_spots: bool,
}

impl Default for RouterSettings {
    /// No controller, and responses are read once a minute.
    fn default() -> Self {
        Self {
            controller: Controller::None,
            interval: Duration::from_secs(60),
            reading: Reading::AsPublished,
            hot_spots: false,
        }
    }
}

/// Controller of new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Admits all.
    None,
    /// A token bucket of a fixed rate.
    Static(Rate),
    /// NEWS by these rules.
    News(PlannerMode),
}

/// Reading of the rate of a response for the planner. The outcome has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// RFC 2859's time sliding window, from zero, never aged: short responses read as their size per second.
    AsPublished,
    /// Bytes over elapsed time in the first second; aged by silence while the response goes on (flaw N-1).
    Corrected,
}

impl Reading {
    /// The reading that goes with a planner's rules: the published rules were made for the published reading.
    #[must_use]
    pub const fn usual_for(mode: PlannerMode) -> Self {
        match mode {
            PlannerMode::Paper | PlannerMode::Scoreboard => Self::AsPublished,
            PlannerMode::Repaired => Self::Corrected,
        }
    }
}
