//! `[feedback]`: overload feedback between nodes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flashweir_core::limits::{API_KEYS_FILE_BYTES, FEEDBACK_SENDERS};
use flashweir_feedback::SharedKeys;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{TRUSTED_PROXIES, network};
use super::{Listen, Service};
use crate::checks::address::socket_address;
use crate::checks::name::name;
use crate::error::Problem;

/// Overload feedback between nodes (docs/feedback.md): gateways, sidecars and clients in front of this gateway are asked to
/// send less before their requests have to be refused here, and this gateway sends less where the upstream asks for it.
/// Limits that an upstream asks for are obeyed with nothing set. Nodes in front are asked where `senders` says that they are there: a load
/// balancer that does not know the field would not listen, and what it sends beyond a share would be refused in every class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FeedbackFile {
    /// Whether nodes in front are asked for less, and what an upstream asks for is done.
    /// Example: `enabled = false`.
    pub enabled: bool,
    /// Networks in which nodes in front of this gateway are: each address there that sends requests gets its share of what the
    /// service can do. Default: none. All other clients together count as one node. Too many: people who
    /// do not know the field count as nodes, and what one of them sends beyond a share is refused first. Too few: a node is not asked.
    /// Valid: at most 256 networks.
    /// Example: `senders = ["10.0.0.0/8"]`.
    pub senders: Vec<String>,
    /// File with the keys that sign the messages: each line a number from 1 to 15, a blank, and a key of 16 to 1024 visible
    /// characters or blanks. The first signs, all are accepted. Without keys nothing is signed, and only what
    /// comes with responses of the configured upstreams is believed. Read again at a reload.
    /// Example: `keys_file = "feedback.keys"`.
    pub keys_file: Option<PathBuf>,
    /// How much a node in front counts when shares are divided, by the name that it sends in `Flashweir-Sender`; 1 for
    /// all others.
    /// Valid: whole numbers from 1 to 1000.
    /// Example: `weights = { checkout = 3 }`.
    pub weights: BTreeMap<String, u32>,
    /// By service, the `gateway.name` of the node that is its upstream, where keys are used: what a node signs is for one sender.
    /// Default: the service's own name.
    /// Example: `upstream_names = { default = "shop-api" }`.
    pub upstream_names: BTreeMap<String, String>,
    /// Where datagrams of upstreams arrive that ask for less while few responses come from them; only signed ones are believed, and
    /// only those of upstreams whose URLs have addresses in place of names. Default: none are taken.
    /// Example: `udp = "10.0.0.2:9911"`.
    pub udp: Option<String>,
    /// By the name that a node in front sends in `Flashweir-Sender`: the port to which datagrams go, at the address from which its
    /// requests come, while it is asked for less and sends nothing. Needs keys.
    /// Valid: at most 4096 names, ports from 1 to 65535.
    /// Example: `datagram_ports = { shop = 9911 }`.
    pub datagram_ports: BTreeMap<String, u16>,
    /// The address by which nodes in front reach this gateway, which datagrams to them say. Default: the first of `listen.address`.
    /// Example: `address = "10.0.0.5:8080"`.
    pub address: Option<String>,
    /// Whether a request without `Flashweir-Deadline` and `grpc-timeout` gets a deadline here: its class's `response_target`, from its
    /// arrival on. A request that cannot be answered by then is refused at once, here or deeper in a chain.
    /// Example: `target_as_deadline = true`.
    pub target_as_deadline: bool,
    /// Whether requests that are sent on carry their class's place in the order of importance as the urgency of `Priority`
    /// (RFC 9218), in place of what the client wrote there: 0 the most important, 7 for that and all later places. The node behind has it
    /// in `match.header` of its classes. Services with one class leave the field alone.
    /// Example: `send_priority = true`.
    pub send_priority: bool,
}

impl Default for FeedbackFile {
    fn default() -> Self {
        // It costs nothing where no node is in front and no upstream speaks it.
        Self {
            enabled: true,
            senders: Vec::new(),
            keys_file: None,
            weights: BTreeMap::new(),
            upstream_names: BTreeMap::new(),
            udp: None,
            datagram_ports: BTreeMap::new(),
            address: None,
            target_as_deadline: false,
            send_priority: false,
        }
    }
}

/// Overload feedback between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// True if feedback is sent and obeyed.
    pub is_enabled: bool,
    /// Networks in which nodes in front are.
    pub senders: Vec<IpNet>,
    /// The file with the keys, if they are used.
    pub keys_file: Option<PathBuf>,
    /// The keys in the file, read by [`Config::load`](crate::Config::load).
    pub keys: SharedKeys,
    /// By name of a node in front: how much it counts; the others count 1.
    pub weights: BTreeMap<String, u32>,
    /// By service, the name of the node behind it.
    pub upstream_names: BTreeMap<String, String>,
    /// Address for the datagrams of upstreams.
    pub udp: Option<SocketAddr>,
    /// By name of a node in front: the port to which datagrams go.
    pub datagram_ports: BTreeMap<String, u16>,
    /// The address by which nodes in front reach this gateway, where it is not the first that it listens on.
    pub address: Option<SocketAddr>,
    /// A request that brings no deadline gets its class's target.
    pub is_target_deadline: bool,
    /// Requests that are sent on carry their rank in `Priority`.
    pub sends_priority: bool,
}

