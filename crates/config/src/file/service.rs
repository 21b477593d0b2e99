//! `[[service]]`: a service with hosts of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClassFile, OneOrMany, SentryFile, UpstreamFile};

/// A service with hosts of its own: upstream servers, capacity and classes apart from the others'. What is written at
/// the top level (`[upstream]`, `[sentry]`, `[[class]]`) is the service for every other host; nothing is inherited
/// from it. At most 63.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// Name of the service, in metrics and `/status`.
    /// Valid: 1 to 63 letters, digits, `-`, `_` or `.`; each once, and not that of the gateway.
    /// Example: `name = "api"`.
    pub name: String,
    /// Its hosts, without port: names, or `*.` and a name for everything below that. The longest that fits wins. Each
    /// once.
    /// Example: `hosts = ["shop.example", "*.shop.example"]`.
    pub hosts: OneOrMany,
    /// Its servers.
    #[serde(default)]
    pub upstream: UpstreamFile,
    /// How its capacity is given out.
    #[serde(default)]
    pub sentry: SentryFile,
    /// Its classes.
    #[serde(default)]
    pub class: Vec<ClassFile>,
}
