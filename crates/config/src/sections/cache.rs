//! `[cache]`: responses kept in memory and given to others, as far as HTTP allows.

use core::str::FromStr as _;

use http::HeaderName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range::within;
use crate::error::Problem;
use crate::text::SizeText;

/// Responses kept in memory and given to others, as far as HTTP allows (docs/cache.md). A request that the cache answers takes no
/// room at the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheFile {
    /// When it is in use: `"off"` (the default), `"crowd"` (while a crowd is found, for the hosts to which it came; in calm
    /// nothing is stored) or `"always"`.
    /// Example: `mode = "crowd"`.
    pub mode: CacheMode,
    /// Memory of stored responses, over all workers; each worker fills at most its equal part.
    /// Valid: `8MiB` to `65536MiB`. Raised: more memory is used. Lowered: more is fetched again.
    /// Example: `memory = "256MiB"`.
    pub memory: SizeText,
    /// The largest body that is stored. One that is larger is passed on as it comes, to its own request.
    /// Valid: `1KiB` to an eighth of `memory`; what is larger than a worker's part of that is not stored either. Raised: fewer documents fit. Lowered: pictures and
    /// downloads are not stored.
    /// Example: `max_object = "4MiB"`.
    pub max_object: SizeText,
    /// Further fields of requests by which no server behind the gateway chooses its response. The response to a request with a
    /// field that is neither known to be harmless nor named here nor in the response's `Vary` is not stored.
    /// Valid: up to 64 names of fields, but for `authorization`, `cookie`, `range` and `host`.
    /// Example: `request_fields = ["x-real-ip", "cf-ray"]`.
    pub request_fields: Vec<String>,
}

impl Default for CacheFile {
    fn default() -> Self {
        Self {
            // What is private is an origin's to say, and some do not: caching is asked for, not given.
            mode: CacheMode::Off,
            // A crowd wants few documents; this holds a thousand pages with their pictures.
            memory: SizeText(64 << 20),
            // Pages, scripts and pictures; films are not what a crowd reads first.
            max_object: SizeText(1 << 20),
            request_fields: Vec::new(),
        }
    }
}

/// When the cache is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Never.
    Off,
    /// For hosts to which a crowd came, while it is there.
    Crowd,
    /// For all.
    Always,
}

impl CacheMode {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Crowd => "crowd",
            Self::Always => "always",
        }
    }
}

/// Settings of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Mode that says when it is in use.
    pub mode: CacheMode,
    /// Bytes of all stored responses.
    pub memory_bytes: usize,
    /// Bytes of the largest body that is stored.
    pub object_bytes_max: usize,
    /// Further harmless fields of requests.
    pub request_fields: Vec<HeaderName>,
}

/// More names than this are a list of everything.
const FIELDS_MAX: usize = 64;
/// Names that cannot be harmless.
const NEVER_HARMLESS: [&str; 4] = ["authorization", "cookie", "range", "host"];

impl Cache {
    pub(super) fn check(file: &CacheFile) -> Result<Self, Problem> {
        let (memory_min, memory_max) = (SizeText(8 << 20), SizeText(64 << 30));
        let memory = within("cache.memory", file.memory, memory_min, memory_max)?.0;
        let object = within("cache.max_object", file.max_object, SizeText(1 << 10), memory_max)?.0;
        if object > memory / PARTS_MIN {
            let what = format!(
                "{} is more than an eighth of `cache.memory` ({}), expected less of the one or more of the other",
                file.max_object, file.memory
            );
            return Err(Problem::new("cache.max_object", what));
        }
        if file.request_fields.len() > FIELDS_MAX {
            let what = format!("{} names, expected at most {FIELDS_MAX}", file.request_fields.len());
            return Err(Problem::new("cache.request_fields", what));
        }
        let names = file.request_fields.iter().enumerate().map(|(index, text)| {
            let name = HeaderName::from_str(text).ok().filter(|name| !NEVER_HARMLESS.contains(&name.as_str()));
            name.ok_or_else(|| {
                let what = format!("`{text}` is not the name of a field that may be harmless, expected one like \"x-real-ip\"");
                Problem::new(format!("cache.request_fields[{index}]"), what)
            })
        });
        let request_fields = names.collect::<Result<_, _>>()?;
        Ok(Self { mode: file.mode, memory_bytes: memory, object_bytes_max: object, request_fields })
    }
}

/// One response may take an eighth: a store of fewer would let everything go for one.
const PARTS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn cache(toml: &str) -> Result<Cache, String> {
        let config = Config::from_toml(&format!("upstream.urls = ['http://a']\n{toml}"), "test.toml");
        config.map(|config| config.cache).map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_off_unless_it_is_asked_for() {
        assert_eq!(cache("").expect("valid").mode, CacheMode::Off);
        let all = "[cache]\nmode = 'crowd'\nmemory = '16MiB'\nmax_object = '2MiB'\nrequest_fields = ['X-Real-IP']\n";
        let all = cache(all).expect("valid");
        assert_eq!((all.mode, all.memory_bytes, all.object_bytes_max), (CacheMode::Crowd, 16 << 20, 2 << 20));
        assert_eq!(all.request_fields, ["x-real-ip"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (toml, expected) in [
            ("cache.mode = 'on'", "mode"),
            ("cache.memory = '1KiB'", "cache.memory"),
            ("cache.max_object = '9MiB'", "cache.max_object"),
            ("cache.request_fields = ['a b']", "a b"),
            ("cache.request_fields = ['Cookie']", "Cookie"),
            ("[[class]]\nname = 'a'\ngrace = '2m'", "grace"),
        ] {
            let error = cache(toml).expect_err(toml);
            assert!(error.contains(expected) && error.contains("test.toml"), "{toml}: {error}");
        }
    }
}
