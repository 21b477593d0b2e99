//! `[upstream]`: the service that is protected.

use crate::overrides::Overrides;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listen;
use crate::checks::range::{count_within, duration_within, within};
use crate::checks::url::{server_of, upstream_url};
use crate::error::Problem;
use crate::one_or_many::OneOrMany;
use crate::text::DurationText;

/// The service that is protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamFile {
    /// The servers of the service, `http://` or `https://` with host and optional port, no path. Required,
    /// here or as `--upstream`, unless there is a `[[service]]`. Of two drawn at random, the one with fewer
    /// requests in flight for its share gets the next. A name with several addresses is one server: its addresses are tried by
    /// RFC 8305, and the first that accepts is used. A connection to a name takes requests for a minute at most; then the name is looked up again.
    /// Valid: 1 to 64 different URLs.
    /// Example: `urls = ["http://10.0.0.5:3000", "http://10.0.0.6:3000"]`.
    pub urls: Vec<String>,
    /// Protocol to the servers: `"http1"`, or `"http2"` (over `http://` with prior knowledge, over
    /// `https://` negotiated). HTTP/2 saves connections; a server that does not speak it fails every request.
    /// Example: `protocol = "http2"`.
    pub protocol: Protocol,
    /// Connections to one server, over all workers; with HTTP/1.1 also the requests it works on at once. A
    /// request that finds all of them busy is refused, never queued. Uploads whose clients are slow may hold half of them.
    /// Valid: `1` to `65536`. Raised: a crowd piles up inside the service. Lowered: requests that the
    /// service could carry are refused.
    /// Example: `max_connections = 200` before a service with 200 worker processes.
    pub max_connections: u32,
    /// Time to connect to a server, TLS included, before another one is tried.
    /// Valid: `10ms` to `1m`. Raised: clients wait longer behind a dead server. Lowered: a
    /// single lost packet (sent again after 1 s) counts as a dead server.
    /// Example: `connect_timeout = "500ms"`.
    pub connect_timeout: DurationText,
    /// Time from the request's head going to a server to the response's head; then the client gets 504. Each
    /// part of an upload begins it again, 512 bytes a second on the mean (not to HTTP/2). Before that,
    /// a body (or its first 64 KiB) has as long to come; then the client gets 408.
    /// Valid: `100ms` to `1h`. Raised: stuck requests hold connections longer. Lowered: slow but
    /// healthy pages fail.
    /// Example: `response_header_timeout = "10m"` for slow reports.
    pub response_header_timeout: DurationText,
    /// How long an unused connection to a server is kept, at most: where the server was observed to close connections earlier, a little
    /// less than that.
    /// Valid: `100ms` to `1h`. Raised: more connections turn out closed by the server when they are used
    /// (they are replaced, at a cost, and idempotent requests sent once more: docs/repeats.md). Lowered: more connections are opened.
    /// Example: `idle_timeout = "30s"` where the server keeps its own for 60 s.
    pub idle_timeout: DurationText,
    /// The longest silence inside a response body, or of a WebSocket in both directions, before it is cut off.
    /// Valid: `1s` to `24h`. Raised: dead transfers hold connections longer. Lowered: long polls and
    /// event streams and quiet WebSockets are cut.
    /// Example: `body_idle_timeout = "10m"` for event streams.
    pub body_idle_timeout: DurationText,
    /// PEM file with the certificate authorities that vouch for `https://` servers. Without it, the operating
    /// system's are used. A file that is replaced is in use for new connections within a second; the system's are read again at a reload.
    /// Example: `ca_file = "internal-ca.pem"`.
    pub ca_file: Option<PathBuf>,
    /// How long the share of a server that was away grows, from a tenth to the whole; `"0s"`: at once.
    /// Valid: `0s` to `10m`. Raised: new capacity helps later. Lowered: a server with cold caches is slow for more clients.
    /// Example: `slow_start = "30s"` for a server that compiles while it runs.
    pub slow_start: DurationText,
    /// From what the servers' shares are learned, within a factor of two: `"utilisation"` (what they report as ORCA, or their agents do; without
    /// reports of all of them, nothing), `"response_time"`, or `"off"`. Requests in flight follow a slow server in any case; utilisation adds what
    /// they do not show, such as other work on a server's machine.
    /// Example: `weights = "response_time"` for servers of different speed that report nothing.
    pub weights: Weights,
    /// Where `flashweir agent` listens beside the servers: one URL for all, or one for each in the order of `urls`. What an agent sees its machine
    /// short of is named in the verdict.
    /// Example: `agents = "http://10.0.0.5:9901"`.
    pub agents: OneOrMany,
    /// Whether a spent quota holds all requests to the service back, and not only those of the client whose answer said so: for a service
    /// that counts this gateway as one caller. A quota is spent where `RateLimit` says so, or where a 429, or a gRPC answer with
    /// status 8 (in its head or its trailers), names a time in `grpc-retry-pushback-ms` or `Retry-After`. It holds for a minute at most,
    /// and a hundredth of the requests goes on. Not where the service counts by user: one of them would stop the others.
    /// Example: `obey_quota = true` before an API that is paid for.
    pub obey_quota: bool,
    /// When a server is left out for a while.
    pub health: HealthFile,
}

