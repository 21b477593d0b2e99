//! Goal: nothing a scenario can say breaks conservation, bounds or determinism. Method: random scenarios,
//! each seed with some features and faults off entirely and the others skewed; the simulator's checkers
//! look after every step.
//!
//! `SWARM_SEEDS=10000 cargo test -p flashweir-sim --test sim request_swarm::` looks longer; a failure prints
//! what repeats it.

use flashweir_admission::flash_crowd::PlannerMode;
use flashweir_admission::sentry::{self, LadderStep, Policing, Published, PublishedRule};
use flashweir_core::{Duration, Instant, Rate, Reason, Rng};
use flashweir_sim::network::{self, Buffer, LinkSettings, Red, Rem, TcpSettings};
use flashweir_sim::request::{
    ClassModel, ClassPath, ClientGroup, DatagramSource, Departed, Discipline, Fault, FaultKind,
    FlashCrowdPolicy, Memory, NetworkModel, Overflow, PacketNetwork, Policy, RouterPlace, Scenario,
    SentryPolicy, ServerModel, ShedReason, Transfer, Wire, Work, run,
};
use flashweir_sim::router::{Controller, Reading, RouterSettings};
use flashweir_testkit::number_from_environment;
use flashweir_workload::documents::{Pareto, Popularity, Sizes};
use flashweir_workload::people::{Habits, Retry, Session, SessionLength, Wait};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::num::NonZeroU32;

const SEEDS: u64 = 150;
const LENGTH_S: u64 = 12;
/// Long enough for a planner to have learned what is usual.
const CROWD_COMES_S: u64 = 6;

/// Fewer classes of people may come: some of the policy's have no people.
const POLICY_CLASSES: u64 = 3;

struct Dice(Rng);

