//! `[sentry]`: how capacity is given out, and the response time that is held.

use crate::overrides::Overrides;
use core::time::Duration;

use flashweir_admission::sentry::{self, ClassPolicy, Policy};
use flashweir_core::limits::LADDER_STEPS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range::{duration_within, within};
use crate::error::Problem;
use crate::text::DurationText;

/// How the service's capacity is given out, and how fast it is to answer. The capacity itself is learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SentryFile {
    /// How capacity is given out among the classes: `"reservation"` (the default: the more important goes first, and
    /// some room is kept free for it), or `"off"` (classes are distinguished and no request is refused for the service's
    /// capacity).
    /// Example: `policing = "off"` to measure what the gateway alone costs.
    pub policing: Policing,
    /// Answers are to come within this time from the request's arrival: a request that could not be answered in it is
    /// refused. Default: `"1s"`. Instead of it a `ladder` may be written; a class may have its own.
    /// Valid: `10ms` to `1m`. Raised: more people are served, each later. Lowered: more are refused; below what the
    /// service needs for one request alone it cannot be held, and is reported.
    /// Example: `response_target = "500ms"`.
    pub response_target: Option<DurationText>,
    /// Decide and record, but refuse no request and make none wait for the service's capacity: to see what would
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
    // The one that measured best in the simulator, and the only one that works by what is in flight; the simulator has the paper's own two.
    #[default]
    Reservation,
    /// Classes are distinguished, and no request is refused.
    Off,
}

impl Policing {
    /// The same in the words of the sentry; `None` when no request is refused.
    #[must_use]
    pub const fn rule(self) -> Option<sentry::Policing> {
        match self {
            Self::Reservation => Some(sentry::Policing::Reservation),
            Self::Off => None,
        }
    }

    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reservation => "reservation",
            Self::Off => "off",
        }
    }
}

/// Distribution of a service's capacity, and its latency target.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentry {
    /// Distribution of capacity.
    pub policing: Policing,
    /// Answers are to come within this time, where neither class nor ladder says otherwise.
    pub response_target: Duration,
    /// Decide and record, never act.
    pub shadow: bool,
    /// Targets by arrival rate: rates rising, targets not falling, the last for all higher rates; empty for one target.
    pub ladder: Vec<LadderStep>,
}

/// One step of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadderStep {
    /// Below this arrival rate; infinite in the last step.
    pub below_rps: f64,
    /// The target.
    pub response_target: Duration,
}

/// Shorter than a look of the planner and the timers of common systems nothing can be held.
pub(super) const TARGET_SHORTEST: DurationText = DurationText::from_millis(10);
/// Maximum of a target.
pub(super) const TARGET_LONGEST: DurationText = DurationText::from_secs(60);
/// Time that people take for an answer at once.
const TARGET: DurationText = DurationText::from_secs(1);

impl SentryFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        self.shadow |= overrides.shadow;
    }
}

impl Sentry {
    pub(super) fn check(file: &SentryFile) -> Result<Self, Problem> {
        let key = "sentry.response_target";
        if file.response_target.is_some() && !file.ladder.is_empty() {
            return Err(Problem::new(key, "has no use beside sentry.ladder, expected one of the two"));
        }
        let target = file.response_target.unwrap_or(TARGET);
        Ok(Self {
            policing: file.policing,
            response_target: duration_within(key, target, TARGET_SHORTEST, TARGET_LONGEST)?,
            shadow: file.shadow,
            ladder: check_ladder(&file.ladder)?,
        })
    }
}

impl Sentry {
    /// Policy of a sentry for these classes; `None` where it is off.
    #[must_use]
    pub fn policy(&self, classes: impl IntoIterator<Item = impl Into<ClassPolicy>>) -> Option<Policy> {
        let step = |step: &LadderStep| sentry::LadderStep {
            below_rps: step.below_rps,
            target: step.response_target,
        };
        Some(Policy {
            classes: classes.into_iter().map(Into::into).collect(),
            policing: self.policing.rule()?,
            ladder: self.ladder.iter().map(step).collect(),
            ..Policy::single(self.response_target)
        })
    }
}

fn check_ladder(files: &[LadderStepFile]) -> Result<Vec<LadderStep>, Problem> {
    if files.len() > LADDER_STEPS {
        return Err(Problem::new(
            "sentry.ladder",
            format!("{} steps, expected at most {LADDER_STEPS}", files.len()),
        ));
    }
    let mut steps: Vec<LadderStep> = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let at = |key: &str| format!("sentry.ladder[{index}].{key}");
        let is_last = index + 1 == files.len();
        let below_rps = match file.below {
            Some(rate) if !is_last => within(&at("below"), rate, 0.1, 1e6)?,
            None if is_last => f64::INFINITY,
            Some(_) => {
                return Err(Problem::new(
                    at("below"),
                    "the last step holds for all higher rates, expected none",
                ));
            }
            None => {
                return Err(Problem::new(at("below"), "missing, expected a rate in every step but the last"));
            }
        };
        let response_target =
            duration_within(&at("response_target"), file.response_target, TARGET_SHORTEST, TARGET_LONGEST)?;
        if let Some(before) = steps.last() {
            if below_rps <= before.below_rps {
                let what = format!("{below_rps} does not rise, expected more than {}", before.below_rps);
                return Err(Problem::new(at("below"), what));
            }
            if response_target < before.response_target {
                let (target, before) = (file.response_target, DurationText(before.response_target));
                let what = format!("{target} falls with a rising rate, expected at least {before}");
                return Err(Problem::new(at("response_target"), what));
            }
        }
        steps.push(LadderStep { below_rps, response_target });
    }
    Ok(steps)
}
