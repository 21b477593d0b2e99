//! `[[service]]`: a service with its own hosts.

use core::fmt;
use std::path::Path;

use flashweir_core::limits::{HOST_BYTES, SERVICE_PATHS, SERVICES};
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::candidate::Candidate;
use super::class::{Class, Glob, check_classes, path_glob};
use super::{CandidateFile, ClassFile, File, Listen, Sentry, SentryFile, Upstream, UpstreamFile};
use crate::checks::name::name;
use crate::error::Problem;
use crate::one_or_many::OneOrMany;
use crate::overrides::Overrides;

/// A service with its own hosts: upstream servers, capacity and classes separate from the others'. What is written at
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
    /// once, but for services with different `paths`.
    /// Example: `hosts = ["shop.example", "*.shop.example"]`.
    pub hosts: OneOrMany,
    /// Its paths at those hosts. One that ends in `/` takes everything below it, any other only itself; the
    /// longest that fits wins. A request's path is compared as in `match.path` of a class, and passed on
    /// unchanged. Left out: every path that no other service has at the same host. Where none of a host's
    /// services has the path, the next wider `*.` host counts, then the service of the top level.
    /// Valid: at most 256 paths, of all services together.
    /// Example: `paths = ["/api/", "/login"]`.
    #[serde(default)]
    pub paths: Option<OneOrMany>,
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

/// A service that is protected: its hosts, its servers and its policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Fit for a header field and a metric label; each once.
    pub name: String,
    /// Its hosts, each once over all services with the same path or none; none for the service that has all
    /// others.
    pub hosts: Vec<HostPattern>,
    /// Its paths at those hosts, without patterns; none if it has all that no other service has there.
    pub paths: Vec<Glob>,
    /// Its servers.
    pub upstream: Upstream,
    /// Distribution of its capacity.
    pub sentry: Sentry,
    /// 1 to [`CLASSES`](flashweir_core::limits::CLASSES); the last has no rules, so that every request has a class.
    pub classes: Vec<Class>,
    /// Another policy, evaluated beside that one.
    pub candidate: Option<Candidate>,
}

/// A host, or all hosts below one; in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This host.
    Exact(Box<str>),
    /// Every host below this one, itself not included.
    Below(Box<str>),
}

/// The parts of a service in the file.
pub(super) struct Written {
    pub(super) upstream: UpstreamFile,
    pub(super) sentry: SentryFile,
    pub(super) class: Vec<ClassFile>,
    pub(super) candidate: Option<CandidateFile>,
}

impl Service {
    /// Its paths as they were written.
    pub fn written_paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(written)
    }

    /// The service of the top level, if there is one, then the others. `gateway` is the name of the first, and of no
    /// other.
    pub(super) fn check_all(
        gateway: &str,
        first: Option<Written>,
        files: Vec<ServiceFile>,
        directory: &Path,
        listen: &Listen,
    ) -> Result<Vec<Self>, Problem> {
        if files.len() >= SERVICES {
            let what = format!("{} services, expected at most {}", files.len(), SERVICES - 1);
            return Err(Problem::new("service", what));
        }
        let mut services = Vec::with_capacity(files.len() + 1);
        if let Some(first) = first {
            let nowhere = (Vec::new(), Vec::new());
            services.push(Self::check(gateway.to_owned(), nowhere, first, directory, listen)?);
        }
        for (index, file) in files.into_iter().enumerate() {
            let at =
                |problem: Problem| Problem { key: format!("service[{index}].{}", problem.key), ..problem };
            let name = name("name", file.name).map_err(at)?;
            if name == gateway || services.iter().any(|other: &Self| other.name == name) {
                let what = format!("`{name}` is the name of another service, expected different ones");
                return Err(at(Problem::new("name", what)));
            }
            let paths = check_paths(file.paths).map_err(at)?;
            let hosts = check_hosts(&name, &file.hosts.0, &paths, &services).map_err(at)?;
            let written = Written {
                upstream: file.upstream,
                sentry: file.sentry,
                class: file.class,
                candidate: file.candidate,
            };
            services.push(Self::check(name, (hosts, paths), written, directory, listen).map_err(at)?);
        }
        let paths: usize = services.iter().map(|service| service.paths.len()).sum();
        if paths > SERVICE_PATHS {
            let what = format!("{paths} paths of all services, expected at most {SERVICE_PATHS}");
            return Err(Problem::new("service", what));
        }
        Ok(services)
    }

    fn check(
        name: String,
        (hosts, paths): (Vec<HostPattern>, Vec<Glob>),
        written: Written,
        directory: &Path,
        listen: &Listen,
    ) -> Result<Self, Problem> {
        let upstream = Upstream::check(written.upstream, directory, listen)?;
        let sentry = Sentry::check(&written.sentry)?;
        let classes = check_classes(written.class, directory)?;
        let candidate = written.candidate.map(|file| Candidate::check(file, &sentry, &classes, directory));
        Ok(Self { name, hosts, paths, upstream, candidate: candidate.transpose()?, sentry, classes })
    }
}

