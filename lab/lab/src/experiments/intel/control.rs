//! The same server with the paper's controls: an uncontrolled client, controlled ones, and feedback to them
//! (§3.1, §4).
//!
//! Choices where the paper leaves a value open: abatement at half the onset; the queue length read once a
//! second, as its tool does; three repeated SYNs; all controlled clients alike, sharing what is left of the
//! load by the measured totals (§5.1: 32.58/s of the uncontrolled client, 99.55/s of all with three
//! controlled ones).

use super::runs::seeds;
use super::server::{IN_SERVICE, LENGTH, ONE_WAY_DELAY, QUEUE, REFUSAL, Spacing, WORK};
use crate::experiments::laboratory::Simulation;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule};
use flashweir_admission::ladder::{PUBLISHED_POLL, Published};
use flashweir_load::report::Point;
use flashweir_sim::request::senders::{
    FeedbackModel, LadderModel, NodeModel, Obedience, Scenario, SenderModel, SenderOutcome, Transport, run,
};
use flashweir_sim::request::{Overflow, ServerModel, Work};
use flashweir_workload::{ArrivalProcess, RateProfile, SelfSimilarity};
use std::sync::Arc;
use std::time::Duration;

/// Capacity of the server (§5.1: 225 % are 99.55/s).
pub(super) const CAPACITY_RPS: f64 = 44.2;
/// The uncontrolled client's rate at 160 % and 225 % (Table 1).
const UNCONTROLLED_RPS: f64 = 32.58;
/// Its part of lower loads: that at 160 %.
const UNCONTROLLED_PART: f64 = 0.456;
/// A response time is kept at these parts of all responses, for distributions.
pub(super) const PARTS: [f64; 20] = [
    0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
    0.99,
];

/// Overload control of the server and its clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Control {
    /// Not at all.
    None,
    /// §5.2: these parts of the controlled clients' connections are dropped while the queue has been at 20.
    Dropping([f64; 2]),
    /// §5.3: clients are asked for this much more time between requests from this queue length on.
    Throttling { onset: u64, gap_ms: u64 },
    /// §5.4: the same, and dropping from 200 on.
    Combined { gap_ms: u64 },
    /// §5.5: the last controlled client has lower thresholds than the others.
    Priorities { gap_ms: u64 },
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Controlled {
    pub(super) control: Control,
    pub(super) spacing: Spacing,
    /// Offered, in parts of what the server can do.
    pub(super) load: f64,
    /// Controlled clients.
    pub(super) clients: u32,
    pub(super) transport: Transport,
    /// The part of feedback messages that get lost.
    pub(super) lost_share: f64,
    pub(super) seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Served per second.
    pub(super) ok_rps: f64,
    /// Refused as too busy per second.
    pub(super) refused_rps: f64,
    /// Mean requests in the queue.
    pub(super) waiting: f64,
    pub(super) all: Group,
    pub(super) uncontrolled: Group,
    /// All controlled clients together.
    pub(super) controlled: Group,
    /// The last of them, which has the lowest thresholds where they differ.
    pub(super) lowest: Group,
}

/// A number of a run.
pub(super) type Value = fn(&Shown) -> f64;

/// Some clients.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) ok_rps: f64,
    /// Mean of the served, seconds.
    pub(super) response_s: f64,
    /// The response times at [`PARTS`], seconds.
    pub(super) quantiles_s: Vec<f64>,
}

impl Controlled {
    /// At 225 %, with three controlled clients and evenly spaced requests, as most of the paper's figures.
    pub(super) const fn heavy(control: Control) -> Self {
        let transport = Transport::Edges;
        // 99.55/s.
        Self { control, spacing: Spacing::Even, load: 2.252, clients: 3, transport, lost_share: 0.0, seed: 0 }
    }

    /// At 160 % with two.
    pub(super) const fn moderate(control: Control) -> Self {
        // 71.42/s.
        Self { load: 1.616, clients: 2, ..Self::heavy(control) }
    }

