//! The packet level, from what was written: links, who sits where, and what else is sent.

use crate::scenario::class::check_name;
use crate::scenario::file::{ClassFile, File};
use crate::scenario::link::Link;
use crate::scenario::nodes::Nodes;
use crate::scenario::packet_file::{ClientsFile, ControllerPlace, DatagramsFile, TcpName, TransferFile};
use crate::scenario::problem::{Problem, wrong};
use crate::scenario::quantity::{BitRate, ByteCount, Room, Span};
use crate::scenario::text::{Stretch, Text, Time};
use flashweir_config::location::split_index;
use flashweir_core::Duration;
use flashweir_core::limits::SCENARIO_LINKS;
use flashweir_sim::network::{Buffer, TcpSettings};
use flashweir_sim::request::{ClassPath, ClientGroup, DatagramSource, PacketNetwork, Transfer, Wire};

/// Room before an access link, and size of a datagram, if nothing else is said.
const ACCESS_BUFFER_PACKETS: u32 = 50;
const DATAGRAM_BYTES: u16 = 1_000;

/// The network of a file with `[[link]]`, and its links by their names; none without, and nothing then may
/// need them.
pub(crate) fn network(file: &File, length: Duration) -> Result<Option<(PacketNetwork, Vec<Link>)>, Problem> {
    if file.links.is_empty() {
        return check_nothing_needs_links(file).map(|()| None);
    }
    if file.links.len() > SCENARIO_LINKS {
        return wrong("link", format!("{} links are more than {SCENARIO_LINKS}", file.links.len()));
    }
    if file.network.one_way_delay.is_some() {
        return wrong("network.one_way_delay", "there is [[link]], and links have delays of their own");
    }
    let links = file.links.iter().enumerate().map(|(index, link)| link.link(&format!("link[{index}]")));
    let links = links.collect::<Result<Vec<_>, _>>()?;
    let nodes = Nodes::of(&links);
    let wires = file.links.iter().zip(&links).enumerate();
    let wires = wires.map(|(index, (written, link))| {
        let key = format!("link[{index}]");
        let [there, back] = written.directions(&key, link)?;
        let [one, other] = &link.between;
        Ok(Wire { ends: [nodes.find(&key, one)?, nodes.find(&key, other)?], there, back })
    });
    let mut network = PacketNetwork {
        // Two for each link at most.
        nodes: nodes.names().len() as u32,
        wires: wires.collect::<Result<_, Problem>>()?,
        ..PacketNetwork::default()
    };
    let tcp = tcp(file);
    (network.clients, network.paths) = paths(&file.classes, &nodes, &tcp)?;
    let transfers = file.transfers.iter().enumerate();
    let transfers = transfers.map(|(index, transfer)| transfer.transfer(index, &nodes, &tcp));
    network.transfers = transfers.collect::<Result<_, _>>()?;
    let sources = file.datagrams.iter().enumerate();
    let sources = sources.map(|(index, source)| source.source(index, &nodes, length));
    network.datagrams = sources.collect::<Result<_, _>>()?;
    let classes: Vec<_> = file.classes.iter().map(|class| class.name.as_str()).collect();
    network.router = file.controller.router(&network, &links, &nodes, &classes)?;
    Ok(Some((network, links)))
}

/// The file's key for what the simulator's own description calls `key`.
pub(crate) fn key_of(key: &str, file: &File) -> String {
    let (table, field) =
        key.split_once('.').map_or((key, String::new()), |(table, field)| (table, format!(".{field}")));
    let (table, index) = split_index(table);
    match (table, index) {
        ("wires", Some(index)) => format!("link[{index}]{field}"),
        ("transfers", Some(index)) => format!("transfer[{index}]{field}"),
        ("datagrams", Some(index)) => format!("datagrams[{index}]{field}"),
        ("router", _) => format!("controller{field}"),
        ("paths", Some(index)) => format!("class[{index}].server"),
        ("clients", Some(group)) => {
            let with_clients = file.classes.iter().enumerate().filter(|(_, class)| class.clients.is_some());
            let class = with_clients.map(|(index, _)| index).nth(group).unwrap_or(0);
            format!("class[{class}].clients{field}")
        }
        ("clients", None) => "class".to_owned(),
        ("transfers", None) => "transfer".to_owned(),
        _ => "link".to_owned(),
    }
}

/// Keys that say something of packets only.
fn check_nothing_needs_links(file: &File) -> Result<(), Problem> {
    let of_class = |name: &str, given: fn(&ClassFile) -> bool| {
        file.classes.iter().position(given).map(|index| format!("class[{index}].{name}"))
    };
    let needs = [
        of_class("clients", |class| class.clients.is_some()),
        of_class("server", |class| class.server.is_some()),
        (!file.transfers.is_empty()).then(|| "transfer".to_owned()),
        (!file.datagrams.is_empty()).then(|| "datagrams".to_owned()),
        file.network.tcp.is_some().then(|| "network.tcp".to_owned()),
        (file.controller.at == ControllerPlace::Router).then(|| "controller.at".to_owned()),
    ];
    match needs.into_iter().flatten().next() {
        Some(key) => wrong(key, "goes with [[link]]: without links there are no packets"),
        None => Ok(()),
    }
}

