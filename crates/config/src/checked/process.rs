//! Checks `[flash_crowd]`, `[admin]`, `[state]`, `[gateway]` and `[log]`.

use core::num::NonZeroUsize;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Settings};
use flashweir_core::{Instant, limits};

use super::Listen;
use super::address::{collide, socket_address};
use super::name::name;
use super::range::{count_within, duration_within, within};
use crate::error::Problem;
use crate::file::{AdminFile, FlashCrowdFile, FlashCrowdMode, GatewayFile, LogFormat, LogLevel, StateFile};
use crate::overrides::Overrides;
use crate::text::DurationText;

/// The detector and its ceiling.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashCrowd {
    /// Which rules decide.
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

/// The admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Collides with no listen address.
    pub address: SocketAddr,
}

/// What is kept across restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The baseline's file; `None` keeps nothing.
    pub file: Option<PathBuf>,
}

/// This gateway as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Fit for a header field and a metric label: 1 to 63 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// Worker threads, at most [`limits::WORKERS`]; `None` means one for each core.
    pub workers: Option<NonZeroUsize>,
}

/// Messages on standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least important messages shown.
    pub level: LogLevel,
    /// How they are written.
    pub format: LogFormat,
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
    /// What the planner is told, for so many gates that share its ceiling; `None` where detection is off.
    #[must_use]
    pub fn settings(&self, gates: usize) -> Option<Settings> {
        let Self { interval, margin, hot_spots, shadow, .. } = *self;
        Some(Settings { mode: self.mode.planner()?, interval, margin, gates, hot_spots, shadow })
    }
}

/// The planner that a configuration asks for: one for so many gates that starts from what was `learned` earlier; `None`
/// where detection is off.
#[must_use]
pub fn flash_crowd_planner(
    configured: &FlashCrowd,
    gates: usize,
    learned: &Baseline,
    now: Instant,
) -> Option<PlannerDriver<FlashCrowdPlanner>> {
    Some(PlannerDriver::new(FlashCrowdPlanner::new(configured.settings(gates)?, learned), now))
}

impl Admin {
    pub(super) fn check(file: &AdminFile, listen: &Listen) -> Result<Self, Problem> {
        let key = "admin.address";
        let address = socket_address(key, &file.address)?;
        if let Some(other) = listen.addresses.iter().find(|other| collide(**other, address)) {
            return Err(Problem::new(
                key,
                format!("{address} collides with listen.address {other}, expected another port"),
            ));
        }
        Ok(Self { address })
    }
}

impl State {
    /// A file of the configuration is relative to it, one of a flag to the working directory; by default it has
    /// `called` in its name.
    pub(super) fn check(
        file: StateFile,
        directory: &Path,
        overrides: &Overrides,
        called: &str,
    ) -> Result<Self, Problem> {
        let written = overrides.state_file.clone().or_else(|| file.file.map(|path| directory.join(path)));
        if let Some(path) = &written
            && path.file_name().is_none()
        {
            let what =
                format!("`{}` does not name a file, expected one like \"baseline.json\"", path.display());
            return Err(Problem::new("state.file", what));
        }
        let by_default =
            || overrides.state_directory.as_ref().map(|path| path.join(format!("baseline-{called}.json")));
        Ok(Self { file: written.or_else(by_default) })
    }
}

impl Gateway {
    pub(super) fn check(file: GatewayFile) -> Result<Self, Problem> {
        let name = name("gateway.name", file.name)?;
        let workers = count_within("gateway.workers", file.workers, 0, limits::WORKERS as u32)?;
        Ok(Self { name, workers: NonZeroUsize::new(workers) })
    }
}

/// The level a flag names.
pub(super) fn log_level(text: &str) -> Result<LogLevel, Problem> {
    LogLevel::ALL.into_iter().find(|level| level.as_str() == text).ok_or_else(|| {
        Problem::new(
            "log.level",
            format!("`{text}` is not a level, expected error, warn, info, debug or trace"),
        )
    })
}