    fn senders(&self) -> Vec<SenderModel> {
        let offered_rps = self.load * CAPACITY_RPS;
        let uncontrolled_rps = UNCONTROLLED_RPS.min(UNCONTROLLED_PART * offered_rps);
        let each_rps = (offered_rps - uncontrolled_rps) / f64::from(self.clients);
        let obedience = match self.control {
            Control::None | Control::Dropping(_) => Obedience::Ignores,
            Control::Throttling { gap_ms, .. }
            | Control::Combined { gap_ms }
            | Control::Priorities { gap_ms } => Obedience::Stretches([Duration::from_millis(gap_ms); 4]),
        };
        let client = |rate_rps, number: u64| arrivals(self.spacing, rate_rps, self.seed * 16 + number);
        let mut senders = vec![SenderModel::new(client(uncontrolled_rps, 0), Obedience::Ignores)];
        for number in 0..self.clients {
            let is_last = number + 1 == self.clients;
            let dropped_share = match self.control {
                Control::Dropping(shares) => shares[usize::from(is_last)],
                Control::Combined { .. } => 1.0,
                Control::None | Control::Throttling { .. } | Control::Priorities { .. } => 0.0,
            };
            let rank = u8::from(is_last && matches!(self.control, Control::Priorities { .. }));
            let arrivals = client(each_rps, u64::from(number) + 1);
            senders.push(SenderModel { rank, dropped_share, ..SenderModel::new(arrivals, obedience) });
        }
        senders
    }

    fn scenario(&self) -> Scenario {
        let settings = match self.control {
            Control::None => None,
            Control::Dropping(_) => Some(Published::Dropping { discard: 20 }),
            Control::Throttling { onset, .. } => Some(Published::Throttling { onset }),
            Control::Combined { .. } => Some(Published::Combined { onset: 150, discard: 200 }),
            Control::Priorities { .. } => Some(Published::TwoPriorities),
        };
        let poll = PUBLISHED_POLL;
        let ladder = settings.map_or(LadderModel::None, |settings| LadderModel::Published { settings, poll });
        let overflow = Overflow::Refuse { cost: REFUSAL };
        let server = ServerModel { queue: Some(QUEUE), overflow, ..ServerModel::first_come(1, IN_SERVICE) };
        let feedback = FeedbackModel {
            transport: self.transport,
            lost_share: self.lost_share,
            ..FeedbackModel::reliable()
        };
        Scenario {
            seed: self.seed,
            length: LENGTH,
            measured: Duration::ZERO..LENGTH,
            one_way_delay: ONE_WAY_DELAY,
            target: LENGTH,
            senders: self.senders(),
            node: NodeModel { server, work: Work::Exponential { mean: WORK }, sentry: None, ladder },
            feedback,
            bin: Duration::from_secs(1),
        }
    }
}

/// Arrivals at this very mean rate over the whole run: of a self-similar process, the first as many as that
/// makes, stretched in time.
fn arrivals(spacing: Spacing, rate_rps: f64, seed: u64) -> ArrivalProcess {
    // Holds because the experiments' rates are valid, as are the constants.
    let profile = |length| RateProfile::constant(rate_rps, length).expect("a rate");
    let Spacing::SelfSimilar { shortest } = spacing else {
        return ArrivalProcess::Constant(profile(LENGTH));
    };
    let process = SelfSimilarity::new(1.4, Duration::from_millis(100))
        .and_then(|similarity| similarity.with_shortest(shortest))
        .and_then(|similarity| ArrivalProcess::self_similar(profile(4 * LENGTH), similarity));
    let process = process.expect("valid settings");
    let count = (rate_rps * LENGTH.as_secs_f64()) as usize;
    let moments: Vec<Duration> = process.moments(seed).take(count).collect();
    let factor = LENGTH.as_secs_f64() / moments.last().map_or(1.0, Duration::as_secs_f64);
    let stretched: Vec<Duration> = moments.iter().map(|it| it.mul_f64(factor).min(LENGTH)).collect();
    ArrivalProcess::given_within(stretched, LENGTH).expect("moments in order")
}

impl Simulation for Controlled {
    type Outcome = Shown;

