//! `[[service]]`: a service with hosts of its own.

use core::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{CandidateFile, ClassFile, OneOrMany, SentryFile, UpstreamFile};

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
    /// Another policy for it, to be compared with the one in force.
    #[serde(default)]
    pub candidate: Option<CandidateFile>,
}

/// Reads the list of services. Of a table `[service]`, which is what `[gateway]` once was, it says so.
pub(super) fn services<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ServiceFile>, D::Error> {
    deserializer.deserialize_any(ServicesVisitor)
}

struct ServicesVisitor;

impl<'de> Visitor<'de> for ServicesVisitor {
    type Value = Vec<ServiceFile>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one `[[service]]` or several")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, _table: A) -> Result<Self::Value, A::Error> {
        Err(A::Error::custom(
            "is a table, expected `[gateway]` for the gateway's name and workers, or `[[service]]` for a service with \
             hosts of its own",
        ))
    }
}
