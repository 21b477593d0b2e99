//! The network as a whole, as its owner builds and queries it. The effect of each event is in `run`.

use super::connection::Connection;
use super::datagrams::{DatagramBooks, DatagramSettings, Source, SourceId};
use super::discipline::DisciplineStatus;
use super::event::Event;
use super::feedback::{FeedbackBooks, FeedbackId, FeedbackSettings, FeedbackSource};
use super::flows::Flows;
use super::link::{Link, LinkBooks, LinkSettings};
use super::packet::FlowId;
use super::record::{FlowRecord, FlowSettings, TcpId};
use super::stage::Watch;
use super::tcp::{Segment, TcpSettings};
use super::topology::{LinkId, NodeId, RouteId, Topology, bounded};
use super::{Direction, NetworkError};
use crate::engine::{EventHash, Queue};
use flashweir_core::{Instant, Rng, limits};

/// Links, flows and sources in virtual time. See the [module](super) for how to use it.
#[derive(Debug)]
pub struct Network {
    pub(super) queue: Queue<Event>,
    pub(super) hash: EventHash,
    rng: Rng,
    pub(super) topology: Topology,
    pub(super) links: Vec<Link>,
    pub(super) watched: Vec<Watched>,
    pub(super) tcp: Vec<TcpSettings>,
    pub(super) flows: Flows,
    pub(super) sources: Vec<Source>,
    pub(super) feedback_sources: Vec<FeedbackSource>,
    pub(super) books: PacketBooks,
    /// True if links lose all that is offered to them.
    pub(super) is_cut: bool,
    /// Segments that the current event sends; empty between events, kept for its memory.
    pub(super) out: Vec<Segment>,
    /// Link and flow that the current event touched, for the checks after it.
    pub(super) touched_link: Option<LinkId>,
    pub(super) touched_flow: Option<FlowId>,
}

/// Location of packets, over the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketBooks {
    /// Given to a first link by a sender.
    pub sent: u64,
    /// Arrived at the end they were meant for.
    pub delivered: u64,
    /// Dropped by a link or a stage.
    pub dropped: u64,
    /// In a buffer or on a wire.
    pub held: u64,
}

/// Ends of a link at which the stage sees packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    pub(super) entering: bool,
    pub(super) leaving: bool,
}