impl Default for UpstreamFile {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            // The one protocol every server speaks.
            protocol: Protocol::Http1,
            // Above the worker count of any one server process, so that it protects the gateway's memory and
            // leaves the decision about the service to the controllers.
            max_connections: 1_024,
            // One lost SYN is sent again after 1 s; two are bad luck, not health.
            connect_timeout: DurationText::from_secs(2),
            // Twice what people wait for; common servers stop a request after 30 s themselves.
            response_header_timeout: DurationText::from_secs(30),
            // Below the 5 s after which Node.js and Apache close idle connections.
            idle_timeout: DurationText::from_secs(4),
            // Event streams usually send a heartbeat every 15 to 30 s.
            body_idle_timeout: DurationText::from_secs(60),
            ca_file: None,
            // Caches of a small service are warm by then, and a crowd does not wait longer for new servers.
            slow_start: DurationText::from_secs(5),
            // Does nothing until servers report.
            weights: Weights::Utilisation,
            agents: OneOrMany(Vec::new()),
            // Most services count by user.
            obey_quota: false,
            health: HealthFile::default(),
        }
    }
}

/// Protocol to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// From what the servers' shares are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// Reports of utilisation.
    Utilisation,
    /// Time from the request to the response's head.
    ResponseTime,
    /// All servers are alike.
    Off,
}

/// When a server is left out for a while, and how it returns.
///
/// *Unreachable*: connections fail. *Sick*: it does not answer for `path` as it should. It returns with the first probe that finds it well (a
/// connection, or an answer for `path`; four times a second). One that goes and comes must stay well for 0.5 s before its second return within a
/// minute, and twice as long each time. *Reset*: it resets requests of more than one client. *Outlier*: it fails (500, 502, 503, 504), or is
/// silent, while the others answer. For these two a server is out for `eject_for`; only a part of the servers may be, and never the last.
/// When every server is out, those that can be connected to are used, or else all: some answer is better than none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HealthFile {
    /// Ask each server for this path every `interval`; 2xx and 3xx mean healthy. Without it only real
    /// requests tell.
    /// Example: `path = "/healthz"`.
    pub path: Option<String>,
    /// Time between two questions to a server in use. Only with `path`.
    /// Valid: `100ms` to `5m`. Raised: a dead server is noticed later. Lowered: more load of our own making.
    /// Example: `interval = "5s"`.
    pub interval: DurationText,
    /// Time to wait for the answer; longer counts as a failure. Only with `path`; at most `interval`.
    /// Valid: `10ms` to `1m`. Raised: a stuck server is noticed later. Lowered: a busy server is
    /// mistaken for a dead one, just when it is needed.
    /// Example: `timeout = "2s"`.
    pub timeout: DurationText,
    /// Failed requests in a row, or wrong answers for `path`, that leave a server out.
    /// Valid: `1` to `100`. Raised: more requests fail on a dead server. Lowered: one reset leaves a
    /// healthy server out.
    /// Example: `failures_to_eject = 5`.
    pub failures_to_eject: u32,
    /// How long a server that resets requests or fails alone is left out the first time; doubled for each further time within a minute.
    /// Valid: `100ms` to `10m`. Raised: a server that recovers waits longer for work. Lowered: more requests fail on one that does not.
    /// Example: `eject_for = "5s"`.
    pub eject_for: DurationText,
    /// The part of the servers that may be left out at once for resets and as outliers: where most of them fail, the fault is elsewhere.
    /// Valid: `0` to `1`; `0` never judges. Raised: the rest carry more. Lowered: broken servers stay in use.
    /// Example: `max_ejected = 0.34`.
    pub max_ejected: f64,
}

