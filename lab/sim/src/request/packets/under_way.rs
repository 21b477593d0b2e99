//! The network of a run under way, with the router in it and the series of both.

use super::build::{Built, Path};
use super::outcome::{DatagramOutcome, PacketOutcome, RouterOutcome, TransferOutcome, WireOutcome};
use super::series::Series;
use super::{ConnectionBin, DatagramBin, LinkBin, PacketNetwork};
use crate::engine::EventHash;
use crate::network::{
    FlowId, FlowRecord, FlowSettings, Happening, LinkId, Network, NetworkError, NoStage, Response, SourceId,
};
use crate::request::gate::host_key;
use crate::request::slab::Id;
use crate::request::{Scenario, ScenarioError};
use crate::router::{GateCounts, Router, Tick};
use flashweir_core::limits::{SIM_PEOPLE, SIM_PLANS};
use flashweir_core::{Duration, Instant, Rng};

/// Bytes of a refusal: a status line, a few fields and a sentence are 420; the rest is what a link carries
/// beside them for a connection that is opened for one refusal and that the model leaves out (Ethernet,
/// timestamps, separate acknowledgements).
pub(in crate::request) const REFUSAL_BYTES: u64 = 600;
/// A request for a long transfer, bytes.
const TRANSFER_REQUEST_BYTES: u64 = 300;

/// The packet level of a run.
#[derive(Debug)]
pub(in crate::request) struct Packets {
    network: Network,
    paths: Vec<Path>,
    wires: Vec<([LinkId; 2], [Series<LinkBin>; 2])>,
    router: Option<RouterUnderWay>,
    transfers: Vec<TransferUnderWay>,
    datagrams: Vec<(SourceId, Series<DatagramBin>)>,
    connections: (ConnectionBin, Series<ConnectionBin>),
    bins: usize,
    bins_closed: usize,
}

#[derive(Debug)]
struct RouterUnderWay {
    router: Router,
    next_tick_at: Instant,
    ticks: Vec<Tick>,
    ticks_left_out: u64,
    series: Series<GateCounts>,
    /// Decides which samples get lost.
    losses: Rng,
}

#[derive(Debug)]
struct TransferUnderWay {
    /// None once nothing is left of it.
    flow: Option<FlowId>,
    received_bytes: u64,
    series: Series<u64>,
}

impl Packets {
    /// The network at time zero.
    pub(in crate::request) fn new(
        described: &PacketNetwork,
        scenario: &Scenario,
    ) -> Result<Self, ScenarioError> {
        let built = Built::new(described, scenario.seed)?;
        let router = described.router.as_ref().map(|place| RouterUnderWay {
            router: Router::new(&place.settings, scenario.seed),
            next_tick_at: Instant::from_duration(place.first_tick),
            ticks: Vec::new(),
            ticks_left_out: 0,
            series: Series::default(),
            losses: Rng::new(scenario.seed).fork(LOSSES),
        });
        let mut packets = Self {
            network: built.network,
            paths: built.paths,
            wires: built.wires.into_iter().map(|wire| (wire, Default::default())).collect(),
            router,
            transfers: Vec::new(),
            datagrams: built.datagrams.into_iter().map(|source| (source, Series::default())).collect(),
            connections: Default::default(),
            bins: scenario.bins(),
            bins_closed: 0,
        };
        for (index, (route, tcp)) in built.transfers.into_iter().enumerate() {
            let transfer = &described.transfers[index];
            let settings = FlowSettings {
                route,
                tcp,
                request_bytes: TRANSFER_REQUEST_BYTES,
                response: Response::Bytes(transfer.bytes.unwrap_or(u64::MAX)),
                token: u64::MAX - index as u64,
            };
            let opened = packets.network.open(Instant::from_duration(transfer.starts), settings);
            let flow = opened.map_err(super::error::at(format_args!("transfers[{index}]")))?;
            packets.transfers.push(TransferUnderWay {
                flow: Some(flow),
                received_bytes: 0,
                series: Series::default(),
            });
        }
        Ok(packets)
    }

    /// Time at which the next packet, timer or source does something.
    pub(in crate::request) fn next_at(&self) -> Option<Instant> {
        self.network.next_at()
    }

