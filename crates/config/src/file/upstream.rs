//! `[upstream]`: the service that is protected.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::DurationText;

/// The service that is protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamFile {
    /// The servers of the service, `http://` or `https://` with host and optional port, no path. Required,
    /// here or as `--upstream`, unless there is a `[[service]]`. Of two drawn at random, the one with fewer requests in flight gets the next.
    /// Valid: 1 to 64 different URLs.
    /// Example: `urls = ["http://10.0.0.5:3000", "http://10.0.0.6:3000"]`.
    pub urls: Vec<String>,
    /// What to speak to the servers: `"http1"`, or `"http2"` (over `http://` with prior knowledge, over
    /// `https://` negotiated). HTTP/2 saves connections; a server that does not speak it fails every request.
    /// Example: `protocol = "http2"`.
    pub protocol: Protocol,
    /// Connections to one server, over all workers; with HTTP/1.1 also the requests it works on at once. A
    /// request that finds all of them busy is refused, never queued.
    /// Valid: `1` to `65536`. Raised: a crowd piles up inside the service. Lowered: requests that the
    /// service could carry are refused.
    /// Example: `max_connections = 200` before a service with 200 worker processes.
    pub max_connections: u32,
    /// Time to connect to a server, TLS included, before another one is tried.
    /// Valid: `10ms` to `1m`. Raised: clients wait longer behind a dead server. Lowered: a
    /// single lost packet (sent again after 1 s) counts as a dead server.
    /// Example: `connect_timeout = "500ms"`.
    pub connect_timeout: DurationText,
    /// Time from the request's head going to a server to the response's head, the upload of a body
    /// included; then the client gets 504.
    /// Valid: `100ms` to `1h`. Raised: stuck requests hold connections longer. Lowered: slow but
    /// healthy pages and long uploads fail.
    /// Example: `response_header_timeout = "10m"` for slow reports or large uploads.
    pub response_header_timeout: DurationText,
    /// How long an unused connection to a server is kept.
    /// Valid: `100ms` to `1h`. Raised: more connections turn out closed by the server when they are used
    /// (they are replaced, at a cost). Lowered: more connections are opened.
    /// Example: `idle_timeout = "30s"` where the server keeps its own for 60 s.
    pub idle_timeout: DurationText,
    /// The longest silence inside a response body before it is cut off.
    /// Valid: `1s` to `24h`. Raised: dead transfers hold connections longer. Lowered: long polls and
    /// event streams are cut.
    /// Example: `body_idle_timeout = "10m"` for event streams.
    pub body_idle_timeout: DurationText,
    /// PEM file with the certificate authorities that vouch for `https://` servers. Without it, the operating
    /// system's are used.
    /// Example: `ca_file = "internal-ca.pem"`.
    pub ca_file: Option<PathBuf>,
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
            health: HealthFile::default(),
        }
    }
}

/// What to speak to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// When a server is left out for a while. Failures to connect and resets always count; with a path, the
/// server is also asked. When every server is out, all are used: some answer is better than none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HealthFile {
    /// Ask each server for this path every `interval`; 2xx and 3xx mean healthy. Without it only real
    /// requests tell.
    /// Example: `path = "/healthz"`.
    pub path: Option<String>,
    /// Time between two questions to a server. Only with `path`.
    /// Valid: `100ms` to `5m`. Raised: a dead server is noticed later. Lowered: more load of our own making.
    /// Example: `interval = "5s"`.
    pub interval: DurationText,
    /// Time to wait for the answer; longer counts as a failure. Only with `path`; at most `interval`.
    /// Valid: `10ms` to `1m`. Raised: a stuck server is noticed later. Lowered: a busy server is
    /// mistaken for a dead one, just when it is needed.
    /// Example: `timeout = "2s"`.
    pub timeout: DurationText,
    /// Failures in a row that leave a server out.
    /// Valid: `1` to `100`. Raised: more requests fail on a dead server. Lowered: one reset leaves a
    /// healthy server out.
    /// Example: `failures_to_eject = 5`.
    pub failures_to_eject: u32,
    /// How long a server is left out the first time; doubled for each further time in a row.
    /// Valid: `100ms` to `10m`. Raised: a restarted server waits longer for work. Lowered: more
    /// requests are tried on a dead server.
    /// Example: `eject_for = "5s"`.
    pub eject_for: DurationText,
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
        }
    }
}
