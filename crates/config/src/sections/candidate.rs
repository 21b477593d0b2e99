//! `[candidate]`: another policy, beside the one in force.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::{Class, check_classes};
use super::sentry::Sentry;
use super::{ClassFile, Policing, SentryFile};
use crate::error::Problem;

/// Another policy for the service, evaluated on the requests that really come, beside the policy in force: what it
/// would have let in and refused is counted, and changes nothing. What is left out, `sentry` or `class`, is taken to be as
/// in the policy in force. Not for a service whose `sentry.policing` is `"off"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CandidateFile {
    /// How capacity would be given out, and how fast the service would be to answer; without `shadow`, and not `"off"`.
    pub sentry: Option<SentryFile>,
    /// A class of requests as it would be.
    pub class: Vec<ClassFile>,
}

/// A policy that is evaluated beside the one in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Distribution of capacity under the candidate; never `shadow`, never [`Policing::Off`].
    pub sentry: Sentry,
    /// The classes, the last without rules.
    pub classes: Vec<Class>,
}

impl Candidate {
    /// `live` and `classes` are the policy in force: what the candidate leaves out.
    pub(super) fn check(
        file: CandidateFile,
        live: &Sentry,
        classes: &[Class],
        directory: &Path,
    ) -> Result<Self, Problem> {
        let at = |problem: Problem| Problem { key: format!("candidate.{}", problem.key), what: problem.what };
        if live.policing == Policing::Off {
            let what = "cannot be evaluated where sentry.policing is \"off\", because nothing is learned there, \
                        expected sentry.shadow = true instead";
            return Err(Problem::new("candidate", what));
        }
        if file.sentry.is_none() && file.class.is_empty() {
            let what = "is the policy in force, expected `sentry` or `class`";
            return Err(Problem::new("candidate", what));
        }
        let sentry = match &file.sentry {
            Some(file) => check_sentry(file).map_err(at)?,
            None => Sentry { shadow: false, ..live.clone() },
        };
        let classes = if file.class.is_empty() {
            classes.to_vec()
        } else {
            check_classes(file.class, directory).map_err(at)?
        };
        Ok(Self { sentry, classes })
    }
}

fn check_sentry(file: &SentryFile) -> Result<Sentry, Problem> {
    if file.shadow {
        return Err(Problem::new(
            "sentry.shadow",
            "has no use in a candidate, which never refuses a request",
        ));
    }
    if file.policing == Policing::Off {
        let what = "a candidate that is \"off\" lets everybody in, expected a way to decide";
        return Err(Problem::new("sentry.policing", what));
    }
    Sentry::check(file)
}
