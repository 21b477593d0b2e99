//! Checks the services: the one at the top level, and each `[[service]]`.

use std::path::Path;

use flashweir_core::limits::{HOST_BYTES, SERVICES};

use super::candidate::Candidate;
use super::class::{Class, check_classes};
use super::name::name;
use super::{Listen, Sentry, Upstream};
use crate::error::Problem;
use crate::file::{CandidateFile, ClassFile, SentryFile, ServiceFile, UpstreamFile};

/// A service that is protected: its hosts, its servers and its policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Fit for a header field and a metric label; each once.
    pub name: String,
    /// Its hosts, each once over all services; none for the service that has all others.
    pub hosts: Vec<HostPattern>,
    /// Its servers.
    pub upstream: Upstream,
    /// How its capacity is given out.
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

/// What a service is made of in the file.
pub(super) struct Written {
    pub(super) upstream: UpstreamFile,
    pub(super) sentry: SentryFile,
    pub(super) class: Vec<ClassFile>,
    pub(super) candidate: Option<CandidateFile>,
}

impl Service {
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
            services.push(Self::check(gateway.to_owned(), Vec::new(), first, directory, listen)?);
        }
        for (index, file) in files.into_iter().enumerate() {
            let at =
                |problem: Problem| Problem { key: format!("service[{index}].{}", problem.key), ..problem };
            let name = name("name", file.name).map_err(at)?;
            if name == gateway || services.iter().any(|other: &Self| other.name == name) {
                let what = format!("`{name}` is the name of another service, expected different ones");
                return Err(at(Problem::new("name", what)));
            }
            let hosts = check_hosts(&file.hosts.0, &services).map_err(at)?;
            let written = Written {
                upstream: file.upstream,
                sentry: file.sentry,
                class: file.class,
                candidate: file.candidate,
            };
            services.push(Self::check(name, hosts, written, directory, listen).map_err(at)?);
        }
        Ok(services)
    }

    fn check(
        name: String,
        hosts: Vec<HostPattern>,
        written: Written,
        directory: &Path,
        listen: &Listen,
    ) -> Result<Self, Problem> {
        let upstream = Upstream::check(written.upstream, directory, listen)?;
        let sentry = Sentry::check(&written.sentry)?;
        let classes = check_classes(written.class, directory)?;
        let candidate = written.candidate.map(|file| Candidate::check(file, &sentry, &classes, directory));
        Ok(Self { name, hosts, upstream, candidate: candidate.transpose()?, sentry, classes })
    }
}

fn check_hosts(texts: &[String], services: &[Service]) -> Result<Vec<HostPattern>, Problem> {
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
        let taken = services
            .iter()
            .find(|service| service.hosts.contains(&host))
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

impl core::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}