impl Default for HealthFile {
    fn default() -> Self {
        Self {
            path: None,
            // Three failures in a row then take six seconds, about what a person's patience is.
            interval: DurationText::from_secs(2),
            // A server slower than this on its health page is not helping.
            timeout: DurationText::from_secs(1),
            // Two can be one restart; three is a pattern.
            failures_to_eject: 3,
            // About the restart time of a small service.
            eject_for: DurationText::from_secs(2),
            // Half of the servers can carry most of an ordinary day.
            max_ejected: 0.5,
        }
    }
}

/// The service that is protected.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// 1 to 64 different servers: scheme `http` or `https`, host, maybe a port, no path but `/`.
    pub urls: Vec<Uri>,
    /// Protocol to the servers.
    pub protocol: Protocol,
    /// Connections to one server, over all workers.
    pub max_connections: usize,
    /// Time to connect, TLS included.
    pub connect_timeout: Duration,
    /// Time from the request's head being sent to the response's head; a part of an upload begins it again.
    pub response_header_timeout: Duration,
    /// Time that an unused connection is kept.
    pub idle_timeout: Duration,
    /// The longest silence inside a response body.
    pub body_idle_timeout: Duration,
    /// PEM file with certificate authorities; `None` means the operating system's.
    pub ca_file: Option<PathBuf>,
    /// Time in which the share of a server that was away grows.
    pub slow_start: Duration,
    /// From what shares are learned.
    pub weights: Weights,
    /// The agent of each server, in the order of `urls`; none, or as many.
    pub agents: Vec<Uri>,
    /// A spent quota holds all requests back.
    pub obeys_quota: bool,
    /// Settings of the ejection of servers.
    pub health: Health,
}

/// Settings of the ejection of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Ask the servers themselves, too.
    pub active: Option<ActiveHealth>,
    /// Failures in a row that leave a server out.
    pub failures_to_eject: u32,
    /// Length of the first ejection.
    pub eject_for: Duration,
    /// The part of the servers that may be left out by judgement, 0 to 1.
    pub max_ejected: f64,
}

/// Settings of active health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveHealth {
    /// The path asked for; starts with `/`.
    pub path: String,
    /// Time between two questions to a server.
    pub interval: Duration,
    /// Time to wait for an answer; at most `interval`.
    pub timeout: Duration,
}

impl UpstreamFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        if !overrides.upstream_urls.is_empty() {
            self.urls.clone_from(&overrides.upstream_urls);
        }
    }
}

/// Power of two choices needs no more, and each has its own metric.
const SERVERS: usize = 64;

impl Upstream {
    pub(super) fn check(file: UpstreamFile, directory: &Path, listen: &Listen) -> Result<Self, Problem> {
        let urls = check_urls(&file.urls, listen)?;
        if file.ca_file.is_some() && !urls.iter().any(|url| url.scheme_str() == Some("https")) {
            return Err(Problem::new(
                "upstream.ca_file",
                "has no use, expected at least one https:// URL with it",
            ));
        }
        let tenth = DurationText::from_millis(100);
        let hour = DurationText::from_secs(3_600);
        Ok(Self {
            urls,
            protocol: file.protocol,
            max_connections: count_within("upstream.max_connections", file.max_connections, 1, 65_536)?,
            connect_timeout: duration_within(
                "upstream.connect_timeout",
                file.connect_timeout,
                DurationText::from_millis(10),
                DurationText::from_secs(60),
            )?,
            response_header_timeout: duration_within(
                "upstream.response_header_timeout",
                file.response_header_timeout,
                tenth,
                hour,
            )?,
            idle_timeout: duration_within("upstream.idle_timeout", file.idle_timeout, tenth, hour)?,
            body_idle_timeout: duration_within(
                "upstream.body_idle_timeout",
                file.body_idle_timeout,
                DurationText::from_secs(1),
                DurationText::from_secs(24 * 3_600),
            )?,
            ca_file: file.ca_file.map(|path| directory.join(path)),
            slow_start: duration_within(
                "upstream.slow_start",
                file.slow_start,
                DurationText::from_secs(0),
                DurationText::from_secs(600),
            )?,
            weights: file.weights,
            agents: check_agents(&file.agents.0, file.urls.len())?,
            obeys_quota: file.obey_quota,
            health: Health::check(file.health)?,
        })
    }
}

