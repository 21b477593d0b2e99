//! Checks `[sentry]`.

use core::time::Duration;

use flashweir_admission::sentry::{self, ClassPolicy, Policy};
use flashweir_core::limits::LADDER_STEPS;

use super::range::{duration_within, within};
use crate::error::Problem;
use crate::file::{LadderStepFile, Policing, SentryFile};
use crate::text::DurationText;

/// How a service's capacity is given out, and how fast it is to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentry {
    /// How capacity is given out.
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
/// Nobody waits longer.
pub(super) const TARGET_LONGEST: DurationText = DurationText::from_secs(60);
/// What people take for an answer at once.
const TARGET: DurationText = DurationText::from_secs(1);

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
    /// What a sentry is to do for these classes; `None` where it is off.
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
