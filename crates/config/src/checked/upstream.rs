//! Checks `[upstream]`.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use http::Uri;

use super::Listen;
use super::range::{count_within, duration_within, within};
use super::url::{server_of, upstream_url};
use crate::error::Problem;
use crate::file::{HealthFile, Protocol, UpstreamFile};
use crate::text::DurationText;

/// The service that is protected.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// 1 to 64 different servers: scheme `http` or `https`, host, maybe a port, no path but `/`.
    pub urls: Vec<Uri>,
    /// What to speak to them.
    pub protocol: Protocol,
    /// Connections to one server, over all workers.
    pub max_connections: usize,
    /// Time to connect, TLS included.
    pub connect_timeout: Duration,
    /// Time from the request's head being sent to the response's head, the upload of a body included.
    pub response_header_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// The longest silence inside a response body.
    pub body_idle_timeout: Duration,
    /// PEM file with certificate authorities; `None` means the operating system's.
    pub ca_file: Option<PathBuf>,
    /// When a server is left out.
    pub health: Health,
}

/// When a server is left out for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Ask the servers themselves, too.
    pub active: Option<ActiveHealth>,
    /// Failures in a row that leave a server out.
    pub failures_to_eject: u32,
    /// How long the first time.
    pub eject_for: Duration,
}

/// How servers are asked for their health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveHealth {
    /// The path asked for; starts with `/`.
    pub path: String,
    /// Time between two questions to a server.
    pub interval: Duration,
    /// Time to wait for an answer; at most `interval`.
    pub timeout: Duration,
}

/// Power of two choices needs no more, and each has a metric of its own.
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
        })
    }
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
            let what = format!("`{text}` is Flashweir's own listen address, expected the service behind it");
            return Err(Problem::new(element, what));
        }
        urls.push(url);
    }
    Ok(urls)
}

/// Whether the URL surely leads back to our own listener (as far as can be told without looking up names).
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
