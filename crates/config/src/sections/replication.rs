//! `[replication]`: hot documents on several servers.

use core::time::Duration;

use flashweir_core::limits::UPSTREAM_ADDRESSES;
use http::Uri;
use http::uri::Authority;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cache, CacheFile, CacheMode, HostPattern, Policing, Service};
use crate::checks::range::{duration_within, within};
use crate::checks::url::{server_of, upstream_url};
use crate::error::Problem;
use crate::overrides::Overrides;
use crate::text::{DurationText, SizeText};

/// Hot documents on several servers (docs/replication.md): a redirector sends requests that a shared cache may answer to replicas, a
/// distributor divides documents among redirectors, and a replica (`flashweir replica`) keeps copies and reports its load.
/// Requests that cannot be cached go to the origin, which is `[upstream]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplicationFile {
    /// Role of this gateway: `"off"` (the default), `"redirector"`, `"distributor"` or `"replica"`.
    /// Example: `role = "redirector"`.
    pub role: ReplicationRole,
    /// The replicas of a redirector, or the redirectors of a distributor, as clients or this gateway reach them.
    /// Valid: 1 to 64 different `http://HOST:PORT` or `https://HOST:PORT`.
    /// Example: `targets = ["http://10.0.0.11:8080", "http://10.0.0.12:8080"]`.
    pub targets: Vec<String>,
    /// How a request gets there: `"proxy"` (the default; this gateway passes it on), `"302"` or `"307"` (the client is redirected;
    /// requests with a cookie then go to the origin, as the client would not send the cookie to another host).
    /// Example: `answer = "307"`.
    pub answer: ReplicationAnswer,
    /// How often a replica reports; a replica that is silent for three intervals gets no requests. The same on all nodes.
    /// Valid: `100ms` to `10m`. Raised: a replica that has stopped gets requests for longer. Lowered: more reports.
    /// Example: `interval = "2s"`.
    pub interval: DurationText,
    /// The load from which on a replica counts as overloaded and its documents are copied to others, requests per second.
    /// Valid: 1 to 1000000. Raised: copies are made later. Lowered: more copies, and the cluster counts as full at a lower load.
    /// Example: `high_watermark = 300.0`.
    pub high_watermark: f64,
    /// The load below which an overloaded replica no longer counts as overloaded, requests per second.
    /// Valid: above 0, below `high_watermark`.
    /// Example: `low_watermark = 200.0`.
    pub low_watermark: f64,
    /// By which rules copies are placed and requests spread: `"repaired"` (the default), or `"published"`, those of ACDN as Esser's thesis
    /// measured them, under which the load of replicas bounces between them. `"published"` is for comparison (`make bench-replicas`) and for no
    /// service. The same on all nodes.
    /// Example: `rules = "repaired"`.
    pub rules: ReplicationRules,
    /// Of a replica: the admin listeners of the redirectors that get its reports.
    /// Valid: up to 64 different `http://HOST:PORT`.
    /// Example: `report_to = ["http://10.0.0.1:9900"]`.
    pub report_to: Vec<String>,
    /// Of a replica: its URL as the redirectors' `targets` have it. Required for reports.
    /// Example: `url = "http://10.0.0.11:8080"`.
    pub url: Option<String>,
    /// Of a replica: the host that redirected clients mean when they ask for the replica by its own name; the origin gets it as `Host`.
    /// Default: the authority of the first upstream.
    /// Example: `host = "shop.example"`.
    pub host: Option<String>,
}

impl Default for ReplicationFile {
    fn default() -> Self {
        Self {
            role: ReplicationRole::Off,
            targets: Vec::new(),
            // Redirects need names that clients can resolve; passing on works everywhere.
            answer: ReplicationAnswer::Proxy,
            // As RaDaR's servers reported; reports of a crowd are sent at once.
            interval: DurationText::from_secs(10),
            // Of the thesis's servers, which saturate at 350.
            high_watermark: 300.0,
            low_watermark: 200.0,
            // The published ones have the herd.
            rules: ReplicationRules::Repaired,
            report_to: Vec::new(),
            url: None,
            host: None,
        }
    }
}

/// Role of a gateway in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplicationRole {
    /// No part of one.
    Off,
    /// Divides documents among redirectors.
    Distributor,
    /// Chooses a replica for each request and decides where copies are.
    Redirector,
    /// Keeps copies and reports.
    Replica,
}

impl ReplicationRole {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Distributor => "distributor",
            Self::Redirector => "redirector",
            Self::Replica => "replica",
        }
    }
}

