//! Admission of requests, from the file.

use crate::scenario::file::{ClassFile, ControllerFile, ControllerMode};
use crate::scenario::packet_file::ControllerPlace;
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::text::{Text, Time};
use flashweir_admission::flash_crowd::{Baseline, Settings};
use flashweir_config::{FlashCrowd, FlashCrowdMode};
use flashweir_core::limits::WORKERS;
use flashweir_core::{Duration, Rate};
use flashweir_sim::request::{FlashCrowdPolicy, PipelinePolicy, Policy};

impl ControllerFile {
    /// The policy of the gate before the server, which admits every request if the controller is at a router.
    pub(crate) fn policy(&self, classes: &[ClassFile]) -> Result<Policy, Problem> {
        if self.at == ControllerPlace::Router {
            return Ok(Policy::None);
        }
        // The settings are checked in every mode.
        let flash_crowd = self.flash_crowd(self.mode.flash_crowd())?;
        let bucket = self.bucket()?;
        let sentry = self.sentry(classes)?;
        match self.mode {
            ControllerMode::Static => match bucket {
                Some(policy) => Ok(policy),
                None => wrong("controller.rate", "missing: mode \"static\" needs one"),
            },
            ControllerMode::Sentry => Ok(Policy::sentry(sentry)),
            ControllerMode::Default => {
                Ok(Policy::Pipeline(PipelinePolicy { flash_crowd, sentry: Some(sentry) }))
            }
            _ => Ok(flash_crowd.map_or(Policy::None, Policy::flash_crowd)),
        }
    }

    fn bucket(&self) -> Result<Option<Policy>, Problem> {
        let Some(rate) = self.static_rate()? else { return Ok(None) };
        // A second's worth, as the comparisons of the NEWS paper have it.
        let burst = self.burst.unwrap_or(rate.ceil() as u64);
        if burst == 0 {
            return wrong("controller.burst", "expected at least 1, or no request would ever be admitted");
        }
        Ok(Some(Policy::StaticRate { rate: Rate::from_per_second(rate), burst }))
    }

    /// The rate of a token bucket, wherever it is; a second.
    pub(crate) fn static_rate(&self) -> Result<Option<f64>, Problem> {
        let within_bounds = |rate| within("controller.rate", rate, 0.001, Rate::MAX.per_second());
        self.rate.map(within_bounds).transpose()
    }

    /// NEWS by these rules; `None` where they are off.
    fn flash_crowd(&self, mode: FlashCrowdMode) -> Result<Option<FlashCrowdPolicy>, Problem> {
        let usual = Settings::default();
        let interval = match self.interval {
            Some(Text(Time(interval))) if !FlashCrowd::INTERVALS.contains(&interval) => {
                return wrong("controller.interval", "expected 10ms to 5m");
            }
            Some(Text(Time(interval))) => interval,
            None => mode.default_interval(),
        };
        let gates = self.gates.unwrap_or(usual.gates);
        if gates == 0 || gates > WORKERS {
            return wrong("controller.gates", format!("{gates} is out of range: expected 1 to {WORKERS}"));
        }
        let margin = within("controller.margin", self.margin.unwrap_or(usual.margin), 0.01, 0.9)?;
        let hot_spots = self.hot_spots.unwrap_or(usual.hot_spots);
        let settings = FlashCrowd { mode, interval, margin, hot_spots, shadow: self.shadow }.settings(gates);
        let first_tick = self.first_tick.map_or(Duration::ZERO, |Text(Time(time))| time);
        Ok(settings.map(|settings| FlashCrowdPolicy { settings, baseline: Baseline::default(), first_tick }))
    }
}

impl ControllerMode {
    /// Returns whether fairness among clients is one of its rules.
    pub(crate) fn compares_clients(self) -> bool {
        self == Self::Default
    }

    /// Rules that decide about flash crowds.
    pub(crate) fn flash_crowd(self) -> FlashCrowdMode {
        match self {
            Self::Repaired | Self::Default => FlashCrowdMode::Repaired,
            Self::Paper => FlashCrowdMode::Paper,
            Self::Scoreboard => FlashCrowdMode::Scoreboard,
            Self::None | Self::Static | Self::Sentry => FlashCrowdMode::Off,
        }
    }
}
