//! `[flash_crowd]`: the detector and its ceiling.

use super::FlashCrowdCandidateFile;
use crate::checks::word::variant;
use crate::overrides::Overrides;
use core::ops::RangeInclusive;
use core::time::Duration;

use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, PlannerMode, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range::{duration_within, within};
use crate::error::Problem;
use crate::text::DurationText;

/// Detection of flash crowds and the ceiling on admission (NEWS).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlashCrowdFile {
    /// Which rules decide: `"repaired"` (the default), `"paper"` and `"scoreboard"` (the published text and
    /// its authors' code, for comparison; both react in minutes), or `"off"`.
    /// Example: `mode = "off"` to measure what the gateway alone costs.
    pub mode: FlashCrowdMode,
    /// Shortest time between two decisions. Default: 100ms for `"repaired"`, which must act within a second;
    /// 1m for `"paper"` and `"scoreboard"`, as published.
    /// Valid: `10ms` to `5m`. Raised: a crowd is noticed later. Lowered: decisions rest on fewer responses.
    /// Example: `interval = "250ms"`.
    pub interval: Option<DurationText>,
    /// How much worse the fastest responses may get before it counts, as a fraction of the usual; noise of
    /// its own may widen it.
    /// Valid: `0.01` to `0.9`. Raised: a crowd is noticed later and slows people more. Lowered: noise is
    /// mistaken for a crowd.
    /// Example: `margin = 0.2`.
    pub margin: f64,
    /// When one or two hosts draw the crowd, limit only those and let the others pass. Off: one ceiling for
    /// all.
    /// Example: `hot_spots = false`.
    pub hot_spots: bool,
    /// Decide and record, but never refuse because of a crowd: to see what would happen. Also `--shadow`.
    /// Example: `shadow = true`.
    pub shadow: bool,
    /// Other rules, to be compared with those in force.
    pub candidate: Option<FlashCrowdCandidateFile>,
}

impl Default for FlashCrowdFile {
    fn default() -> Self {
        Self {
            mode: FlashCrowdMode::Repaired,
            interval: None,
            // The paper's own choice; the repaired rules widen it by three standard deviations of the signal.
            margin: 0.10,
            // Bystanders should not pay for a neighbour's crowd.
            hot_spots: true,
            shadow: false,
            candidate: None,
        }
    }
}

/// Which rules decide about flash crowds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlashCrowdMode {
    /// No detection and no ceiling; the bounds still hold.
    Off,
    /// The published text.
    Paper,
    /// The order and constants of the authors' simulator code.
    Scoreboard,
    /// Our repairs.
    Repaired,
}

impl FlashCrowdMode {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Paper => "paper",
            Self::Scoreboard => "scoreboard",
            Self::Repaired => "repaired",
        }
    }

    /// The same in the words of the planner; `None` when there is none.
    #[must_use]
    pub const fn planner(self) -> Option<PlannerMode> {
        match self {
            Self::Off => None,
            Self::Paper => Some(PlannerMode::Paper),
            Self::Scoreboard => Some(PlannerMode::Scoreboard),
            Self::Repaired => Some(PlannerMode::Repaired),
        }
    }

    /// The interval when none is written.
    #[must_use]
    pub const fn default_interval(self) -> Duration {
        match self {
            // T of the paper; the authors' code uses the same.
            Self::Paper | Self::Scoreboard => Duration::from_secs(60),
            // Ten decisions within the second in which it must act.
            Self::Repaired | Self::Off => Duration::from_millis(100),
        }
    }
}

/// The detector and its ceiling.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashCrowd {
    /// Rules that decide.
    pub mode: FlashCrowdMode,
    /// Shortest time between two decisions.
    pub interval: Duration,
    /// Tolerated degradation, a fraction from 0.01 to 0.9.
    pub margin: f64,
    /// Limit only the hosts that draw the crowd.
    pub hot_spots: bool,
    /// Decide and record, never refuse because of a crowd.
    pub shadow: bool,
}

impl FlashCrowdFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) -> Result<(), Problem> {
        if let Some(mode) = &overrides.mode {
            self.mode = variant("flash_crowd.mode", mode)?;
        }
        self.shadow |= overrides.shadow;
        Ok(())
    }
}

/// The shortest and the longest time between two decisions that may be asked for.
const INTERVALS: (DurationText, DurationText) = (DurationText::from_millis(10), DurationText::from_secs(300));

impl FlashCrowd {
    /// The shortest and the longest interval there may be.
    pub const INTERVALS: RangeInclusive<Duration> = INTERVALS.0.0..=INTERVALS.1.0;

    pub(super) fn check(file: &FlashCrowdFile) -> Result<Self, Problem> {
        Ok(Self {
            mode: file.mode,
            interval: duration_within(
                "flash_crowd.interval",
                file.interval.unwrap_or_else(|| DurationText(file.mode.default_interval())),
                INTERVALS.0,
                INTERVALS.1,
            )?,
            margin: within("flash_crowd.margin", file.margin, 0.01, 0.9)?,
            hot_spots: file.hot_spots,
            shadow: file.shadow,
        })
    }
}

impl FlashCrowd {
    /// Settings of the planner, for `gates` gates that share its ceiling; `None` where detection is off.
    #[must_use]
    pub fn settings(&self, gates: usize) -> Option<Settings> {
        let Self { interval, margin, hot_spots, shadow, .. } = *self;
        Some(Settings { mode: self.mode.planner()?, interval, margin, gates, hot_spots, shadow })
    }
}

/// The planner that a configuration asks for: one for `gates` gates that starts from what was `learned` earlier; `None`
/// where detection is off.
#[must_use]
pub fn flash_crowd_planner(
    configured: &FlashCrowd,
    gates: usize,
    learned: &Baseline,
) -> Option<FlashCrowdPlanner> {
    Some(FlashCrowdPlanner::new(configured.settings(gates)?, learned))
}