    pub(in crate::request) fn now(&self) -> Instant {
        self.network.now()
    }

    /// Lets everything happen up to and at `until`, or until something concerns a try.
    pub(in crate::request) fn next(
        &mut self,
        until: Instant,
    ) -> Result<Option<(Instant, Happening)>, NetworkError> {
        loop {
            let next = match &mut self.router {
                Some(RouterUnderWay { router, .. }) => self.network.next(router, until)?,
                None => self.network.next(&mut NoStage, until)?,
            };
            match next {
                Some((_, Happening::Ended(record))) if is_transfer(record.token) => {
                    let is_left = self.network.flow(record.flow).is_some();
                    self.transfer_ended(&record, is_left);
                }
                Some((_, Happening::Closed(record))) if is_transfer(record.token) => {
                    self.transfer_ended(&record, false);
                }
                next => {
                    if let Some((_, Happening::Ended(FlowRecord { end: Some(end), .. }))) = next {
                        self.connections.0.count(end);
                    }
                    return Ok(next);
                }
            }
        }
    }

    /// The connection of a try, which begins now.
    pub(in crate::request) fn open(
        &mut self,
        now: Instant,
        scenario: &Scenario,
        described: &PacketNetwork,
        (class, person): (u16, u64),
        attempt: Id,
    ) -> Result<FlowId, NetworkError> {
        let class = usize::from(class);
        let path = &self.paths[class];
        let flow = self.network.open(
            now,
            FlowSettings {
                route: path.route_of(person),
                tcp: path.tcp,
                request_bytes: described.paths[class].request_bytes,
                response: Response::Decided,
                token: attempt.number(),
            },
        )?;
        if let (Some(RouterUnderWay { router, .. }), Some(place)) = (&mut self.router, &described.router) {
            router.expect(flow, host_key(scenario.classes[class].host), place.guarded[class]);
        }
        Ok(flow)
    }

    /// Answers a request, at `at`.
    pub(in crate::request) fn respond(
        &mut self,
        at: Instant,
        flow: FlowId,
        bytes: u64,
    ) -> Result<(), NetworkError> {
        self.network.respond(at, flow, bytes).map(drop)
    }

    /// Lets a connection break at the server's end.
    pub(in crate::request) fn reset(&mut self, at: Instant, flow: FlowId) -> Result<(), NetworkError> {
        self.network.reset(at, flow).map(drop)
    }

    /// A client hangs up.
    pub(in crate::request) fn abandon(&mut self, now: Instant, flow: FlowId) -> Result<(), NetworkError> {
        self.network.abandon(now, flow).map(drop)
    }

    pub(in crate::request) fn cut(&mut self, is_cut: bool) {
        self.network.cut(is_cut);
    }

    /// Time at which the router's planner is next due.
    pub(in crate::request) fn next_tick_at(&self) -> Option<Instant> {
        self.router.as_ref().map(|router| router.next_tick_at)
    }

    /// The end of the router's interval; `lost_feedback` of its samples get lost. The ceiling of its plan, if
    /// it has one.
    pub(in crate::request) fn tick(
        &mut self,
        now: Instant,
        interval: Duration,
        lost_feedback: f64,
    ) -> Option<f64> {
        let router = self.router.as_mut()?;
        let is_lost = lost_feedback > 0.0 && router.losses.unit_f64() < lost_feedback;
        let tick = router.router.tick(now, is_lost);
        router.next_tick_at = now + interval;
        if router.ticks.len() < SIM_PLANS {
            router.ticks.push(tick);
        } else {
            router.ticks_left_out += 1;
        }
        tick.explanation?.ceiling_rps
    }

    /// Returns true if bins other than the last, which ends with the run, are still open.
    pub(in crate::request) fn has_bins_to_close(&self) -> bool {
        self.bins_closed + 1 < self.bins
    }

