//! `[client]`: who the clients are and what one of them may hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who the clients are and what one of them may hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientFile {
    /// Networks whose `Forwarded` and `X-Forwarded-*` fields are believed: the load balancers in front of
    /// Flashweir. From all others these fields are replaced, because anybody can write them. Too many:
    /// clients can forge their address. Too few: all clients behind a load balancer look like one.
    /// Valid: at most 256 networks, none of them the whole Internet.
    /// Example: `trusted_proxies = ["10.0.0.0/8", "192.0.2.7"]`.
    pub trusted_proxies: Vec<String>,
    /// Connections from one client: one IPv4 address or one IPv6 /64 network. More are answered 429. Trusted
    /// proxies are exempt. Default: 4096, or `bounds.max_connections` when that is lower: a whole office or a
    /// mobile carrier shares one address, and only a client that could starve the others must be stopped.
    /// Valid: `1` to `bounds.max_connections`. Raised: one client can take more of the gateway. Lowered:
    /// people who share an address are refused.
    /// Example: `max_connections_per_client = 100`.
    pub max_connections_per_client: Option<u32>,
}