/// How a request gets to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReplicationAnswer {
    /// It is passed on.
    #[serde(rename = "proxy")]
    Proxy,
    /// The client gets 302 (Found).
    #[serde(rename = "302")]
    Found,
    /// The client gets 307 (Temporary Redirect).
    #[serde(rename = "307")]
    Temporary,
}

/// By which rules copies are placed and requests spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplicationRules {
    /// Two choices on own counts, copies by plans, early reports.
    Repaired,
    /// ACDN's weights by reports, copies asked for by overloaded replicas.
    Published,
}

/// Settings of one node of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Replication {
    /// Role of this node.
    pub role: ReplicationRole,
    /// Replicas or redirectors; empty for other roles.
    pub targets: Vec<Uri>,
    /// Answer that sends requests there.
    pub answer: ReplicationAnswer,
    /// Between two reports.
    pub interval: Duration,
    /// From this load on a replica is overloaded, requests per second.
    pub high_watermark_rps: f64,
    /// Below it an overloaded replica no longer is.
    pub low_watermark_rps: f64,
    /// By which rules copies are placed and requests spread.
    pub rules: ReplicationRules,
    /// Receivers of a replica's reports.
    pub report_to: Vec<Uri>,
    /// The replica's own URL.
    pub url: Option<Uri>,
    /// The site's host, in place of the replica's own.
    pub host: Option<Authority>,
}

/// The name of the service that stands for the targets in metrics and in `/status`.
pub const REPLICATION_SERVICE: &str = "replication-targets";
/// No request has this host, so that no request is classified to the service of the targets.
const NO_HOST: &str = "no host";
/// More reports than one interval holds are refused by a redirector's bound on admin connections.
const REPORT_TO_MAX: usize = 64;

impl ReplicationFile {
    /// Puts the flags of `flashweir replica` in place of what was written.
    pub(super) fn apply(&mut self, cache: &mut CacheFile, overrides: &Overrides) {
        let Some(replica) = &overrides.replica else { return };
        self.role = ReplicationRole::Replica;
        cache.mode = CacheMode::Always;
        self.report_to.clone_from(&replica.report_to);
        self.url.clone_from(&replica.url);
        self.host.clone_from(&replica.host);
        if let Some(interval) = replica.interval {
            self.interval = DurationText(interval);
        }
        if let Some(rate) = replica.high_watermark {
            self.high_watermark = rate;
            // The proportion of the defaults.
            self.low_watermark = rate * 2.0 / 3.0;
        }
        if let Some(bytes) = replica.memory_bytes {
            cache.memory = SizeText(bytes);
        }
    }
}

impl Replication {
    /// Checks it, and puts a service for the targets behind the others.
    pub(super) fn check(
        file: ReplicationFile,
        cache: &Cache,
        services: &mut Vec<Service>,
    ) -> Result<Self, Problem> {
        let key = |name: &str| format!("replication.{name}");
        let role = file.role;
        let has_targets = matches!(role, ReplicationRole::Distributor | ReplicationRole::Redirector);
        let targets = urls("replication.targets", &file.targets)?;
        if has_targets == targets.is_empty() {
            let what = match has_targets {
                true => format!("the list is empty, expected at least one for a {}", role.as_str()),
                false => format!("is not used by role \"{}\", expected none", role.as_str()),
            };
            return Err(Problem::new(key("targets"), what));
        }
        let is_replica = role == ReplicationRole::Replica;
        if is_replica && cache.mode != CacheMode::Always {
            let what = format!("is \"{}\", expected \"always\" for a replica", cache.mode.as_str());
            return Err(Problem::new("cache.mode", what));
        }
        if role != ReplicationRole::Off && services.first().is_none_or(|first| !first.hosts.is_empty()) {
            return Err(Problem::new(
                key("role"),
                "needs upstream.urls: the origin of what cannot be cached",
            ));
        }
        let report_to = urls("replication.report_to", &file.report_to)?;
        if let Some(index) = report_to.iter().position(|url| url.scheme_str() != Some("http")) {
            let what =
                format!("`{}` is not http://, expected a redirector's admin listener", report_to[index]);
            return Err(Problem::new(format!("replication.report_to[{index}]"), what));
        }
        let url = file.url.as_deref().map(|url| upstream_url("replication.url", url)).transpose()?;
        if !report_to.is_empty() && (url.is_none() || !is_replica) {
            let what = "reports need role = \"replica\" and `url`, by which redirectors know the replica";
            return Err(Problem::new(key("report_to"), what));
        }
        let host = file.host.map(|text| {
            let what = || format!("`{text}` is not a host, expected one like \"shop.example\"");
            text.parse::<Authority>().map_err(|_| Problem::new(key("host"), what()))
        });
        let (rate_min, rate_max) = (1.0, 1e6);
        let high = within(&key("high_watermark"), file.high_watermark, rate_min, rate_max)?;
        if !(file.low_watermark > 0.0 && file.low_watermark < high) {
            let what = format!("{} is out of range, expected above 0 and below {high}", file.low_watermark);
            return Err(Problem::new(key("low_watermark"), what));
        }
        let interval = duration_within(
            &key("interval"),
            file.interval,
            DurationText::from_millis(100),
            DurationText::from_secs(600),
        )?;
        let checked = Self {
            role,
            targets,
            answer: file.answer,
            interval,
            high_watermark_rps: high,
            low_watermark_rps: file.low_watermark,
            rules: file.rules,
            report_to,
            url,
            host: host.transpose()?,
        };
        checked.add_service(services);
        Ok(checked)
    }