    /// A bin is over. O(wires + transfers + sources).
    pub(in crate::request) fn close_bin(&mut self) {
        self.bins_closed += 1;
        let network = &self.network;
        for (links, series) in &mut self.wires {
            for (link, series) in links.iter().zip(series) {
                series.close(network.link(*link).into());
            }
        }
        for transfer in &mut self.transfers {
            if let Some(record) = transfer.flow.and_then(|flow| network.flow(flow)) {
                transfer.received_bytes = record.response_bytes;
            }
            transfer.series.close(transfer.received_bytes);
        }
        for (source, series) in &mut self.datagrams {
            series.close(network.datagrams(*source).into());
        }
        let (ended, series) = &mut self.connections;
        series.close(*ended);
        if let Some(router) = &mut self.router {
            router.series.close(router.router.counts());
        }
    }

    /// The network's events and their hash.
    pub(in crate::request) fn hash(&self) -> &EventHash {
        self.network.hash()
    }

    /// Conservation of packets, of connections (`tries` of the world have one) and of the router's SYNs.
    pub(in crate::request) fn check(&self, tries: usize) -> Result<(), String> {
        self.network.check()?;
        let transfers = self.transfers.iter().filter(|transfer| transfer.flow.is_some()).count();
        let flows = self.network.flows();
        if flows != tries + transfers {
            return Err(format!("{flows} connections for {tries} tries and {transfers} transfers"));
        }
        match self.router.as_ref().map(|router| router.router.counts()) {
            Some(counts) if counts.offered != counts.admitted + counts.shed => {
                Err(format!("the router lost a connection: {counts:?}"))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::request) fn into_outcome(mut self, described: &PacketNetwork) -> PacketOutcome {
        self.close_bin();
        let bins = self.bins;
        let wires = self.wires.into_iter().map(|(_, [there, back])| WireOutcome {
            there: there.into_bins(bins),
            back: back.into_bins(bins),
        });
        let transfers = self.transfers.into_iter().zip(&described.transfers).map(|(transfer, described)| {
            TransferOutcome { name: described.name.clone(), received_bytes: transfer.series.into_bins(bins) }
        });
        let datagrams = self.datagrams.into_iter().zip(&described.datagrams).map(|((_, series), source)| {
            DatagramOutcome { name: source.name.clone(), bins: series.into_bins(bins) }
        });
        PacketOutcome {
            wires: wires.collect(),
            router: self.router.map(|router| RouterOutcome {
                totals: router.router.counts(),
                bins: router.series.into_bins(bins),
                ticks: router.ticks,
                ticks_left_out: router.ticks_left_out,
            }),
            transfers: transfers.collect(),
            datagrams: datagrams.collect(),
            connections: self.connections.1.into_bins(bins),
            packets: self.network.packets(),
        }
    }

    fn transfer_ended(&mut self, record: &FlowRecord, is_left: bool) {
        // Tokens of transfers count down from the largest.
        let transfer = &mut self.transfers[(u64::MAX - record.token) as usize];
        transfer.received_bytes = record.response_bytes;
        if !is_left {
            transfer.flow = None;
        }
    }
}

/// Transfer rate of a response as the gateway would measure it: from the first byte sent to the last
/// acknowledged, of responses beyond the first window, unless the transfer was too short to measure.
pub(in crate::request) fn rate_bytes_per_s(
    record: &FlowRecord,
    bytes: u64,
    segment_bytes: u16,
) -> Option<f32> {
    let transfer = record.acknowledged?.saturating_since(record.responded?);
    let is_large = bytes >= RATE_BYTES_MIN.max(FIRST_WINDOW_SEGMENTS * u64::from(segment_bytes));
    (is_large && transfer >= RATE_DURATION_MIN).then(|| (bytes as f64 / transfer.as_secs_f64()) as f32)
}

/// Tries are numbered by where they are kept, in the lower half of the token; transfers have numbers beyond
/// those places.
fn is_transfer(token: u64) -> bool {
    token & u64::from(u32::MAX) >= SIM_PEOPLE as u64
}

/// The gateway's rule (its `acks.rs`).
const RATE_BYTES_MIN: u64 = 15_000;
const FIRST_WINDOW_SEGMENTS: u64 = 10;
const RATE_DURATION_MIN: Duration = Duration::from_millis(10);
/// Names the fork that lost samples of the router are drawn from: "rlos" in ASCII.
const LOSSES: u64 = 0x726C_6F73;