/// TCP of all clients. Links that mark packets need ends that understand the marks.
fn tcp(file: &File) -> TcpSettings {
    let tcp = match file.network.tcp.unwrap_or_default() {
        TcpName::Modern => TcpSettings::modern(),
        TcpName::Of2003 => TcpSettings::of_2003(),
    };
    TcpSettings { ecn: file.links.iter().any(|link| link.ecn), ..tcp }
}

/// Client groups and paths of the classes. A class without `clients` or `server` has those of the class
/// before.
fn paths(
    classes: &[ClassFile],
    nodes: &Nodes,
    tcp: &TcpSettings,
) -> Result<(Vec<ClientGroup>, Vec<ClassPath>), Problem> {
    let (mut groups, mut paths) = (Vec::<ClientGroup>::new(), Vec::<ClassPath>::new());
    for (index, class) in classes.iter().enumerate() {
        let key = format!("class[{index}]");
        if let Some(clients) = &class.clients {
            groups.push(clients.group(&format!("{key}.clients"), nodes)?);
        }
        let Some(group) = groups.last() else {
            return wrong(key, "missing key `clients`: at which node do its people sit?");
        };
        let server = match (&class.server, paths.last()) {
            (Some(name), _) => nodes.find(format!("{key}.server"), name)?,
            (None, Some(before)) => before.server,
            (None, None) => only_server(&key, classes, nodes)?,
        };
        nodes.check_way(format!("{key}.server"), group.at, server)?;
        paths.push(ClassPath { tcp: tcp.clone(), ..ClassPath::new(groups.len() - 1, server) });
    }
    Ok((groups, paths))
}

/// The only node without clients.
fn only_server(key: &str, classes: &[ClassFile], nodes: &Nodes) -> Result<u32, Problem> {
    let has_clients = |name: &String| {
        classes.iter().any(|class| class.clients.as_ref().is_some_and(|clients| clients.at == *name))
    };
    let servers: Vec<_> = nodes.names().iter().filter(|name| !has_clients(name)).cloned().collect();
    match servers.as_slice() {
        [server] => nodes.find(key, server),
        _ => wrong(key, format!("missing key `server`: at which node, of {}?", nodes.names().join(", "))),
    }
}

impl ClientsFile {
    fn group(&self, key: &str, nodes: &Nodes) -> Result<ClientGroup, Problem> {
        let (Text(rates), Text(delays)) = (self.rate, self.delay);
        let (
            Span { least: BitRate(slowest), most: BitRate(fastest) },
            Span { least: Time(shortest), most: Time(longest) },
        ) = (rates, delays);
        if shortest.is_zero() && !longest.is_zero() {
            return wrong(
                format!("{key}.delay"),
                "expected the shortest above zero: delays are drawn by factors",
            );
        }
        let access_buffer_packets = match self.buffer {
            None => ACCESS_BUFFER_PACKETS,
            Some(Text(Room(Buffer::Packets(packets)))) => packets,
            Some(Text(Room(Buffer::Bytes(_)))) => {
                return wrong(format!("{key}.buffer"), "expected packets: access links do not count bytes");
            }
        };
        Ok(ClientGroup {
            at: nodes.find(format!("{key}.at"), &self.at)?,
            count: self.count.get(),
            access_bits_per_s: (slowest, fastest),
            access_delay: (shortest, longest),
            access_buffer_packets,
        })
    }
}

impl TransferFile {
    fn transfer(&self, index: usize, nodes: &Nodes, tcp: &TcpSettings) -> Result<Transfer, Problem> {
        let key = format!("transfer[{index}]");
        check_name(&format!("{key}.name"), &self.name)?;
        let (from, to) = ends(&key, (&self.from, &self.to), nodes)?;
        Ok(Transfer {
            name: self.name.clone(),
            from,
            to,
            tcp: tcp.clone(),
            starts: self.starts.map_or(Duration::ZERO, |Text(Time(starts))| starts),
            bytes: self.bytes.map(|Text(ByteCount(bytes))| bytes),
        })
    }
}

impl DatagramsFile {
    fn source(&self, index: usize, nodes: &Nodes, length: Duration) -> Result<DatagramSource, Problem> {
        let key = format!("datagrams[{index}]");
        check_name(&format!("{key}.name"), &self.name)?;
        let (from, to) = ends(&key, (&self.from, &self.to), nodes)?;
        let during = self.during.map(|Text(stretch)| stretch);
        if during.is_some_and(|Stretch { from, .. }| from >= length) {
            return wrong(format!("{key}.during"), "the run is over by then");
        }
        Ok(DatagramSource {
            name: self.name.clone(),
            from,
            to,
            packet_bytes: self.packet_bytes.map_or(DATAGRAM_BYTES, Into::into),
            rate_bits_per_s: self.rate.0.0,
            starts: during.map_or(Duration::ZERO, |stretch| stretch.from),
            ends: during.map(|stretch| stretch.to),
        })
    }
}

/// From where to where something is sent, which are two nodes with a way between them.
fn ends(key: &str, (from, to): (&str, &str), nodes: &Nodes) -> Result<(u32, u32), Problem> {
    let (from, to) = (nodes.find(format!("{key}.from"), from)?, nodes.find(format!("{key}.to"), to)?);
    if from == to {
        return wrong(format!("{key}.to"), "it is sent to where it comes from");
    }
    nodes.check_way(format!("{key}.to"), from, to)?;
    Ok((from, to))
}
