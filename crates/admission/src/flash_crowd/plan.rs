//! Plan for the gates, and its explanation.

use alloc::vec::Vec;
use flashweir_core::{Duration, Instant, Rate};

/// The ceiling in force and the numbers behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Counts decisions; a gate applies a plan once.
    pub epoch: u64,
    /// Limit in force.
    pub limit: Limit,
    /// Hosts to which a crowd came, at most [`HOT_SPOTS_LIMITED`](flashweir_core::limits::HOT_SPOTS_LIMITED),
    /// while another stage refuses: requests for them come after those for others. Keys as in
    /// [`HostCount`](super::HostCount).
    pub hot_hosts: Vec<u64>,
    /// Each gate's part of every limited rate, in thousandths, by gate; sums to 1000.
    pub gate_shares_milli: Vec<u32>,
    /// Time of the last change of the limit: responses to requests received before say nothing about it.
    pub evidence_from: Instant,
    /// Time after which a refused client may hope for better; shells round up to seconds and add jitter.
    pub retry_after: Duration,
    /// Reason for the plan.
    pub explanation: Explanation,
}

/// Scope and rate of a limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Everything is admitted.
    Open,
    /// All requests share one ceiling.
    All(Rate),
    /// Only these keys have a ceiling, each its own; bystanders pass untouched.
    HotSpots(Vec<HotSpotLimit>),
}

/// One hot-spot's ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSpotLimit {
    /// Hash of service and host, as in [`HostCount`](super::HostCount).
    pub key: u64,
    /// The most that is admitted for it.
    pub rate: Rate,
}

/// The detector's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No alarm; baselines are learned.
    Normal,
    /// A crowd was found and the ceiling comes down until responses recover.
    Alarm,
    /// Responses have recovered; the ceiling is raised until it stops binding.
    Probe,
}

/// Reason for the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too few responses to judge.
    TooFewSamples,
    /// Nothing unusual.
    Calm,
    /// Offered load rose and responses got worse: a crowd. The only cause that tightens the ceiling.
    Popular,
    /// Responses got worse although offered load did not rise: look at the service, not at the crowd.
    SlowBackend,
    /// Offered load rose and responses are fine: a surge the service carries.
    SurgeOk,
}

/// Rule that made this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing was decided since the last plan.
    None,
    /// First valid measurement: baselines seeded.
    Seed,
    /// No alarm; baselines followed the measurement.
    Learn,
    /// Conditions hold but not yet often enough to alarm.
    Suspect,
    /// The alarm was raised and the ceiling set.
    Raise,
    /// The ceiling was lowered.
    Cut,
    /// The ceiling was kept: responses are already improving, or nothing argues for a move.
    Hold,
    /// The ceiling was left alone: it does not bind, because another stage refuses what it would let in.
    Yield,
    /// The ceiling was raised a little because it binds and responses are fine.
    ProbeUp,
    /// The ceiling was raised fast because it does not bind.
    Relax,
    /// The ceiling was removed.
    Release,
    /// The baseline was moved toward a lasting change of the service itself.
    Rebase,
    /// The ceiling rises because the planner that set it failed.
    Decay,
}

/// The inputs and the rule that fired: for the log, the decision record, `/status` and the simulator alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The detector's state.
    pub mode: Mode,
    /// The verdict on why load is as it is.
    pub cause: Cause,
    /// The rule that made this plan.
    pub rule: Rule,
    /// Ceiling over everything, requests per second; `None` when open.
    pub ceiling_rps: Option<f64>,
    /// Response quality relative to its baseline (1 = as usual, smaller is worse): the worst valid signal.
    pub quality: Option<f64>,
    /// Mean rate of the fastest tenth of large responses, bytes/s (AR of NEWS), and its baseline.
    pub fast_rate_bytes_per_s: Option<f64>,
    /// Its baseline.
    pub fast_rate_reference: Option<f64>,
    /// Mean latency score of the fastest tenth of all responses (1 = the usual median), and its baseline.
    pub fast_score: Option<f64>,
    /// Its baseline.
    pub fast_score_reference: Option<f64>,
    /// The margin (delta) in force: at least the configured one, three standard deviations of the signal.
    pub margin: f64,
    /// Requests per second that arrived.
    pub offered_rps: f64,
    /// People's attempts per second that arrived.
    pub unique_offered_rps: f64,
    /// Its baseline.
    pub unique_offered_reference_rps: Option<f64>,
    /// Requests per second let in.
    pub admitted_rps: f64,
    /// Responses per second finished.
    pub completed_rps: f64,
    /// Responses this decision rests on.
    pub responses: usize,
}

impl Plan {
    /// The plan before anything was measured: open, one gate's worth of shares for each of `gates`.
    #[must_use]
    pub fn open(gates: usize) -> Self {
        Self {
            epoch: 0,
            limit: Limit::Open,
            hot_hosts: Vec::new(),
            gate_shares_milli: equal_shares_milli(gates),
            evidence_from: Instant::ZERO,
            retry_after: Duration::from_secs(1),
            explanation: Explanation {
                mode: Mode::Normal,
                cause: Cause::TooFewSamples,
                rule: Rule::None,
                ceiling_rps: None,
                quality: None,
                fast_rate_bytes_per_s: None,
                fast_rate_reference: None,
                fast_score: None,
                fast_score_reference: None,
                margin: 0.0,
                offered_rps: 0.0,
                unique_offered_rps: 0.0,
                unique_offered_reference_rps: None,
                admitted_rps: 0.0,
                completed_rps: 0.0,
                responses: 0,
            },
        }
    }
}

/// Shares of 1000 as equal as whole numbers allow; they always sum to 1000 (for at least one gate).
fn equal_shares_milli(gates: usize) -> Vec<u32> {
    let gates = gates.max(1) as u32;
    (0..gates).map(|gate| 1000 / gates + u32::from(gate < 1000 % gates)).collect()
}

macro_rules! names {
    ($($type:ident: $($variant:ident => $name:literal),+;)+) => {$(
        impl $type {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The one spelling used in metrics, logs and `/status`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    )+};
}

names! {
    Mode: Normal => "normal", Alarm => "alarm", Probe => "probe";
    Cause: TooFewSamples => "too_few_samples", Calm => "calm", Popular => "popular",
        SlowBackend => "slow_backend", SurgeOk => "surge_ok";
    Rule: None => "none", Seed => "seed", Learn => "learn", Suspect => "suspect", Raise => "raise", Cut => "cut",
        Hold => "hold", Yield => "yield", ProbeUp => "probe_up", Relax => "relax", Release => "release", Rebase => "rebase",
        Decay => "decay";
}
