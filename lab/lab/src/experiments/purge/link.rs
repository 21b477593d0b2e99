//! The link that all runs share: who sends over it, under which rule, and what each flow gets.

use crate::experiments::ExperimentError;
use crate::experiments::laboratory::Simulation;
use flashweir_core::measure::jain_index;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_sim::network::{
    Buffer, Counter, Discipline, FeedbackBooks, FeedbackId, FeedbackSettings, LinkId, LinkSettings, Network,
    NetworkError, NoStage, PublishedSettings, PurgeSettings, RateControl, Rem, RouteId,
};

/// The rule at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Policing {
    /// Nothing but the full buffer.
    DropTail,
    /// REM: marks, and no flow is treated differently.
    Rem,
    /// BLACK's rule over REM's marks.
    BlackLike,
    /// Purge as published, with the published count of flows.
    Published,
    /// Purge as published, but with a right count of flows.
    PublishedCounted,
    /// Purge, repaired.
    Repaired,
}

impl Policing {
    /// Its column in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Rem => "REM",
            Self::BlackLike => "BLACK-like",
            Self::Published => "paper",
            Self::PublishedCounted => "paper, right count",
            Self::Repaired => "repaired",
        }
    }
}

/// Sources of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crowd {
    /// Vegas over prices.
    pub(super) tcp: u32,
    /// Constant-rate datagrams.
    pub(super) udp: u32,
    /// TCP that ignores marks and losses.
    pub(super) unresponsive_tcp: u32,
}

impl Crowd {
    /// The paper's: 12 % UDP and 3 % unresponsive TCP.
    pub(super) const fn of(flows: u32) -> Self {
        let (udp, unresponsive_tcp) = (flows * 12 / 100, flows * 3 / 100);
        Self { tcp: flows - udp - unresponsive_tcp, udp, unresponsive_tcp }
    }

    pub(super) const fn flows(&self) -> u32 {
        self.tcp + self.udp + self.unresponsive_tcp
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) policing: Policing,
    pub(super) crowd: Crowd,
    /// Bits a second of each UDP and each unresponsive TCP source.
    pub(super) udp_bits_per_s: u64,
    pub(super) unresponsive_bits_per_s: u64,
    pub(super) length_s: u64,
    pub(super) seed: u64,
}

/// Bits a second of the bottleneck: the paper's throughputs add up to it.
pub(super) const LINK_BITS_PER_S: u64 = 10_000_000;
/// Of every packet: 1250 of them are the paper's buffer of 1250 KB.
pub(super) const PACKET_BYTES: u16 = 1_000;
pub(super) const BUFFER_PACKETS: u32 = 1_250;
/// The paper's b* of 250 KB.
pub(super) const TARGET_PACKETS: f64 = 250.0;
/// The price at which half of all packets is marked: with few packets a second a source reads the price best
/// there.
const PRICE_AIMED_AT: f64 = 693.0;
/// The part of a run that is measured: the last 60 %.
const MEASURED_FROM: f64 = 0.4;
/// Kilobits of one packet.
const KB_PER_PACKET: f64 = 8.0 * PACKET_BYTES as f64 / 1e3;
/// The queue is looked at so often.
const QUEUE_SAMPLES_PER_S: u64 = 20;
/// Groups of sources, each behind its own access link.
const ACCESS_LINKS: u64 = 10;

/// Outcome of a link: share of each flow and use of the link, in the measured part.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkOutcome {
    /// kb/s of each flow, headers included, by class.
    pub(super) tcp: Vec<f64>,
    pub(super) udp: Vec<f64>,
    pub(super) unresponsive_tcp: Vec<f64>,
    /// The same without repetitions.
    pub(super) tcp_goodput: Vec<f64>,
    pub(super) unresponsive_goodput: Vec<f64>,
    /// Mean queue, packets.
    pub(super) queue: f64,
    /// Part of the time that the link was sending.
    pub(super) used: f64,
    /// Its count of flows at the end; not a number where it does not count.
    pub(super) active_flows: f64,
    /// Mb/s of all TCP and of all UDP flows in each second from the start.
    pub(super) series: Vec<[f64; 2]>,
}