/// More for one node than for another by three orders of magnitude would leave that one nothing.
const WEIGHT_MAX: u32 = 1_000;

impl Feedback {
    pub(super) fn check(
        file: FeedbackFile,
        directory: &Path,
        services: &[Service],
        listen: &Listen,
    ) -> Result<Self, Problem> {
        for (node, &weight) in &file.weights {
            name("feedback.weights", node.clone())?;
            if !(1..=WEIGHT_MAX).contains(&weight) {
                let what = format!("{weight} is out of range, expected 1 to {WEIGHT_MAX}");
                return Err(Problem::new(format!("feedback.weights.{node}"), what));
            }
        }
        for (service, node) in &file.upstream_names {
            let key = format!("feedback.upstream_names.{service}");
            name(&key, node.clone())?;
            if !services.iter().any(|known| known.name == *service) {
                return Err(Problem::new(key, "is no service here, expected the name of one"));
            }
        }
        let address =
            file.address.as_deref().map(|text| socket_address("feedback.address", text)).transpose()?;
        check_datagrams(&file, address, listen)?;
        let has_sender =
            |service: &Service| service.classes.iter().any(|class| !class.rules.senders.is_empty());
        if file.senders.is_empty() && services.iter().any(has_sender) {
            let what =
                "there are none, so that `match.sender` of a class takes no request, expected their networks";
            return Err(Problem::new("feedback.senders", what));
        }
        Ok(Self {
            is_enabled: file.enabled,
            senders: networks(&file.senders)?,
            keys_file: file.keys_file.map(|path| directory.join(path)),
            keys: SharedKeys::default(),
            weights: file.weights,
            upstream_names: file.upstream_names,
            udp: file.udp.as_deref().map(|text| socket_address("feedback.udp", text)).transpose()?,
            datagram_ports: file.datagram_ports,
            address,
            is_target_deadline: file.target_as_deadline,
            sends_priority: file.send_priority,
        })
    }

    /// Reads the file with the keys, if there is one.
    pub(crate) fn read(&mut self) -> Result<(), Problem> {
        if let Some(path) = &self.keys_file {
            self.keys = keys_of_file("feedback.keys_file", path)?;
        }
        Ok(())
    }
}

/// Reads the file with keys that this setting names.
pub(super) fn keys_of_file(setting: &str, path: &Path) -> Result<SharedKeys, Problem> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(API_KEYS_FILE_BYTES + 1).read_to_string(&mut text));
    let read = read.map_err(|error| format!("cannot read it: {error}"));
    let keys = read.and_then(|_| SharedKeys::parse(&text).map_err(|error| error.to_string()));
    keys.map_err(|why| {
        let what = format!("`{}`: {why}, expected lines with a number and a key", path.display());
        Problem::new(setting, what)
    })
}

/// Checks the settings that are needed to send and to believe datagrams.
fn check_datagrams(file: &FeedbackFile, address: Option<SocketAddr>, listen: &Listen) -> Result<(), Problem> {
    let key = "feedback.datagram_ports";
    if file.datagram_ports.len() > FEEDBACK_SENDERS {
        let what = format!("{} names, expected at most {FEEDBACK_SENDERS}", file.datagram_ports.len());
        return Err(Problem::new(key, what));
    }
    for (node, &port) in &file.datagram_ports {
        name(key, node.clone())?;
        if port == 0 {
            return Err(Problem::new(format!("{key}.{node}"), "0 is no port, expected 1 to 65535"));
        }
    }
    let is_used = [(key, !file.datagram_ports.is_empty()), ("feedback.udp", file.udp.is_some())];
    if let Some((key, _)) = is_used.iter().find(|(_, is_used)| *is_used && file.keys_file.is_none()) {
        let what = "datagrams are believed only where they are signed, expected feedback.keys_file as well";
        return Err(Problem::new(*key, what));
    }
    let is_known =
        address.is_some() || listen.addresses.first().is_some_and(|first| !first.ip().is_unspecified());
    if !file.datagram_ports.is_empty() && !is_known {
        let what = "listen.address names no address that a node in front could use, expected feedback.address as well";
        return Err(Problem::new(key, what));
    }
    Ok(())
}

fn networks(texts: &[String]) -> Result<Vec<IpNet>, Problem> {
    let key = "feedback.senders";
    if texts.len() > TRUSTED_PROXIES {
        let what = format!("{} networks, expected at most {TRUSTED_PROXIES}", texts.len());
        return Err(Problem::new(key, what));
    }
    texts.iter().enumerate().map(|(index, text)| network(&format!("{key}[{index}]"), text)).collect()
}
