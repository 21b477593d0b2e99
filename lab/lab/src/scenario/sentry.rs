//! The sentry's policy, from what was written of the controller and of the classes.

use crate::scenario::file::{ClassFile, ControllerFile, LadderStepFile};
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::text::{Text, Time};
use flashweir_admission::sentry::{ClassPolicy, LadderStep, Learning, Policy};
use flashweir_core::limits::{CLASSES, REQUESTS_HELD, WORKERS};
use flashweir_core::{Duration, Rate};
use flashweir_sim::request::SentryPolicy;
use std::sync::Arc;

/// Policy class of each class: its own, or that of the class it names.
pub(crate) fn policy_classes(classes: &[ClassFile]) -> Result<Vec<u8>, Problem> {
    let own: Vec<&str> = owners(classes).map(|class| class.name.as_str()).collect();
    let place = |(index, class): (usize, &ClassFile)| {
        let name = class.policy_class.as_deref().unwrap_or(&class.name);
        // A scenario has at most SCENARIO_CLASSES.
        match own.iter().position(|owner| *owner == name) {
            Some(place) => Ok(place as u8),
            None => wrong(
                format!("class[{index}].policy_class"),
                format!("there is no class \"{name}\" with its own policy"),
            ),
        }
    };
    classes.iter().enumerate().map(place).collect()
}

/// Revenue of a class's goodput, for each class.
pub(crate) fn revenues(classes: &[ClassFile], policy_classes: &[u8]) -> Vec<f64> {
    let own: Vec<f64> = owners(classes).map(|class| class.revenue.unwrap_or(1.0)).collect();
    policy_classes.iter().map(|&place| own[usize::from(place)]).collect()
}

impl ControllerFile {
    /// The sentry that is described, in every mode.
    pub(crate) fn sentry(&self, classes: &[ClassFile]) -> Result<SentryPolicy, Problem> {
        let policies =
            classes.iter().enumerate().map(|(index, class)| class.policy(&format!("class[{index}]")));
        let policies = policies.collect::<Result<Vec<_>, _>>()?;
        let own = policies.into_iter().flatten().collect::<Vec<_>>();
        if own.len() > CLASSES {
            let problem = format!("{} classes with policies of their own, at most {CLASSES}", own.len());
            return wrong("class", format!("{problem}: policy_class puts several together"));
        }
        if self.gates == Some(0) || self.gates > Some(WORKERS) {
            return wrong("controller.gates", format!("expected 1 to {WORKERS}"));
        }
        let target = match self.target {
            Some(Text(target)) => checked_target("controller.target", target)?,
            None => TARGET_USUAL,
        };
        let Some(policing) = self.policing.unwrap_or_default().rule() else {
            return wrong("controller.policing", "\"off\" refuses nobody: expected mode = \"none\" for that");
        };
        let policy =
            Policy { classes: own, policing, ladder: ladder(&self.ladder)?, ..Policy::single(target) };
        Ok(SentryPolicy {
            workers: self.gates.unwrap_or(1),
            policy: Arc::new(policy),
            known_limits: Vec::new(),
            decision_time: self.decision_time.map_or(Duration::ZERO, |Text(Time(time))| time),
            learning: Box::new(Learning::SHIPPED),
        })
    }
}

impl ClassFile {
    /// Its own policy, unless it has another class's.
    fn policy(&self, key: &str) -> Result<Option<ClassPolicy>, Problem> {
        let at = |name: &str| format!("{key}.{name}");
        let written = [
            ("revenue", self.revenue.is_some()),
            ("guaranteed_rate", self.guaranteed_rate.is_some()),
            ("response_target", self.response_target.is_some()),
            ("queue", self.queue.is_some()),
        ];
        if let Some(owner) = self.policy_class.as_ref().filter(|owner| **owner != self.name) {
            return match written.into_iter().find(|(_, is_written)| *is_written) {
                Some((name, _)) => wrong(at(name), format!("it is \"{owner}\" that says so")),
                None => Ok(None),
            };
        }
        let revenue = within(at("revenue"), self.revenue.unwrap_or(1.0), 1e-9, 1e9)?;
        let rate =
            within(at("guaranteed_rate"), self.guaranteed_rate.unwrap_or(0.0), 0.0, Rate::MAX.per_second())?;
        if self.queue.is_some_and(|queue| queue as usize > REQUESTS_HELD) {
            return wrong(at("queue"), format!("at most {REQUESTS_HELD} wait"));
        }
        let target = self.response_target.map(|Text(target)| checked_target(&at("response_target"), target));
        Ok(Some(ClassPolicy {
            revenue,
            guaranteed_rate: Rate::from_per_second(rate),
            target: target.transpose()?,
            queue: self.queue,
        }))
    }
}

/// Classes with their own policy, in the order of the policy.
fn owners(classes: &[ClassFile]) -> impl Iterator<Item = &ClassFile> {
    classes.iter().filter(|class| class.policy_class.as_ref().is_none_or(|owner| *owner == class.name))
}

fn ladder(files: &[LadderStepFile]) -> Result<Vec<LadderStep>, Problem> {
    let mut steps: Vec<LadderStep> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let at = |name: &str| format!("controller.ladder[{index}].{name}");
        let is_last = index + 1 == files.len();
        let below_rps = match file.below {
            None if is_last => f64::INFINITY,
            Some(_) if is_last => return wrong(at("below"), "the last step has no end"),
            None => return wrong(at("below"), "missing: only the last step has no end"),
            Some(below) => within(at("below"), below, 0.001, Rate::MAX.per_second())?,
        };
        if steps.last().is_some_and(|before| before.below_rps >= below_rps) {
            return wrong(at("below"), "expected more than in the step before");
        }
        let target = checked_target(&at("response_target"), file.response_target.0)?;
        steps.push(LadderStep { below_rps, target });
    }
    Ok(steps)
}

fn checked_target(key: &str, Time(target): Time) -> Result<Duration, Problem> {
    if (TARGET_LEAST..=TARGET_MOST).contains(&target) {
        return Ok(target);
    }
    wrong(key, "expected 10ms to 1m")
}

/// No person waits for a page longer than a minute, and a network alone takes 10 ms.
const TARGET_LEAST: Duration = Duration::from_millis(10);
const TARGET_MOST: Duration = Duration::from_secs(60);
/// Time within which an answer is goodput, if a class does not say so.
const TARGET_USUAL: Duration = Duration::from_secs(1);
