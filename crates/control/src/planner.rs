//! The planner that a configuration asks for.

use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, PlannerMode, Settings};
use flashweir_config::{FlashCrowd, FlashCrowdMode};
use flashweir_core::Instant;

/// One for so many gates that starts from what was `learned` earlier; `None` where detection is off.
#[must_use]
pub fn planner(
    configured: &FlashCrowd,
    gates: usize,
    learned: &Baseline,
    now: Instant,
) -> Option<PlannerDriver<FlashCrowdPlanner>> {
    let settings = planner_settings(configured, gates)?;
    Some(PlannerDriver::new(FlashCrowdPlanner::new(settings, learned), now))
}

/// What such a planner is made from; `None` where detection is off.
#[must_use]
pub fn planner_settings(configured: &FlashCrowd, gates: usize) -> Option<Settings> {
    let mode = match configured.mode {
        FlashCrowdMode::Off => return None,
        FlashCrowdMode::Paper => PlannerMode::Paper,
        FlashCrowdMode::Scoreboard => PlannerMode::Scoreboard,
        FlashCrowdMode::Repaired => PlannerMode::Repaired,
    };
    Some(Settings {
        mode,
        interval: configured.interval,
        margin: configured.margin,
        gates,
        hot_spots: configured.hot_spots,
        shadow: configured.shadow,
    })
}