/// Paths without patterns: of two that fit a request, one is longer.
fn check_paths(texts: Option<OneOrMany>) -> Result<Vec<Glob>, Problem> {
    let Some(OneOrMany(texts)) = texts else { return Ok(Vec::new()) };
    const EXPECTED: &str = "a path like \"/api/\" or \"/login\"";
    if texts.is_empty() {
        return Err(Problem::new("paths", format!("the list is empty, expected {EXPECTED}")));
    }
    let mut paths = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let key = if texts.len() == 1 { "paths".to_owned() } else { format!("paths[{index}]") };
        if text.contains('*') {
            return Err(Problem::new(key, format!("`{text}` is a pattern, expected {EXPECTED}")));
        }
        let path = path_glob(&key, text, EXPECTED)?;
        if paths.contains(&path) {
            return Err(Problem::new(key, format!("`{text}` is listed twice, expected different ones")));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// A path as it was written.
fn written(path: &Glob) -> &str {
    path.as_str().trim_end_matches('*')
}

fn check_hosts(
    name: &str,
    texts: &[String],
    paths: &[Glob],
    services: &[Service],
) -> Result<Vec<HostPattern>, Problem> {
    if texts.is_empty() {
        return Err(Problem::new("hosts", "the list is empty, expected at least one host"));
    }
    let mut hosts = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let key = if texts.len() == 1 { "hosts".to_owned() } else { format!("hosts[{index}]") };
        let host = host_pattern(text).ok_or_else(|| {
            let what = format!("`{text}` is not a host, expected a name without port like \"shop.example\" or \"*.shop.example\"");
            Problem::new(&key, what)
        })?;
        let others = || services.iter().filter(|service| service.hosts.contains(&host));
        for other in others() {
            if let Some(path) = paths.iter().find(|path| other.paths.contains(path)) {
                let what = format!(
                    "`{text}` with path `{}` is of service `{}` already, expected another path for `{name}`",
                    written(path),
                    other.name
                );
                return Err(Problem::new(key, what));
            }
        }
        let has_all = |paths: &[Glob]| paths.is_empty();
        let taken = others()
            .find(|other| has_all(paths) && has_all(&other.paths))
            .map(|service| service.name.as_str());
        if let Some(other) = taken.or(hosts.contains(&host).then_some("this one")) {
            let what = format!("`{text}` is a host of service `{other}` already, expected each once");
            return Err(Problem::new(key, what));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

fn host_pattern(text: &str) -> Option<HostPattern> {
    let text = text.to_ascii_lowercase();
    let (name, is_below) = text.strip_prefix("*.").map_or((text.as_str(), false), |name| (name, true));
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_ipv6 = |name: &str| {
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<core::net::Ipv6Addr>().is_ok())
    };
    let fits = name.len() <= HOST_BYTES && (name.split('.').all(is_label) || (!is_below && is_ipv6(name)));
    let pattern = if is_below { HostPattern::Below } else { HostPattern::Exact };
    fits.then(|| pattern(name.into()))
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

/// Returns whether there is no service for hosts that no `[[service]]` names. As it was written, before flags
/// are put in place: what they say of every service does not make one.
pub(super) fn leaves_other_hosts(file: &File, overrides: &Overrides) -> Result<bool, Problem> {
    let has_servers = file.upstream != UpstreamFile::default() || !overrides.upstream_urls.is_empty();
    if has_servers || file.service.is_empty() {
        return Ok(false);
    }
    let policy = [
        ("sentry", file.sentry != SentryFile::default()),
        ("class[0]", !file.class.is_empty()),
        ("candidate", file.candidate.is_some()),
    ];
    match policy.into_iter().find(|(_, is_written)| *is_written) {
        Some((key, _)) => Err(Problem::new(
            key,
            "has no use without upstream.urls, expected it in the `[[service]]` it is for",
        )),
        None => Ok(true),
    }
}
