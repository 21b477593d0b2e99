//! The planner that a configuration asks for.

use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, PlannerMode, Settings};
use flashweir_config::{FlashCrowd, FlashCrowdMode};

/// One for so many gates that starts from what was `learned` earlier; `None` where detection is off.
#[must_use]
pub fn planner(configured: &FlashCrowd, gates: usize, learned: &Baseline) -> Option<FlashCrowdPlanner> {
    let mode = match configured.mode {
        FlashCrowdMode::Off => return None,
        FlashCrowdMode::Paper => PlannerMode::Paper,
        FlashCrowdMode::Scoreboard => PlannerMode::Scoreboard,
        FlashCrowdMode::Repaired => PlannerMode::Repaired,
    };
    let settings = Settings {
        mode,
        interval: configured.interval,
        margin: configured.margin,
        gates,
        hot_spots: configured.hot_spots,
        shadow: configured.shadow,
    };
    Some(FlashCrowdPlanner::new(settings, learned))
}
