//! Settings: a target, and classes where requests differ in worth.

use flashweir_admission::sentry::{ClassPolicy, Policy};
use flashweir_core::Rate;
use flashweir_core::limits::CLASSES;
use std::time::Duration;

/// Settings of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Responses are to end within this time of their request's arrival; more than zero.
    pub target: Duration,
    /// Classes, one at least. A class is named by its place in this list.
    pub classes: Vec<Class>,
}

/// A class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Name, for refusals and status.
    pub name: String,
    /// Worth of a response in time, relative to other classes; more than zero. Classes worth more go first.
    pub revenue: f64,
    /// Requests a second that are admitted at any load, as far as the service can serve the guarantees of all
    /// classes.
    pub guaranteed_rps: f64,
    /// Target of this class where it is not that of all.
    pub target: Option<Duration>,
}

/// Settings that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The target of a class, or of all, is zero.
    #[error("{of}: the target must be more than zero")]
    ZeroTarget {
        /// `settings`, or the class's name.
        of: String,
    },
    /// There is no class, or there are too many.
    #[error("settings: 1 to {CLASSES} classes are possible, not {count}")]
    ClassCount {
        /// Number of classes.
        count: usize,
    },
    /// The revenue is not a positive number.
    #[error("class {name}: the revenue must be a finite number greater than 0 (is {revenue})")]
    Revenue {
        /// Name of the class.
        name: String,
        /// Its revenue.
        revenue: f64,
    },
    /// The guaranteed rate is not a number from 0 on.
    #[error(
        "class {name}: the guaranteed rate must be a finite number of requests a second, 0 or more (is {rps})"
    )]
    GuaranteedRate {
        /// Name of the class.
        name: String,
        /// Its rate.
        rps: f64,
    },
}

impl Settings {
    /// One class, named `default`.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        Self { target, classes: vec![Class::new("default", 1.0)] }
    }

    /// Policy of the gate.
    ///
    /// # Errors
    /// [`SettingsError`] names the first setting that makes no sense.
    pub(crate) fn policy(&self) -> Result<Policy, SettingsError> {
        let is_zero = |target: &Duration| target.is_zero();
        if is_zero(&self.target) {
            return Err(SettingsError::ZeroTarget { of: "settings".to_owned() });
        }
        if self.classes.is_empty() || self.classes.len() > CLASSES {
            return Err(SettingsError::ClassCount { count: self.classes.len() });
        }
        let classes = self.classes.iter().map(Class::policy).collect::<Result<_, _>>()?;
        Ok(Policy { classes, ..Policy::single(self.target) })
    }
}

impl Class {
    /// A class without a guarantee, under the target of all.
    #[must_use]
    pub fn new(name: &str, revenue: f64) -> Self {
        Self { name: name.to_owned(), revenue, guaranteed_rps: 0.0, target: None }
    }

    fn policy(&self) -> Result<ClassPolicy, SettingsError> {
        let name = || self.name.clone();
        if !(self.revenue.is_finite() && self.revenue > 0.0) {
            return Err(SettingsError::Revenue { name: name(), revenue: self.revenue });
        }
        if !(self.guaranteed_rps.is_finite() && self.guaranteed_rps >= 0.0) {
            return Err(SettingsError::GuaranteedRate { name: name(), rps: self.guaranteed_rps });
        }
        if self.target.is_some_and(|target| target.is_zero()) {
            return Err(SettingsError::ZeroTarget { of: format!("class {}", self.name) });
        }
        Ok(ClassPolicy {
            revenue: self.revenue,
            guaranteed_rate: Rate::from_per_second(self.guaranteed_rps),
            target: self.target,
            queue: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let error = |change: fn(&mut Settings)| {
            let mut settings = Settings::new(Duration::from_secs(1));
            change(&mut settings);
            settings.policy().expect_err("no sense").to_string()
        };
        assert_eq!(error(|it| it.target = Duration::ZERO), "settings: the target must be more than zero");
        assert_eq!(
            error(|it| it.classes[0].target = Some(Duration::ZERO)),
            "class default: the target must be more than zero"
        );
        assert_eq!(error(|it| it.classes.clear()), "settings: 1 to 16 classes are possible, not 0");
        let many = error(|it| it.classes = vec![Class::new("one of many", 1.0); 17]);
        assert_eq!(many, "settings: 1 to 16 classes are possible, not 17");
        let no_revenue = "class default: the revenue must be a finite number greater than 0 (is NaN)";
        assert_eq!(error(|it| it.classes[0].revenue = f64::NAN), no_revenue);
        assert!(error(|it| it.classes[0].guaranteed_rps = -1.0).contains("0 or more (is -1)"));
        assert!(Settings::new(Duration::from_millis(1)).policy().is_ok());
    }
}