    /// Returns whether requests are sent to targets.
    #[must_use]
    pub fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// The service of the targets has the classes and timeouts of the origin's and limits nothing: each target is a gateway that
    /// protects itself.
    fn add_service(&self, services: &mut Vec<Service>) {
        let Some(first) = services.first().filter(|_| self.has_targets()) else { return };
        let mut service = first.clone();
        service.name = REPLICATION_SERVICE.to_owned();
        service.hosts = vec![HostPattern::Exact(NO_HOST.into())];
        service.upstream.urls.clone_from(&self.targets);
        service.upstream.agents = Vec::new();
        service.upstream.health.active = None;
        service.sentry.policing = Policing::Off;
        service.candidate = None;
        services.push(service);
    }
}

fn urls(key: &str, texts: &[String]) -> Result<Vec<Uri>, Problem> {
    let max = REPORT_TO_MAX.min(UPSTREAM_ADDRESSES);
    if texts.len() > max {
        return Err(Problem::new(key, format!("{} URLs, expected at most {max}", texts.len())));
    }
    let mut urls: Vec<Uri> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let element = format!("{key}[{index}]");
        let url = upstream_url(&element, text)?;
        if urls.iter().any(|other| server_of(other) == server_of(&url)) {
            return Err(Problem::new(element, format!("`{text}` is listed twice, expected different ones")));
        }
        urls.push(url);
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn config(toml: &str) -> Result<Config, String> {
        let config = Config::from_toml(&format!("upstream.urls = ['http://o']\n{toml}"), "test.toml");
        config.map_err(|error| error.to_string())
    }

    #[test]
    fn targets_become_a_service_that_no_host_names() {
        let config =
            config("[replication]\nrole = 'redirector'\ntargets = ['http://a', 'http://b']\n").unwrap();
        assert_eq!(config.services.len(), 2);
        let targets = &config.services[1];
        assert_eq!((targets.name.as_str(), targets.upstream.urls.len()), (REPLICATION_SERVICE, 2));
        assert_eq!(targets.classes, config.services[0].classes);
        assert_eq!(config.default_service().unwrap().name, config.services[0].name);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (toml, expected) in [
            ("replication.role = 'redirector'", "replication.targets"),
            ("replication.targets = ['http://a']", "replication.targets"),
            ("replication.role = 'replica'", "cache.mode"),
            ("[replication]\nrole = 'redirector'\ntargets = ['http://a', 'http://a:80']", "listed twice"),
            ("[replication]\nrole = 'redirector'\ntargets = ['http://a']\ninterval = '1ms'", "interval"),
            (
                "[replication]\nrole = 'redirector'\ntargets = ['http://a']\nhigh_watermark = 0.0",
                "high_watermark",
            ),
            (
                "[replication]\nrole = 'redirector'\ntargets = ['http://a']\nlow_watermark = 300.0",
                "low_watermark",
            ),
            ("[replication]\nreport_to = ['http://a']", "report_to"),
            (
                "cache.mode = 'always'\n[replication]\nrole = 'replica'\nreport_to = ['https://a']\nurl = 'http://b'",
                "admin listener",
            ),
        ] {
            let error = config(toml).expect_err(toml);
            assert!(error.contains(expected) && error.contains("test.toml"), "{toml}: {error}");
        }
    }
}
