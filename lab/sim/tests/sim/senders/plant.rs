//! Twenty senders before a node that serves 200 calls a second.

use flashweir_admission::sentry::{ClassPolicy, Policy};
use flashweir_core::Duration;
use flashweir_sim::request::senders::{
    FeedbackModel, LadderModel, NodeModel, Obedience, Scenario, SenderModel, SendersOutcome, run,
};
use flashweir_sim::request::{SentryPolicy, ServerModel, Work};
use flashweir_workload::{ArrivalProcess, RateProfile};

/// Calls a second that the node serves.
pub(crate) const CAPACITY_RPS: f64 = 200.0;
/// Answers are to come within this time.
pub(crate) const TARGET: Duration = Duration::from_secs(1);
/// The node's part of that: senders let requests wait for a quarter of a second, and the way takes 40 ms.
pub(crate) const NODE_TARGET: Duration = Duration::from_millis(700);
/// Senders.
pub(crate) const SENDERS: usize = 20;
/// Seeds on which nothing was tuned: tuning used 1 to 8 and looked at 100 to 109.
pub(crate) const SEEDS: std::ops::Range<u64> = 200..210;

/// Gapping as it is by default.
pub(crate) fn gaps() -> Obedience {
    Obedience::Gaps(flashweir_admission::gapping::Settings::default())
}

/// A constant rate, Poisson.
pub(crate) fn poisson(rate_rps: f64, length_s: u64) -> ArrivalProcess {
    ArrivalProcess::Poisson(RateProfile::constant(rate_rps, Duration::from_secs(length_s)).expect("a rate"))
}

/// One class for each rank, the first the most important.
pub(crate) fn sentry(ranks: u8) -> SentryPolicy {
    let classes =
        (0..ranks).map(|rank| ClassPolicy { revenue: f64::from(ranks - rank), ..ClassPolicy::default() });
    SentryPolicy::new(Policy { classes: classes.collect(), ..Policy::single(NODE_TARGET) })
}

/// A surge: half of the capacity for 20 s, then `part` times the capacity for 60 s, of all senders together.
pub(crate) fn surge(part: f64) -> ArrivalProcess {
    surge_of(part * CAPACITY_RPS / SENDERS as f64)
}

/// The same for one sender, with its rate in the surge.
pub(crate) fn surge_of(rate_rps: f64) -> ArrivalProcess {
    let rate =
        |rate_rps, length_s| RateProfile::constant(rate_rps, Duration::from_secs(length_s)).expect("a rate");
    ArrivalProcess::Poisson(rate(0.5 * CAPACITY_RPS / SENDERS as f64, 20).then(rate(rate_rps, 60)))
}

/// Senders that offer `part` times the capacity together, each with as much, after 20 s of calm; measured
/// from 10 s later on.
pub(crate) fn scenario(seed: u64, part: f64) -> Scenario {
    let length_s = 80;
    Scenario {
        seed,
        length: Duration::from_secs(length_s),
        measured: Duration::from_secs(30)..Duration::from_secs(length_s),
        one_way_delay: Duration::from_millis(20),
        target: TARGET,
        senders: (0..SENDERS).map(|_| SenderModel::new(surge(part), gaps())).collect(),
        node: NodeModel {
            server: ServerModel::processor_sharing(1),
            work: Work::Exponential { mean: Duration::from_secs_f64(1.0 / CAPACITY_RPS) },
            sentry: Some(sentry(1)),
            ladder: LadderModel::Derived,
        },
        feedback: FeedbackModel::reliable(),
        bin: Duration::from_secs(1),
    }
}

/// 40 % of the messages lost, 20 % of the others up to 500 ms late.
pub(crate) fn lossy() -> FeedbackModel {
    FeedbackModel { lost_share: 0.4, late_share: 0.2, ..FeedbackModel::reliable() }
}

/// Measurements of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Calls served in time, relative to what the node can serve: to what it served per second of work, so
    /// that chance in the work does not count.
    pub(crate) good_share: f64,
    /// The 95th percentile of the time to completion, seconds.
    pub(crate) p95_s: f64,
    /// Calls refused at the node, relative to all user requests offered to the senders.
    pub(crate) refused_share: f64,
    /// The part of the time in which the server worked.
    pub(crate) busy: f64,
}

impl Measured {
    /// The worse of each number.
    pub(crate) fn worse(&self, other: &Self) -> Self {
        Self {
            good_share: self.good_share.min(other.good_share),
            p95_s: self.p95_s.max(other.p95_s),
            refused_share: self.refused_share.max(other.refused_share),
            busy: self.busy.min(other.busy),
        }
    }
}

pub(crate) fn measured(scenario: &Scenario) -> (Measured, SendersOutcome) {
    let outcome = run(scenario).expect("a run");
    let total = outcome.total();
    let seconds = (scenario.measured.end - scenario.measured.start).as_secs_f64();
    let bins = scenario.measured.start.as_secs() as usize..scenario.measured.end.as_secs() as usize;
    let refused: u64 = outcome.node[bins.clone()].iter().map(|bin| bin.refused).sum();
    let busy: u64 = outcome.levels[bins].iter().map(|level| level.busy_nanos).sum();
    let measured = Measured {
        good_share: busy as f64 / 1e9 / seconds * total.good as f64 / total.completed as f64,
        p95_s: total.response_p95_s().expect("completions"),
        refused_share: refused as f64 / total.offered as f64,
        busy: busy as f64 / 1e9 / seconds,
    };
    (measured, outcome)
}
