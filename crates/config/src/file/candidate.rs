//! `[candidate]`: another policy, beside the one in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClassFile, SentryFile};

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