/// A number of a run, and what it is called.
pub(super) type Measure = (&'static str, fn(&LinkOutcome) -> f64);

impl LinkOutcome {
    /// Jain's index over all flows, 0 to 1.
    pub(super) fn jain(&self) -> f64 {
        let flows = self.tcp.iter().chain(&self.udp).chain(&self.unresponsive_tcp);
        jain_index(flows.copied()).unwrap_or(f64::NAN)
    }

    /// Jain's index as if each flow had its class's mean: what the paper's columns are.
    pub(super) fn class_mean_jain(&self) -> f64 {
        let classes = [&self.tcp, &self.udp, &self.unresponsive_tcp];
        let flows = classes.into_iter().flat_map(|class| std::iter::repeat_n(mean(class), class.len()));
        jain_index(flows).unwrap_or(f64::NAN)
    }

    /// The same of goodput.
    pub(super) fn class_mean_jain_of_goodput(&self) -> f64 {
        let classes = [&self.tcp_goodput, &self.udp, &self.unresponsive_goodput];
        let flows = classes.into_iter().flat_map(|class| std::iter::repeat_n(mean(class), class.len()));
        jain_index(flows).unwrap_or(f64::NAN)
    }

    /// Goodput of all flows, Mb/s.
    pub(super) fn system_goodput(&self) -> f64 {
        let flows = self.tcp_goodput.iter().chain(&self.udp).chain(&self.unresponsive_goodput);
        flows.sum::<f64>() / 1e3
    }
}

/// The mean of a class; not a number where it has no flows.
pub(super) fn mean(flows: &[f64]) -> f64 {
    flows.iter().sum::<f64>() / flows.len() as f64
}

/// The price of all rules but the published one. With this gain the queue is at its target after a minute,
/// with 100 flows and with 1000.
pub(super) fn rem() -> Rem {
    Rem {
        gamma: 0.2,
        update: Duration::from_millis(500),
        target_packets: TARGET_PACKETS,
        packet_bytes: PACKET_BYTES,
        ..Rem::default()
    }
}

/// With the paper's gain, which is in its rule as well; the period that it does not give is ours.
fn published_rem() -> Rem {
    Rem { gamma: 0.001, update: Duration::from_millis(20), is_price_bounded: false, ..rem() }
}

impl Policing {
    pub(super) fn discipline(self) -> Discipline {
        let period = Duration::from_secs(1);
        let published = |counter| PublishedSettings { rem: published_rem(), period, counter };
        match self {
            Self::DropTail => Discipline::DropTail,
            Self::Rem => Discipline::Rem(rem()),
            Self::BlackLike => Discipline::BlackLike { rem: rem(), period },
            Self::Published => Discipline::PublishedPurge(published(Counter::AsPublished)),
            Self::PublishedCounted => Discipline::PublishedPurge(published(Counter::MaximumLikelihood)),
            Self::Repaired => Discipline::Purge(PurgeSettings::over(rem())),
        }
    }
}

/// A network with the bottleneck and the ways to it.
pub(super) struct Plant {
    pub(super) network: Network,
    pub(super) bottleneck: LinkId,
    /// Through access links of different lengths: round trips of 80 to 120 ms.
    pub(super) routes: Vec<RouteId>,
    /// From the near end of the bottleneck: for sources that no round trip matters to.
    pub(super) direct: RouteId,
}

impl Plant {
    pub(super) fn new(policing: Policing, seed: u64) -> Result<Self, NetworkError> {
        let mut network = Network::new(seed);
        let (near, far) = (network.add_node()?, network.add_node()?);
        let wide = |delay_ms| {
            let delay = Duration::from_millis(delay_ms);
            LinkSettings::drop_tail(100_000_000, delay, Buffer::Packets(100_000))
        };
        let bottleneck = LinkSettings {
            rate_bits_per_s: LINK_BITS_PER_S,
            buffer: Buffer::Packets(BUFFER_PACKETS),
            discipline: policing.discipline(),
            ..wide(10)
        };
        let bottleneck = network.add_link(near, far, &bottleneck)?;
        network.add_link(far, near, &wide(10))?;
        let mut routes = Vec::new();
        for access in 0..ACCESS_LINKS {
            let host = network.add_node()?;
            network.add_wire(host, near, &wide(30 + 20 * access / (ACCESS_LINKS - 1)))?;
            routes.push(network.add_route(host, far)?);
        }
        let direct = network.add_route(near, far)?;
        Ok(Self { network, bottleneck, routes, direct })
    }

    /// Runs until `until_s`; adds what each class got in each second, and what was in the queue each time it
    /// was looked at.
    fn run(
        &mut self,
        until_s: u64,
        sources: &Sources,
        series: &mut Vec<[f64; 2]>,
        queue: &mut Vec<f64>,
    ) -> Result<(), NetworkError> {
        let delivered = |plant: &Self| {
            let of = |class: &[FeedbackId]| {
                class.iter().map(|&source| plant.network.feedback(source).delivered).sum::<u64>()
            };
            [of(&sources[0]), of(&sources[1])]
        };
        let mut before = delivered(self);
        for second in series.len() as u64..until_s {
            for sample in 1..=QUEUE_SAMPLES_PER_S {
                let at = Instant::from_millis(second * 1_000 + sample * 1_000 / QUEUE_SAMPLES_PER_S);
                while self.network.next(&mut NoStage, at)?.is_some() {}
                queue.push(self.network.waiting(self.bottleneck) as f64);
            }
            let after = delivered(self);
            series.push([0, 1].map(|class| (after[class] - before[class]) as f64 * KB_PER_PACKET / 1e3));
            before = after;
        }
        Ok(())
    }

    fn delivered(&self, sources: &Sources) -> [Vec<FeedbackBooks>; 3] {
        sources.each_ref().map(|class| class.iter().map(|&source| self.network.feedback(source)).collect())
    }
}

impl Simulation for Load {
    type Outcome = LinkOutcome;

    fn run(&self) -> Result<LinkOutcome, ExperimentError> {
        Ok(self.simulate()?)
    }
}

/// The sources of a run, by class: Vegas, UDP, unresponsive TCP.
type Sources = [Vec<FeedbackId>; 3];

impl Load {
    fn simulate(&self) -> Result<LinkOutcome, NetworkError> {
        let mut plant = Plant::new(self.policing, self.seed)?;
        let sources = self.add_sources(&mut plant)?;
        let measured_from_s = (self.length_s as f64 * MEASURED_FROM) as u64;
        let (mut series, mut queue) = (Vec::new(), Vec::new());
        plant.run(measured_from_s, &sources, &mut series, &mut Vec::new())?;
        let (before, link_before) = (plant.delivered(&sources), plant.network.link(plant.bottleneck));
        plant.run(self.length_s, &sources, &mut series, &mut queue)?;
        let (after, link) = (plant.delivered(&sources), plant.network.link(plant.bottleneck));
        let span_s = (self.length_s - measured_from_s) as f64;
        let rates = |class: usize, of: fn(&FeedbackBooks) -> u64| -> Vec<f64> {
            let flows = before[class].iter().zip(&after[class]);
            flows.map(|(before, after)| (of(after) - of(before)) as f64 * KB_PER_PACKET / span_s).collect()
        };
        let (all, new) = (|books: &FeedbackBooks| books.delivered, FeedbackBooks::delivered_first);
        Ok(LinkOutcome {
            tcp: rates(0, all),
            udp: rates(1, all),
            unresponsive_tcp: rates(2, all),
            tcp_goodput: rates(0, new),
            unresponsive_goodput: rates(2, new),
            queue: mean(&queue),
            used: (link.busy_ns - link_before.busy_ns) as f64 / 1e9 / span_s,
            active_flows: plant.network.discipline(plant.bottleneck).active_flows.unwrap_or(f64::NAN),
            series,
        })
    }

    /// Each begins within the first second. All packets can be marked, as where every flow pays prices; UDP's
    /// repetitions count as new packets.
    fn add_sources(&self, plant: &mut Plant) -> Result<Sources, NetworkError> {
        let mut rng = Rng::new(self.seed).fork(1);
        let share_pps =
            LINK_BITS_PER_S as f64 / 8.0 / f64::from(PACKET_BYTES) / f64::from(self.crowd.flows());
        let vegas = RateControl::Vegas { payment: share_pps * PRICE_AIMED_AT, phi: rem().phi };
        let udp = RateControl::Unresponsive { rate_bits_per_s: self.udp_bits_per_s };
        let unresponsive = RateControl::Unresponsive { rate_bits_per_s: self.unresponsive_bits_per_s };
        let Crowd { tcp, udp: udp_flows, unresponsive_tcp } = self.crowd;
        let mut add = |flows: u32, control, is_direct: bool| {
            let add_one = |n: u32| {
                let route =
                    if is_direct { plant.direct } else { plant.routes[n as usize % plant.routes.len()] };
                let from = Instant::from_nanos(rng.below(1_000_000_000));
                let (packet_bytes, until) = (PACKET_BYTES, Instant::MAX);
                plant.network.add_feedback(FeedbackSettings { route, packet_bytes, from, until, control })
            };
            (0..flows).map(add_one).collect::<Result<Vec<_>, _>>()
        };
        Ok([add(tcp, vegas, false)?, add(udp_flows, udp, true)?, add(unresponsive_tcp, unresponsive, true)?])
    }
}