impl Dice {
    fn one_in(&mut self, sides: u64) -> bool {
        self.0.below(sides) == 0
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.between(from, to))
    }

    fn maybe<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(2).then(|| some(self))
    }

    fn wait(&mut self) -> Wait {
        match self.0.below(3) {
            0 => Wait::Constant(self.millis(0, 2_000)),
            1 => Wait::Exponential { mean: self.millis(1, 2_000) },
            _ => Wait::Uniform { from: self.millis(0, 100), to: self.millis(101, 2_000) },
        }
    }

    fn work(&mut self) -> Work {
        match self.0.below(5) {
            0 => Work::Constant(self.millis(0, 20)),
            1 => Work::Exponential { mean: self.millis(1, 20) },
            2 => Work::PerByte { bytes_per_s: self.between(10_000, 10_000_000) },
            3 => Work::Pareto { shape: 1.2, least: self.millis(1, 5), most: self.millis(100, 5_000) },
            _ => Work::TwoPoint { short: self.millis(0, 5), long: self.millis(5, 200), long_share: 0.1 },
        }
    }

    fn class(&mut self, number: u64) -> ClassModel {
        let session = Session {
            requests: if self.one_in(2) {
                SessionLength::Geometric { mean: 3.0 }
            } else {
                SessionLength::Exactly(NonZeroU32::MIN)
            },
            think: self.wait(),
        };
        let retry = Retry { share: 0.8, tries_most: self.between(1, 5) as u32, ..Retry::default() };
        ClassModel {
            host: self.between(0, 2) as u32,
            policy_class: self.0.below(POLICY_CLASSES) as u8,
            popularity: Popularity::zipf(0.8, self.between(1, 50) as u32).unwrap(),
            habits: Habits { patience: self.maybe(Self::wait), session, retry: self.maybe(|_| retry) },
            goes_on_unserved: self.one_in(2),
            timeout: self.millis(1, 3_000),
            sizes: if self.one_in(2) { Sizes::Constant(self.between(0, 30_000)) } else { small_pages() },
            ..ClassModel::new(format!("class {number}"), self.work())
        }
    }

    fn server(&mut self) -> ServerModel {
        let request_bytes = self.between(0, 20) << 20;
        ServerModel {
            discipline: if self.one_in(2) { Discipline::Shared } else { Discipline::FirstCome },
            processors: NonZeroU32::new(self.between(1, 4) as u32).unwrap(),
            workers: self.maybe(|dice| NonZeroU32::new(dice.between(1, 30) as u32).unwrap()),
            queue: self.maybe(|dice| dice.between(0, 100) as u32),
            overflow: match self.0.below(3) {
                0 => Overflow::Drop,
                1 => Overflow::Reset,
                _ => Overflow::Refuse { cost: self.millis(0, 4) },
            },
            memory: self.maybe(|_| Memory {
                memory_bytes: 256 << 20,
                base_bytes: 1 << 20,
                request_bytes,
                penalty: 10.0,
            }),
            contention: if self.one_in(4) { 0.02 } else { 0.0 },
            departed: if self.one_in(2) { Departed::Stops } else { Departed::WorksOn },
        }
    }

    fn fault(&mut self) -> Fault {
        let kind = match self.0.below(4) {
            0 => FaultKind::Crash,
            1 => FaultKind::Slow(self.between(1, 50) as f64),
            2 => FaultKind::LinkCut,
            _ => FaultKind::LostFeedback(0.5),
        };
        let start = Instant::ZERO + self.millis(0, 1_000 * LENGTH_S);
        Fault { kind, during: start..start + self.millis(1, 3_000) }
    }

    fn network(&mut self, classes: u64) -> NetworkModel {
        if !self.one_in(3) {
            return NetworkModel::Delay(self.maybe(|dice| dice.millis(0, 200)).unwrap_or_default());
        }
        let tcp = TcpSettings {
            ecn: self.one_in(2),
            syn_timeout: self.millis(100, 3_000),
            syn_tries: self.between(1, 7) as u32,
            // Flows that are given up belong into a swarm of twelve seconds, too.
            timeouts: self.between(1, 5) as u32,
            ..if self.one_in(2) { TcpSettings::modern() } else { TcpSettings::of_2003() }
        };
        let path = |dice: &mut Self| ClassPath {
            tcp: tcp.clone(),
            ..ClassPath::new(dice.between(0, 1) as usize, 1)
        };
        let paths = (0..classes).map(|_| path(self)).collect();
        NetworkModel::Packets(Box::new(PacketNetwork {
            nodes: 3,
            wires: vec![self.wire([0, 1]), self.wire([2, 0])],
            clients: vec![self.clients(0), self.clients(2)],
            paths,
            router: self.maybe(|dice| dice.router(classes)),
            transfers: self.maybe(|dice| dice.transfer(&tcp)).into_iter().collect(),
            datagrams: self.maybe(Self::datagrams).into_iter().collect(),
        }))
    }

    fn wire(&mut self, ends: [u32; 2]) -> Wire {
        Wire { ends, there: self.link(), back: self.link() }
    }

    fn link(&mut self) -> LinkSettings {
        let discipline = match self.0.below(4) {
            0 => network::Discipline::Red(Red {
                threshold_low: 3.0,
                threshold_high: 9.0,
                probability_max: 0.2,
                weight: 0.05,
                packet_bytes: 1_500,
                marks: self.one_in(2),
            }),
            1 => {
                network::Discipline::Rem(Rem { target_packets: 5.0, marks: self.one_in(2), ..Rem::default() })
            }
            _ => network::Discipline::DropTail,
        };
        LinkSettings {
            rate_bits_per_s: self.between(100_000, 20_000_000),
            delay: self.millis(0, 50),
            buffer: Buffer::Packets(self.between(0, 100) as u32),
            discipline,
            loss: self.maybe(|dice| dice.0.unit_f64() * 0.2).unwrap_or(0.0),
        }
    }

    fn clients(&mut self, at: u32) -> ClientGroup {
        let (rate, delay) = (self.between(20_000, 10_000_000), self.millis(1, 100));
        ClientGroup {
            access_bits_per_s: (rate, rate * self.between(1, 10)),
            access_delay: (delay, delay * self.between(1, 10) as u32),
            ..ClientGroup::alike(at, self.between(1, 20) as u32, rate, delay)
        }
    }

    fn router(&mut self, classes: u64) -> RouterPlace {
        let controller = match self.0.below(3) {
            0 => Controller::None,
            1 => Controller::Static(Rate::from_per_second(self.between(1, 100) as f64)),
            _ => Controller::News(PlannerMode::Repaired),
        };
        let interval = Duration::from_secs(self.between(1, 4));
        let hot_spots = self.one_in(2);
        RouterPlace {
            wire: self.between(0, 1) as usize,
            settings: RouterSettings { controller, interval, reading: Reading::Corrected, hot_spots },
            first_tick: self.millis(1, 1_000),
            guarded: (0..classes).map(|_| !self.one_in(4)).collect(),
        }
    }

    fn transfer(&mut self, tcp: &TcpSettings) -> Transfer {
        Transfer {
            name: "transfer".to_owned(),
            from: 1,
            to: 2,
            tcp: tcp.clone(),
            starts: self.millis(0, 5_000),
            bytes: self.maybe(|dice| dice.between(1, 1_000_000)),
        }
    }

    fn datagrams(&mut self) -> DatagramSource {
        DatagramSource {
            name: "datagrams".to_owned(),
            from: 0,
            to: 1,
            packet_bytes: self.between(40, 1_500) as u16,
            rate_bits_per_s: self.between(10_000, 2_000_000),
            starts: self.millis(0, 5_000),
            ends: self.maybe(|dice| dice.millis(5_000, 12_000)),
        }
    }

    fn sentry(&mut self) -> SentryPolicy {
        let mut policy = sentry::Policy::single(self.millis(200, 2_000));
        policy.classes = (0..POLICY_CLASSES).map(|_| self.policy_class()).collect();
        policy.policing = match self.0.below(8) {
            0 => Policing::Batch,
            1 => Policing::Threshold,
            2 => Policing::Auto,
            3 => Policing::Published(self.published()),
            _ => Policing::Reservation,
        };
        policy.ladder = if self.one_in(4) { self.ladder() } else { Vec::new() };
        let workers = if self.one_in(2) { 1 } else { self.between(2, 8) as usize };
        SentryPolicy { workers, ..SentryPolicy::new(policy) }
    }

    fn published(&mut self) -> Published {
        let rule = match self.0.below(3) {
            0 => PublishedRule::Batch { delay_step: self.millis(0, 100), is_whole: self.one_in(2) },
            1 => PublishedRule::Threshold {
                period: self.millis(100, 15_000),
                newest_milli: self.between(1, 1_000) as u32,
                utilisation_milli: self.between(500, 1_000) as u32,
                is_capped: self.one_in(2),
            },
            _ => PublishedRule::Reservation { step: self.between(0, 8) as u32 },
        };
        let (servers, service_time) = (self.between(0, 4) as u32, self.millis(1, 100));
        Published { rule, servers, service_time, quantile_milli: self.between(1_000, 6_000) as u32 }
    }

    fn ladder(&mut self) -> Vec<LadderStep> {
        let first = LadderStep { below_rps: self.between(10, 500) as f64, target: self.millis(100, 1_000) };
        vec![first, LadderStep { below_rps: f64::INFINITY, target: self.millis(1_000, 3_000) }]
    }

    fn policy_class(&mut self) -> sentry::ClassPolicy {
        sentry::ClassPolicy {
            // Some are worth the same.
            revenue: self.between(1, 3) as f64,
            guaranteed_rate: Rate::from_per_second(
                self.maybe(|dice| dice.between(1, 50) as f64).unwrap_or(0.0),
            ),
            target: self.maybe(|dice| dice.millis(100, 3_000)),
            queue: self.maybe(|dice| dice.between(0, 200) as u32),
        }
    }

    fn policy(&mut self) -> Policy {
        let mut news = FlashCrowdPolicy::default();
        news.settings.gates = self.between(1, 3) as usize;
        news.settings.shadow = self.one_in(3);
        news.first_tick = self.millis(0, 1_000);
        match self.0.below(4) {
            0 => Policy::None,
            1 => Policy::flash_crowd(news),
            2 => Policy::sentry(self.sentry()),
            _ => Policy::StaticRate { rate: Rate::from_per_second(self.between(1, 500) as f64), burst: 20 },
        }
    }
}

