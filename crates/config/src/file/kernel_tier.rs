//! `[[kernel.tier]]`: which new connections are how important in the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// New connections of one importance. Where more come than the kernel's ceiling admits, the least important are refused
/// first: a rank is refused only if it and the more important ones together exceed the whole ceiling. A connection has the
/// rank of its network, else of its mark, else of its port, else `default_rank`. Preferred networks have no rank: they are
/// always let in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelTierFile {
    /// How important these connections are: `0` the most. Each rank is listed once.
    /// Valid: `0` to `7`.
    /// Example: `rank = 0`.
    pub rank: u32,
    /// Networks that they come from; of several that contain a client, the longest counts. A source address can be
    /// forged at a SYN: a flood of SYNs that carry addresses of an important network is charged as that network.
    /// Valid: at most 4096 networks in all tiers, each once.
    /// Example: `networks = ["192.0.2.0/24", "2001:db8::/48"]`.
    #[serde(default)]
    pub networks: Vec<String>,
    /// Marks that they carry: values of the field for differentiated services (DSCP) in the IP header, set by a router,
    /// firewall or load balancer in front of this machine. The marks of this machine's own firewall do not exist yet where
    /// the gate stands. Any client can write the field: list marks only where the edge of your network overwrites it.
    /// Valid: numbers up to 63, each in one tier.
    /// Example: `marks = [46]`.
    #[serde(default)]
    pub marks: Vec<u32>,
    /// Ports of this service that they go to.
    /// Valid: at most 256 ports in all tiers, each once.
    /// Example: `ports = [8443]`.
    #[serde(default)]
    pub ports: Vec<u16>,
}
