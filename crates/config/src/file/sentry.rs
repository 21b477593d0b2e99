//! `[sentry]`: how capacity is given out, and the response time that is held.

use flashweir_admission::sentry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::DurationText;

/// How the service's capacity is given out, and how fast it is to answer. The capacity itself is learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SentryFile {
    /// How capacity is given out among the classes: `"reservation"` (the default: the more important goes first, and
    /// some room is kept free for it), `"batch"`, `"threshold"` and `"auto"` (as published for Cataclysm, with
    /// repairs; `"auto"` turns from the first to the second when deciding itself gets dear), or `"off"` (classes are
    /// told apart and nobody is refused for the service's capacity).
    /// Example: `policing = "off"` to measure what the gateway alone costs.
    pub policing: Policing,
    /// Answers are to come within this time from the request's arrival: whoever could not be answered in it is
    /// refused. Default: `"1s"`. Instead of it a `ladder` may be written; a class may have its own.
    /// Valid: `10ms` to `1m`. Raised: more people are served, each later. Lowered: more are refused; below what the
    /// service needs for one request alone it cannot be held, and is reported.
    /// Example: `response_target = "500ms"`.
    pub response_target: Option<DurationText>,
    /// Decide and record, but refuse nobody and make nobody wait for the service's capacity: to see what would
    /// happen. Also `--shadow`.
    /// Example: `shadow = true`.
    pub shadow: bool,
    /// Targets by arrival rate, the lowest rate first.
    pub ladder: Vec<LadderStepFile>,
}

/// Targets by arrival rate, the lowest rate first: what was promised for a busy hour need not be what is promised for
/// a quiet one. At most 16 steps; rates must rise and targets not fall, and the last step, without `below`, holds for
/// all higher rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LadderStepFile {
    /// Requests a second, of all classes, below which this step holds. Required in all steps but the last.
    /// Valid: `0.1` to `1000000`. Raised: the stricter target is held into a bigger crowd, and more are refused.
    /// Lowered: the laxer target comes sooner.
    /// Example: `below = 1000`.
    #[serde(default)]
    pub below: Option<f64>,
    /// The target of this step.
    /// Valid: `10ms` to `1m`. Raised and lowered: as the service's own.
    /// Example: `response_target = "3s"`.
    pub response_target: DurationText,
}

/// How capacity is given out among classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policing {
    /// Room in flight is kept for the more important; who waits goes in order of importance.
    // The one that measured best in the simulator, and the only one that works by what is in flight.
    #[default]
    Reservation,
    /// Requests gather for a while and are tested by class and service time.
    Batch,
    /// Classes below a threshold are refused at once.
    Threshold,
    /// `Batch` while deciding costs little, `Threshold` when it costs much.
    Auto,
    /// Classes are told apart, and nobody is refused.
    Off,
}

impl Policing {
    /// The same in the words of the sentry; `None` when nobody is refused.
    #[must_use]
    pub const fn rule(self) -> Option<sentry::Policing> {
        match self {
            Self::Reservation => Some(sentry::Policing::Reservation),
            Self::Batch => Some(sentry::Policing::Batch),
            Self::Threshold => Some(sentry::Policing::Threshold),
            Self::Auto => Some(sentry::Policing::Auto),
            Self::Off => None,
        }
    }

    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reservation => "reservation",
            Self::Batch => "batch",
            Self::Threshold => "threshold",
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}