fn small_pages() -> Sizes {
    Sizes::Pareto(Pareto::with_minimum(1.3, 1_170.0, 1_000_000).unwrap())
}

fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice(Rng::new(seed));
    let classes = dice.between(1, 3);
    let streams = (0..classes).map(|class| {
        let (quiet, crowd) = (dice.between(1, 100) as f64, dice.between(1, 800) as f64);
        let (start, length) = (Duration::from_secs(CROWD_COMES_S), Duration::from_secs(LENGTH_S));
        let profile = RateProfile::step(quiet, crowd, start, length).unwrap();
        let arrivals =
            if dice.one_in(4) { ArrivalProcess::Constant(profile) } else { ArrivalProcess::Poisson(profile) };
        Stream { arrivals, classes: vec![Share { class: class as u16, weight: 1.0 }] }
    });
    let streams = streams.collect();
    Scenario {
        schedule: Schedule::new(streams, seed).unwrap(),
        classes: (0..classes).map(|number| dice.class(number)).collect(),
        seed,
        network: dice.network(classes),
        policy: dice.policy(),
        requests_in_flight: dice.maybe(|dice| dice.between(0, 200)),
        server: dice.server(),
        faults: (0..dice.between(0, 5)).map(|_| dice.fault()).collect(),
        bin: Duration::from_millis(dice.between(100, 3_000)),
    }
}