    fn run(&self) -> Result<Shown, ExperimentError> {
        let outcome = run(&self.scenario())?;
        let seconds = LENGTH.as_secs();
        let bins = 0..seconds as usize;
        let waiting: u64 = outcome.levels[bins.clone()].iter().map(|level| level.waiting_nanos).sum();
        let served: u64 = outcome.levels[bins.clone()].iter().map(|level| level.served).sum();
        let refused: u64 = outcome.node[bins].iter().map(|bin| bin.refused).sum();
        let [uncontrolled, controlled @ ..] = &outcome.senders[..] else {
            unreachable!("there is an uncontrolled client")
        };
        let all = |senders: &[SenderOutcome]| {
            senders.iter().fold(SenderOutcome::default(), |sum, sender| sum.plus(sender))
        };
        Ok(Shown {
            ok_rps: served as f64 / seconds as f64,
            refused_rps: refused as f64 / seconds as f64,
            waiting: waiting as f64 / 1e9 / seconds as f64,
            all: Group::of(&outcome.total()),
            uncontrolled: Group::of(uncontrolled),
            controlled: Group::of(&all(controlled)),
            lowest: Group::of(controlled.last().unwrap_or(uncontrolled)),
        })
    }
}

impl Group {
    fn of(sender: &SenderOutcome) -> Self {
        let quantile_s = |part| sender.response_us.quantile(part).map_or(f64::NAN, |us| us as f64 / 1e6);
        Self {
            ok_rps: sender.completed as f64 / LENGTH.as_secs_f64(),
            response_s: sender.mean_response_s().unwrap_or(f64::NAN),
            quantiles_s: PARTS.map(quantile_s).to_vec(),
        }
    }
}

/// The runs of an experiment, by name.
pub(super) struct Cases {
    first_seed: u64,
    cases: Vec<(&'static str, Vec<Arc<Shown>>)>,
}

impl Cases {
    /// Runs each case with every seed.
    pub(super) fn new(
        laboratory: &Laboratory,
        cases: &[(&'static str, Controlled)],
    ) -> Result<Self, ExperimentError> {
        let runs: Vec<Controlled> = cases
            .iter()
            .flat_map(|(_, case)| seeds(laboratory).map(move |seed| Controlled { seed, ..*case }))
            .collect();
        let shown = laboratory.run(&runs)?;
        let by_case = cases.iter().zip(shown.chunks(seeds(laboratory).count()));
        let cases = by_case.map(|(&(name, _), shown)| (name, shown.to_vec())).collect();
        Ok(Self { first_seed: laboratory.options().seed, cases })
    }

    /// A number of each seed in one case.
    pub(super) fn seeds(&self, case: &str, value: impl Fn(&Shown) -> f64) -> SeedValues {
        let shown = self.cases.iter().find(|(name, _)| *name == case);
        let shown = shown.into_iter().flat_map(|(_, shown)| shown);
        SeedValues::of((self.first_seed..).zip(shown.map(|shown| Some(value(shown)))))
    }

    /// A number in all cases beside the paper's of one of them, which is shown and not judged.
    pub(super) fn row(&self, what: &str, paper: Option<f64>, value: impl Fn(&Shown) -> f64 + Copy) -> Row {
        let ours = self
            .cases
            .iter()
            .filter_map(|(name, _)| Some(((*name).to_owned(), self.seeds(name, value).spread()?)));
        Row { what: what.to_owned(), paper, ours: ours.collect(), rule: Rule::Reported }
    }

    /// A line of a chart: these cases, one beside the other.
    pub(super) fn bars(&self, name: &str, of: &[&str], value: Value) -> (String, Vec<Point>) {
        let points = (0..).zip(of).map(|(x, case)| (f64::from(x), Some(self.mean(case, value))));
        (name.to_owned(), points.collect())
    }

    /// The mean over the seeds, for charts.
    pub(super) fn mean(&self, case: &str, value: impl Fn(&Shown) -> f64) -> f64 {
        self.seeds(case, value).spread().map_or(f64::NAN, |spread| spread.mean)
    }
}

/// Choices where the paper says nothing.
pub(super) fn notes(laboratory: &Laboratory) -> Vec<String> {
    vec![
        "No value may be claimed as matched, only directions: the paper names no abatement threshold (half the onset is taken), no \
         number of repeated SYNs (3), no period between two readings of the queue (1 s, its tool's) and no exact rates of its \
         clients (the totals of its Table 1, shared alike by the controlled clients)."
            .to_owned(),
        "The server is that of INTEL-T1, fitted to it without control. Runs last 300 s and begin with an empty server and all \
         clients."
            .to_owned(),
        format!("{} seeds, from {}.", seeds(laboratory).count(), laboratory.options().seed),
    ]
}