impl Network {
    /// An empty network whose chances are drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            queue: Queue::new(),
            hash: EventHash::new(),
            rng: Rng::new(seed),
            topology: Topology::default(),
            links: Vec::new(),
            watched: Vec::new(),
            tcp: Vec::new(),
            flows: Flows::default(),
            sources: Vec::new(),
            feedback_sources: Vec::new(),
            books: PacketBooks::default(),
            is_cut: false,
            out: Vec::new(),
            touched_link: None,
            touched_flow: None,
        }
    }

    /// Adds a host or router.
    ///
    /// # Errors
    /// Beyond [`limits::SIM_NODES`].
    pub fn add_node(&mut self) -> Result<NodeId, NetworkError> {
        self.topology.add_node()
    }

    /// Adds one direction of a wire.
    ///
    /// # Errors
    /// For settings out of range, an unknown node, or beyond [`limits::SIM_LINKS`].
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        settings: &LinkSettings,
    ) -> Result<LinkId, NetworkError> {
        settings.check()?;
        bounded(self.links.len(), "links", limits::SIM_LINKS)?;
        let link = LinkId(self.links.len() as u32);
        self.topology.connect(link, from, to)?;
        self.links.push(Link::new(settings, self.rng.fork(u64::from(link.0))));
        self.watched.push(Watched::default());
        Ok(link)
    }

    /// Adds both directions of a wire, alike: first from `one` to `other`.
    ///
    /// # Errors
    /// As [`Network::add_link`].
    pub fn add_wire(
        &mut self,
        one: NodeId,
        other: NodeId,
        settings: &LinkSettings,
    ) -> Result<[LinkId; 2], NetworkError> {
        Ok([self.add_link(one, other, settings)?, self.add_link(other, one, settings)?])
    }

    /// Finds the way from a client to a server and back, with the fewest links. O(nodes + links).
    ///
    /// # Errors
    /// Where no links lead there or back, or beyond [`limits::SIM_ROUTES`].
    pub fn add_route(&mut self, client: NodeId, server: NodeId) -> Result<RouteId, NetworkError> {
        self.topology.add_route(client, server)
    }

    /// Adds TCP settings that flows can name.
    ///
    /// # Errors
    /// For settings out of range, or beyond [`limits::SIM_TCP_SETTINGS`].
    pub fn add_tcp(&mut self, settings: TcpSettings) -> Result<TcpId, NetworkError> {
        settings.check()?;
        bounded(self.tcp.len(), "sets of TCP settings", limits::SIM_TCP_SETTINGS)?;
        self.tcp.push(settings);
        Ok(TcpId(self.tcp.len() as u16 - 1))
    }

    /// Lets the stage given to [`Network::next`] see (and drop) the packets of `link`.
    ///
    /// # Errors
    /// For an unknown link.
    pub fn watch(&mut self, link: LinkId, watch: Watch) -> Result<(), NetworkError> {
        let index = link.0 as usize;
        let watched = self.watched.get_mut(index).ok_or(NetworkError::Unknown { what: "link", index })?;
        match watch {
            Watch::Entering => watched.entering = true,
            Watch::Leaving => watched.leaving = true,
        }
        Ok(())
    }

    /// Opens a flow whose client begins at `at`, which must not have passed.
    ///
    /// # Errors
    /// For an unknown route or TCP, or beyond [`limits::SIM_FLOWS`] or the bound on events.
    pub fn open(&mut self, at: Instant, settings: FlowSettings) -> Result<FlowId, NetworkError> {
        self.topology.knows_route(settings.route)?;
        let index = usize::from(settings.tcp.0);
        let tcp = self.tcp.get(index).ok_or(NetworkError::Unknown { what: "set of TCP settings", index })?;
        let flow = self.flows.next_id()?;
        self.flows.insert(flow, Connection::new(settings, FlowRecord::new(flow, settings.token, at), tcp));
        self.queue.schedule(at, Event::Start { flow })?;
        Ok(flow)
    }

    /// Lets the server of `flow` answer with `bytes` at `at`. Does nothing if the flow is gone by then, has
    /// no complete request, or is answered already. Returns whether the flow exists now.
    ///
    /// # Errors
    /// At the bound on events.
    pub fn respond(&mut self, at: Instant, flow: FlowId, bytes: u64) -> Result<bool, NetworkError> {
        let Some(connection) = self.flows.get_mut(flow) else { return Ok(false) };
        connection.response_bytes = bytes;
        self.queue.schedule(at, Event::Respond { flow })?;
        Ok(true)
    }

    /// Lets the client of `flow` go away at `at`: it sends a reset, and answers every later packet with
    /// another. Does nothing if the flow has ended by then. Returns whether the flow exists now.
    ///
    /// # Errors
    /// At the bound on events.
    pub fn abandon(&mut self, at: Instant, flow: FlowId) -> Result<bool, NetworkError> {
        if self.flows.get(flow).is_none() {
            return Ok(false);
        }
        self.queue.schedule(at, Event::Abandon { flow })?;
        Ok(true)
    }

    /// Takes the server's end of `flow` away at `at`: it sends a reset, and answers every later packet with
    /// another, until the client has heard of it or left. Does nothing if the flow is gone by then or is
    /// being answered. Returns whether the flow exists now.
    ///
    /// # Errors
    /// At the bound on events.
    pub fn reset(&mut self, at: Instant, flow: FlowId) -> Result<bool, NetworkError> {
        if self.flows.get(flow).is_none() {
            return Ok(false);
        }
        self.queue.schedule(at, Event::Reset { flow })?;
        Ok(true)
    }

    /// Sets whether every link loses all packets offered to it, until the next call. Packets already waiting
    /// or travelling still arrive.
    pub fn cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
    }

    /// Adds a constant-rate source, which begins by itself.
    ///
    /// # Errors
    /// For settings out of range, an unknown route, or beyond [`limits::SIM_SOURCES`].
    pub fn add_datagrams(&mut self, settings: DatagramSettings) -> Result<SourceId, NetworkError> {
        self.topology.knows_route(settings.route)?;
        bounded(self.sources.len(), "constant-rate sources", limits::SIM_SOURCES)?;
        let first_hop = self.topology.first_hop(settings.route, Direction::Up);
        self.sources.push(Source::new(settings, first_hop)?);
        let source = SourceId(self.sources.len() as u32 - 1);
        self.queue.schedule(settings.from, Event::Datagram { source })?;
        Ok(source)
    }

    /// Adds a source with feedback, which begins by itself.
    ///
    /// # Errors
    /// For settings out of range, an unknown route, or beyond [`limits::SIM_SOURCES`].
    pub fn add_feedback(&mut self, settings: FeedbackSettings) -> Result<FeedbackId, NetworkError> {
        self.topology.knows_route(settings.route)?;
        bounded(self.feedback_sources.len(), "sources with feedback", limits::SIM_SOURCES)?;
        let [up, down] =
            [Direction::Up, Direction::Down].map(|way| self.topology.first_hop(settings.route, way));
        self.feedback_sources.push(FeedbackSource::new(settings, up, down)?);
        let source = FeedbackId(self.feedback_sources.len() as u32 - 1);
        self.queue.schedule(settings.from, Event::Reported { source })?;
        Ok(source)
    }

    /// Wakes the owner at `at`, with `token`.
    ///
    /// # Errors
    /// At the bound on events.
    pub fn wake_at(&mut self, at: Instant, token: u64) -> Result<(), NetworkError> {
        Ok(self.queue.schedule(at, Event::Wake { token })?)
    }

    /// The time of the last event.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.queue.next_at()
    }

    /// The hash of all events so far, and their number.
    #[must_use]
    pub fn hash(&self) -> &EventHash {
        &self.hash
    }

    /// Counts of `link` so far.
    #[must_use]
    pub fn link(&self, link: LinkId) -> LinkBooks {
        self.links[link.0 as usize].books
    }

    /// Packets that wait before `link` now.
    #[must_use]
    pub fn waiting(&self, link: LinkId) -> usize {
        self.links[link.0 as usize].waiting()
    }

    /// Present estimates of the discipline of `link`.
    #[must_use]
    pub fn discipline(&self, link: LinkId) -> DisciplineStatus {
        self.links[link.0 as usize].discipline()
    }

    /// Counts of the packets of a source with feedback so far.
    #[must_use]
    pub fn feedback(&self, source: FeedbackId) -> FeedbackBooks {
        self.feedback_sources[source.0 as usize].books
    }

    /// Counts of a source's datagrams so far.
    #[must_use]
    pub fn datagrams(&self, source: SourceId) -> DatagramBooks {
        self.sources[source.0 as usize].books
    }

    /// The record of a flow so far; none once nothing is left of it.
    #[must_use]
    pub fn flow(&self, flow: FlowId) -> Option<FlowRecord> {
        let connection = self.flows.get(flow)?;
        Some(connection.record(&self.tcp[usize::from(connection.settings.tcp.0)]))
    }

    /// Flows that exist: those that have not ended, and those whose server waits for a last acknowledgement.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Present location of packets.
    #[must_use]
    pub fn packets(&self) -> PacketBooks {
        self.books
    }
}