fn several_workers(scenario: &Scenario) -> bool {
    scenario.policy.sentry_policy().is_some_and(|sentry| sentry.workers > 1)
}

#[test]
fn whatever_happens_adds_up() {
    let mut seen = [0u64; 22];
    let (from, seeds) =
        (number_from_environment("SWARM_FROM", 0), number_from_environment("SWARM_SEEDS", SEEDS));
    for seed in from..from + seeds {
        // A failing check panics; this is what repeats it.
        println!("SWARM_FROM={seed} SWARM_SEEDS=1 cargo test -p flashweir-sim --test sim request_swarm::");
        let scenario = scenario(seed);
        let outcome = run(&scenario).unwrap();
        let totals = outcome.totals();
        let again = (seed % 10 == 0).then(|| run(&scenario).unwrap().event_hash);
        assert_eq!(again.unwrap_or(outcome.event_hash), outcome.event_hash, "seed {seed}");
        assert_eq!((totals.in_flight(), outcome.gate.lost()), (0, 0), "seed {seed}");
        assert_eq!(outcome.began_within(0..usize::MAX), totals, "seed {seed}");
        let completed = outcome.classes.iter().map(|class| class.latency_us.count()).sum::<u64>();
        assert_eq!(completed, totals.completed, "seed {seed}");
        let packets = outcome.packets.as_ref();
        let counts = [
            totals.goodput,
            totals.shed[ShedReason::Gateway(Reason::FlashCrowd).index()],
            totals.shed[ShedReason::StaticRate.index()],
            totals.server_refused,
            totals.timed_out,
            totals.abandoned,
            totals.broken,
            outcome.server.stopped,
            outcome.gate.shed_in_shadow,
            totals.shed[ShedReason::Gateway(Reason::Capacity).index()],
            totals.shed[ShedReason::Gateway(Reason::Deadline).index()],
            outcome.gate.left,
            totals.shed[ShedReason::Gateway(Reason::Reserved).index()],
            totals.shed[ShedReason::Gateway(Reason::ClientShare).index()],
            totals.shed[ShedReason::Gateway(Reason::Threshold).index()],
            totals.shed[ShedReason::Gateway(Reason::Batch).index()],
            if several_workers(&scenario) { outcome.gate.left.min(totals.shed_total()) } else { 0 },
            packets.map_or(0, |_| outcome.gate.left),
            packets.map_or(0, |packets| packets.packets.dropped),
            packets.map_or(0, |_| totals.broken),
            packets.map_or(0, |packets| packets.transfers.iter().flat_map(|it| &it.received_bytes).sum()),
            packets.and_then(|it| it.router.as_ref()).map_or(0, |router| router.totals.shed),
        ];
        seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += u64::from(count > 0));
    }
    // A swarm in which something never happens tests nothing of it.
    assert!(seeds < SEEDS || seen.iter().all(|&runs| runs >= 3), "{seen:?}");
}
