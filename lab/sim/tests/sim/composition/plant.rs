//! Small worlds with one bottleneck each, and what a composition makes of a crowd there.

use flashweir_admission::flash_crowd::PlannerMode;
use flashweir_admission::flash_crowd::Settings;
use flashweir_admission::pipeline::StageName;
use flashweir_admission::sentry;
use flashweir_core::{Duration, Rate, Reason};
use flashweir_sim::network::{Buffer, LinkSettings};
use flashweir_sim::request::{
    ClassModel, ClassPath, ClientGroup, FlashCrowdPolicy, NetworkModel, PacketNetwork, Policy, RouterPlace,
    RunOutcome, Scenario, SentryPolicy, ServerModel, ShedReason, Wire, Work, run,
};
use flashweir_sim::router::{Controller, Reading, RouterSettings};
use flashweir_workload::people::Habits;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

/// Seconds of calm at half of what the plant can carry, and of the crowd after it.
pub(crate) const CALM_S: u64 = 12;
pub(crate) const CROWD_S: u64 = 24;
const SETTLING_S: u64 = 4;
const TARGET: Duration = Duration::from_secs(1);

/// Resource that is short.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plant {
    /// Processors that share their time among the requests at the origin.
    Processor { count: u32, work: Duration },
    /// Processors that take requests as they come, with a router in front that sees packets only.
    BehindRouter { count: u32, work: Duration },
    /// The link to the clients, with packets of buffer.
    Link { bits_per_s: u64, packets: u32, answer_bytes: u64 },
}

impl Plant {
    /// Requests per second that it can carry.
    pub(crate) fn capacity_rps(self) -> f64 {
        match self {
            Self::Processor { count, work } | Self::BehindRouter { count, work } => {
                f64::from(count) / work.as_secs_f64()
            }
            Self::Link { bits_per_s, answer_bytes, .. } => bits_per_s as f64 / 8.0 / answer_bytes as f64,
        }
    }

    /// Seconds of the crowd that are not judged: what stood in a buffer before any stage could know is worked
    /// off first.
    fn settling_s(self) -> u64 {
        let buffered_s = match self {
            Self::Link { bits_per_s, packets, .. } => f64::from(packets) * 1_500.0 * 8.0 / bits_per_s as f64,
            _ => 0.0,
        };
        SETTLING_S + (2.0 * buffered_s) as u64
    }

    fn scenario(self, times: f64, policy: Policy, seed: u64) -> Scenario {
        let is_guarded = policy != Policy::None;
        let capacity_rps = self.capacity_rps();
        let (calm, crowd) = (Duration::from_secs(CALM_S), Duration::from_secs(CALM_S + CROWD_S));
        let profile =
            RateProfile::step(0.5 * capacity_rps, times * capacity_rps, calm, crowd).expect("a profile");
        let schedule = Schedule::one(ArrivalProcess::Poisson(profile), seed);
        let base = |work, server| {
            let class = ClassModel::new("all", work);
            Scenario { policy, seed, ..Scenario::new(schedule, class, server) }
        };
        match self {
            Self::Processor { count, work } => {
                base(Work::Exponential { mean: work }, ServerModel::processor_sharing(count))
            }
            Self::BehindRouter { count, work } => {
                let mut scenario =
                    base(Work::Exponential { mean: work }, ServerModel::first_come(count, 10_000));
                // A connection that is dropped tries again after a second: a client that was admitted and
                // served counts.
                scenario.classes[0].good_within = scenario.classes[0].timeout;
                let wide = LinkSettings::drop_tail(
                    1_000_000_000,
                    Duration::from_millis(10),
                    Buffer::Packets(10_000),
                );
                let mode = PlannerMode::Repaired;
                let interval = Duration::from_secs(1);
                let controller = if is_guarded { Controller::News(mode) } else { Controller::None };
                let settings = RouterSettings {
                    controller,
                    interval,
                    reading: Reading::usual_for(mode),
                    hot_spots: true,
                };
                let router = RouterPlace { wire: 0, settings, first_tick: interval, guarded: vec![true] };
                scenario.policy = Policy::None;
                scenario.network = NetworkModel::Packets(Box::new(PacketNetwork {
                    nodes: 2,
                    wires: vec![Wire { ends: [0, 1], there: wide.clone(), back: wide }],
                    clients: vec![ClientGroup::alike(0, 200, 100_000_000, Duration::from_millis(1))],
                    paths: vec![ClassPath::new(0, 1)],
                    router: Some(router),
                    ..PacketNetwork::default()
                }));
                scenario
            }
            Self::Link { bits_per_s, packets, answer_bytes } => {
                let mut scenario =
                    base(Work::Constant(Duration::from_millis(1)), ServerModel::processor_sharing(8));
                scenario.classes[0].sizes = flashweir_workload::documents::Sizes::Constant(answer_bytes);
                let narrow =
                    LinkSettings::drop_tail(bits_per_s, Duration::from_millis(10), Buffer::Packets(packets));
                let wide = LinkSettings::drop_tail(
                    1_000_000_000,
                    Duration::from_millis(10),
                    Buffer::Packets(10_000),
                );
                let network = PacketNetwork {
                    nodes: 2,
                    wires: vec![Wire { ends: [0, 1], there: wide, back: narrow }],
                    clients: vec![ClientGroup::alike(0, 200, 100_000_000, Duration::from_millis(1))],
                    paths: vec![ClassPath::new(0, 1)],
                    ..PacketNetwork::default()
                };
                scenario.network = NetworkModel::Packets(Box::new(network));
                scenario
            }
        }
    }
}

