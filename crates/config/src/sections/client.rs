//! `[client]`: who the clients are and what one of them may hold.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bounds;
use crate::checks::range::count_within;
use crate::error::Problem;

/// Identity of clients, and the maximum that one of them may hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientFile {
    /// Networks whose `Forwarded` and `X-Forwarded-*` fields are believed: the load balancers in front of
    /// Flashweir. From all others these fields are replaced, because any client can write them. Too many:
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
    /// Whether a client that ends its half of the connection after its request gets its answer (HTTP/1; RFC 9112 §9.6 lets it wait). To the
    /// kernel an end of both halves looks the same, so the answer's first byte is sent ahead: a client that has gone resets the connection
    /// then, one round trip later, and its request is given up. `false`: an end is the end of the request.
    /// Example: `answer_half_closed = false` where a request must end with its reader at once.
    pub answer_half_closed: bool,
}

impl Default for ClientFile {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            max_connections_per_client: None,
            // It costs nothing before a client does so.
            answer_half_closed: true,
        }
    }
}

/// Identity of clients, and the maximum that one of them may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Networks whose forwarding fields are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections from one client (an IPv4 address, an IPv6 /64); at most `bounds.max_connections`.
    pub max_connections_per_client: usize,
    /// A client that ends its half of the connection after its request gets its answer.
    pub answers_half_closed: bool,
}

/// Default share of one client: a whole office or a mobile carrier's gateway fits.
const CONNECTIONS_PER_CLIENT: usize = 4_096;
/// Every forwarded address is compared with every network: few enough to walk.
pub(super) const TRUSTED_PROXIES: usize = 256;

impl Client {
    pub(super) fn check(file: &ClientFile, bounds: &Bounds) -> Result<Self, Problem> {
        let trusted_proxies = proxy_networks("client.trusted_proxies", &file.trusted_proxies)?;
        let most = bounds.max_connections;
        let max_connections_per_client = match file.max_connections_per_client {
            None => CONNECTIONS_PER_CLIENT.min(most),
            Some(count) => {
                let most = u32::try_from(most).unwrap_or(u32::MAX);
                // Beyond the bound over all clients it would never bind, which is surely not what was meant.
                count_within("client.max_connections_per_client", count, 1, most).map_err(|problem| {
                    Problem { what: problem.what + " (bounds.max_connections)", ..problem }
                })?
            }
        };
        let answers_half_closed = file.answer_half_closed;
        Ok(Self { trusted_proxies, max_connections_per_client, answers_half_closed })
    }
}

/// Networks of proxies, which may state the client's address.
pub(super) fn proxy_networks(key: &str, texts: &[String]) -> Result<Vec<IpNet>, Problem> {
    if texts.len() > TRUSTED_PROXIES {
        let what = format!("{} networks, expected at most {TRUSTED_PROXIES}", texts.len());
        return Err(Problem::new(key, what));
    }
    let networks = texts.iter().enumerate();
    networks.map(|(index, text)| proxy_network(&format!("{key}[{index}]"), text)).collect()
}

/// A network of proxies: not the whole Internet.
fn proxy_network(key: &str, text: &str) -> Result<IpNet, Problem> {
    let network = network(key, text)?;
    if network.prefix_len() == 0 {
        let what = format!(
            "`{text}` trusts the whole Internet to state its own address, expected your load balancers"
        );
        return Err(Problem::new(key, what));
    }
    Ok(network)
}

/// A network in CIDR notation, or one address.
pub(super) fn network(key: &str, text: &str) -> Result<IpNet, Problem> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let network: IpNet = text.parse().map_err(|_| {
        Problem::new(
            key,
            format!("`{text}` is not a network, expected an address or CIDR like \"10.0.0.0/8\""),
        )
    })?;
    if network.trunc() != network {
        let what = format!("`{text}` has bits beyond its prefix, expected \"{}\"", network.trunc());
        return Err(Problem::new(key, what));
    }
    Ok(network)
}