impl Health {
    fn check(file: HealthFile) -> Result<Self, Problem> {
        let minute = DurationText::from_secs(60);
        let interval = duration_within(
            "upstream.health.interval",
            file.interval,
            DurationText::from_millis(100),
            DurationText::from_secs(300),
        )?;
        let timeout =
            duration_within("upstream.health.timeout", file.timeout, DurationText::from_millis(10), minute)?;
        let active = file.path.map(|path| active(path, interval, timeout)).transpose()?;
        Ok(Self {
            active,
            failures_to_eject: within("upstream.health.failures_to_eject", file.failures_to_eject, 1, 100)?,
            eject_for: duration_within(
                "upstream.health.eject_for",
                file.eject_for,
                DurationText::from_millis(100),
                DurationText::from_secs(600),
            )?,
            max_ejected: within("upstream.health.max_ejected", file.max_ejected, 0.0, 1.0)?,
        })
    }
}

/// One for each server; a single one is every server's.
fn check_agents(texts: &[String], servers: usize) -> Result<Vec<Uri>, Problem> {
    let key = "upstream.agents";
    if texts.len() > 1 && texts.len() != servers {
        let what =
            format!("{} agents for {servers} servers, expected one for all or one for each", texts.len());
        return Err(Problem::new(key, what));
    }
    let mut agents = Vec::with_capacity(servers);
    for (index, text) in texts.iter().enumerate() {
        let key = if texts.len() == 1 { key.to_owned() } else { format!("{key}[{index}]") };
        let agent = upstream_url(&key, text)?;
        if agent.scheme_str() != Some("http") {
            return Err(Problem::new(
                key,
                format!("`{text}` is not http://, expected the agent's own address"),
            ));
        }
        agents.push(agent);
    }
    if let [one] = agents.as_slice() {
        agents = vec![one.clone(); servers];
    }
    Ok(agents)
}

fn active(path: String, interval: Duration, timeout: Duration) -> Result<ActiveHealth, Problem> {
    let is_path = path.starts_with('/') && path.parse::<http::uri::PathAndQuery>().is_ok();
    if !is_path {
        let what = format!("`{path}` is not a path, expected one like \"/healthz\"");
        return Err(Problem::new("upstream.health.path", what));
    }
    // Two questions at once to a server that does not answer one would only add to its load.
    if timeout > interval {
        let what = format!(
            "{} is longer than upstream.health.interval, expected at most {}",
            DurationText(timeout),
            DurationText(interval)
        );
        return Err(Problem::new("upstream.health.timeout", what));
    }
    Ok(ActiveHealth { path, interval, timeout })
}

fn check_urls(texts: &[String], listen: &Listen) -> Result<Vec<Uri>, Problem> {
    let key = "upstream.urls";
    if texts.is_empty() {
        let what = "no upstream, expected at least one URL here or as --upstream http://HOST:PORT";
        return Err(Problem::new(key, what));
    }
    if texts.len() > SERVERS {
        return Err(Problem::new(key, format!("{} URLs, expected at most {SERVERS}", texts.len())));
    }
    let mut urls: Vec<Uri> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let element = format!("{key}[{index}]");
        let url = upstream_url(&element, text)?;
        if urls.iter().any(|other| server_of(other) == server_of(&url)) {
            return Err(Problem::new(
                element,
                format!("`{text}` is listed twice, expected different servers"),
            ));
        }
        if listen.addresses.iter().any(|address| leads_to(&url, *address)) {
            let what = format!(
                "`{text}` is Flashweir's own listen address (listen.address, 127.0.0.1:8080 unless it is set), expected the service \
                 behind it"
            );
            return Err(Problem::new(element, what));
        }
        urls.push(url);
    }
    Ok(urls)
}

/// Returns whether the URL surely leads back to our own listener (as far as is known without looking up
/// names).
fn leads_to(url: &Uri, listener: SocketAddr) -> bool {
    let (_, host, port) = server_of(url);
    if port != listener.port() {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() && listener.ip().is_unspecified() => {
            address.is_ipv4() == listener.is_ipv4()
        }
        Ok(address) => address == listener.ip(),
        Err(_) => host == "localhost" && (listener.ip().is_loopback() || listener.ip().is_unspecified()),
    }
}