/// Stages that decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Composition {
    Unprotected,
    News,
    Sentry,
    Default,
    Static(f64),
}

impl Composition {
    pub(crate) fn policy(self) -> Policy {
        let news = || FlashCrowdPolicy { settings: Settings::default(), ..FlashCrowdPolicy::default() };
        let sentry = || SentryPolicy::new(sentry::Policy::single(TARGET));
        match self {
            Self::Unprotected => Policy::None,
            Self::News => Policy::flash_crowd(news()),
            Self::Sentry => Policy::sentry(sentry()),
            Self::Default => Policy::default_composition(news(), sentry()),
            Self::Static(rps) => Policy::StaticRate { rate: Rate::from_per_second(rps), burst: 10 },
        }
    }
}

/// Results of a crowd, from some seconds after it began to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Completed in time over what the plant can carry.
    pub(crate) goodput: f64,
    /// The processors' busy share times the share of completions in time.
    pub(crate) useful: f64,
    /// Requests refused before the crowd.
    pub(crate) refused_in_calm: u64,
}

pub(crate) fn crowd(plant: Plant, times: f64, composition: Composition, seed: u64) -> (Found, RunOutcome) {
    let outcome = run(&plant.scenario(times, composition.policy(), seed)).expect("a run");
    let judged = (CALM_S + plant.settling_s()) as usize..(CALM_S + CROWD_S) as usize;
    let counts = outcome.began_within(judged.clone());
    let level = outcome.mean_level(judged.clone());
    let seconds = judged.len() as f64;
    let processors = match plant {
        Plant::Processor { count, .. } | Plant::BehindRouter { count, .. } => f64::from(count),
        Plant::Link { .. } => 8.0,
    };
    let in_time = counts.goodput as f64 / counts.completed.max(1) as f64;
    let found = Found {
        goodput: counts.goodput as f64 / seconds / plant.capacity_rps(),
        useful: level.busy / processors * in_time,
        refused_in_calm: outcome.began_within(0..CALM_S as usize).shed_total(),
    };
    (found, outcome)
}

/// Refused by the ceiling and by the sentry, over a whole run of the default composition.
pub(crate) fn refused(plant: Plant, times: f64, seed: u64) -> [u64; 2] {
    let (_, outcome) = crowd(plant, times, Composition::Default, seed);
    let shed = outcome.totals().shed;
    let of = |stage: StageName| {
        let reasons = Reason::ALL.into_iter().filter(|&reason| StageName::of(reason) == stage);
        reasons.map(|reason| shed[ShedReason::Gateway(reason).index()]).sum()
    };
    [of(StageName::FlashCrowd), of(StageName::Sentry)]
}

/// Results of honest people beside others who leave at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BesideAborters {
    pub(crate) honest_in_time: f64,
    /// Plans with a ceiling.
    pub(crate) ceilings: usize,
}

/// An origin of 100 requests a second: 60 from people who stay all the time, and from some moment on 400 that
/// are given up 3 ms after they came.
pub(crate) fn aborters(seed: u64) -> BesideAborters {
    let work = Duration::from_millis(10);
    let seconds = Duration::from_secs;
    let rate = |from: f64, to: f64| {
        ArrivalProcess::Poisson(
            RateProfile::step(from, to, seconds(CALM_S), seconds(CALM_S + CROWD_S)).expect("a profile"),
        )
    };
    let streams = [rate(60.0, 60.0), rate(0.001, 400.0)].into_iter().zip(0..).map(|(arrivals, class)| {
        let classes = vec![Share { class, weight: 1.0 }];
        Stream { arrivals, classes }
    });
    let schedule = Schedule::new(streams.collect(), seed).expect("a schedule");
    let class = |name: &str| ClassModel::new(name, Work::Exponential { mean: work });
    let habits = Habits { patience: Some("3ms".parse().expect("a wait")), ..Habits::default() };
    let leaving = ClassModel { habits, ..class("leaving") };
    let policy = Composition::Default.policy();
    let staying = class("staying");
    let server = ServerModel::processor_sharing(1);
    let scenario = Scenario {
        policy,
        seed,
        classes: vec![staying.clone(), leaving],
        ..Scenario::new(schedule, staying, server)
    };
    let outcome = run(&scenario).expect("a run");
    let bins = outcome.classes[0].bins.iter().skip(CALM_S as usize).take(CROWD_S as usize);
    let (good, offered) =
        bins.fold((0, 0), |(good, offered), bin| (good + bin.goodput, offered + bin.offered));
    let ceilings = outcome.plans.iter().filter(|plan| plan.explanation.ceiling_rps.is_some()).count();
    BesideAborters { honest_in_time: good as f64 / offered as f64, ceilings }
}

/// One processor that can do `capacity_rps`, and demand of this profile.
pub(crate) fn offered(profile: RateProfile, capacity_rps: f64, by: Composition, seed: u64) -> RunOutcome {
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), seed);
    let class =
        ClassModel::new("all", Work::Exponential { mean: Duration::from_secs_f64(1.0 / capacity_rps) });
    let server = ServerModel::processor_sharing(1);
    let scenario = Scenario { policy: by.policy(), seed, ..Scenario::new(schedule, class, server) };
    run(&scenario).expect("a run")
}
