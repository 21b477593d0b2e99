//! `[[kernel.tier]]`: which new connections are how important in the kernel.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

use flashweir_core::limits;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KernelFile;
use super::client::network;
use crate::checks::range::within;
use crate::error::Problem;

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

/// Ranks of new connections in the kernel, 0 the most important.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTiers {
    /// Networks and their ranks, each network once.
    pub networks: Vec<(IpNet, u8)>,
    /// Values of the field for differentiated services and their ranks, each once; below 64.
    pub marks: Vec<(u8, u8)>,
    /// Ports and their ranks, each once; not 0.
    pub ports: Vec<(u16, u8)>,
    /// The rank of all other connections.
    pub default_rank: u8,
}

impl KernelTiers {
    /// Number of tiers so that every rank in use has its own; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        let networks = self.networks.iter().map(|(_, rank)| *rank);
        let marks = self.marks.iter().map(|(_, rank)| *rank);
        let ports = self.ports.iter().map(|(_, rank)| *rank);
        let last = networks.chain(marks).chain(ports).fold(self.default_rank, u8::max);
        usize::from(last) + 1
    }

    pub(super) fn check(file: &KernelFile) -> Result<Self, Problem> {
        let (mut networks, mut marks, mut ports) = (Once::default(), Once::default(), Once::default());
        let mut ranks: Vec<u8> = Vec::with_capacity(file.tier.len().min(limits::KERNEL_TIERS));
        for (index, tier) in file.tier.iter().enumerate() {
            let key = |field: &str| format!("kernel.tier[{index}].{field}");
            let rank = checked_rank(&key("rank"), tier.rank)?;
            if ranks.contains(&rank) {
                let what = format!("{rank} is the rank of another tier, expected different ones");
                return Err(Problem::new(key("rank"), what));
            }
            ranks.push(rank);
            if tier.networks.is_empty() && tier.marks.is_empty() && tier.ports.is_empty() {
                let what = "no network, mark or port, expected at least one, or `kernel.default_rank` for all others";
                return Err(Problem::new(format!("kernel.tier[{index}]"), what));
            }
            for (place, text) in tier.networks.iter().enumerate() {
                let key = key(&format!("networks[{place}]"));
                networks.add(network(&key, text)?, rank, &key, limits::KERNEL_TIER_NETWORKS)?;
            }
            for (place, mark) in tier.marks.iter().enumerate() {
                let key = key(&format!("marks[{place}]"));
                // Lossless: within six bits.
                marks.add(within(&key, *mark, 0, MARK_MAX)? as u8, rank, &key, MARK_MAX as usize + 1)?;
            }
            for (place, port) in tier.ports.iter().enumerate() {
                let key = key(&format!("ports[{place}]"));
                if *port == 0 {
                    return Err(Problem::new(key, "0 is no port, expected 1 to 65535"));
                }
                ports.add(*port, rank, &key, limits::KERNEL_TIER_PORTS)?;
            }
        }
        let beyond = ranks.iter().max().map_or(0, |last| (last + 1).min(RANK_MAX as u8));
        let default_rank =
            file.default_rank.map_or(Ok(beyond), |rank| checked_rank("kernel.default_rank", rank))?;
        Ok(Self { networks: networks.entries, marks: marks.entries, ports: ports.entries, default_rank })
    }
}

const RANK_MAX: u32 = limits::KERNEL_TIERS as u32 - 1;
/// The field has six bits (RFC 2474 §3).
const MARK_MAX: u32 = 63;

fn checked_rank(key: &str, rank: u32) -> Result<u8, Problem> {
    // Lossless: there are a few ranks.
    within(key, rank, 0, RANK_MAX).map(|rank| rank as u8)
}

/// Entries that are listed once in all tiers.
struct Once<T> {
    entries: Vec<(T, u8)>,
    ranks: HashMap<T, u8>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), ranks: HashMap::new() }
    }
}

impl<T: Copy + Display + Eq + Hash> Once<T> {
    fn add(&mut self, entry: T, rank: u8, key: &str, most: usize) -> Result<(), Problem> {
        if let Some(other) = self.ranks.insert(entry, rank) {
            let what = format!("`{entry}` is listed for rank {other} already, expected it once");
            return Err(Problem::new(key, what));
        }
        if self.entries.len() == most {
            return Err(Problem::new(key, format!("more than all tiers may list, expected at most {most}")));
        }
        self.entries.push((entry, rank));
        Ok(())
    }
}
