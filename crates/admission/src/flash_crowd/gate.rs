//! The stage of one worker: applies the ceiling in integers, and measures responses.
//!
//! Per request: one count in the hot-spot table, at most four key comparisons and one token bucket. Nothing
//! is allocated after construction except when a tick hands the measurements over.

use super::latency_reference::{UNNOTICED_US, class_of};
use super::responses::Responses;
use super::{HostCount, Limit, Plan, Response, Sample};
use crate::{Flow, token_bucket::TokenBucket};
use alloc::vec::Vec;
use flashweir_core::limits::{HOT_SPOT_ENTRIES, HOT_SPOTS_LIMITED};
use flashweir_core::measure::SpaceSaving;
use flashweir_core::{Duration, Instant, Rate, Reason, Shed, Verdict};

/// The burst of a ceiling, in milliseconds of its rate. A whole second would let every lull
/// refill a second of queue at the origin; a quarter still absorbs the clustering of Poisson arrivals.
const BURST_MS: u64 = 250;
/// The smallest burst of the whole ceiling, before it is shared out among gates; the least that a gate gives
/// on credit.
pub const BURST_MIN: u64 = 10;

/// Priority of a request under a ceiling. The service's own policy comes after the ceiling; without this a
/// crowd of unimportant requests would leave the important ones nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingPriority {
    /// May take a token that is not there yet: up to this part of what a ceiling gives on credit (its burst;
    /// by each gate at least [`BURST_MIN`]). 0 for the least important, which never do; 1,000 for the most
    /// important.
    Credit {
        /// Thousandths.
        milli: u16,
    },
    /// Takes a token only while more than half of them are there: what others leave.
    Spare,
    /// Goes by the ceiling, and takes nothing of it.
    Exempt,
}

impl CeilingPriority {
    /// No credit.
    pub const LAST: Self = Self::Credit { milli: 0 };
    /// All of the credit.
    pub const FIRST: Self = Self::Credit { milli: 1_000 };
}

/// One worker's gate.
#[derive(Debug)]
pub struct FlashCrowdGate {
    ceiling: Ceiling,
    epoch: u64,
    retry_after: Duration,
    hot_hosts: Vec<u64>,
    hosts: SpaceSaving<HOT_SPOT_ENTRIES>,
    sample: Sample,
    responses: Responses,
}

/// The plan's limit, made ready for counting.
#[derive(Debug)]
enum Ceiling {
    Open,
    All(TokenBucket),
    HotSpots(Vec<(u64, TokenBucket)>),
}

impl FlashCrowdGate {
    /// Gate number `gate` of its siblings.
    #[must_use]
    pub fn new(gate: usize) -> Self {
        Self {
            ceiling: Ceiling::Open,
            epoch: 0,
            retry_after: Duration::from_secs(1),
            hot_hosts: Vec::with_capacity(HOT_SPOTS_LIMITED),
            hosts: SpaceSaving::default(),
            sample: Sample { gate, ..Sample::default() },
            responses: Responses::new(),
        }
    }

    /// Takes over a plan; one that is no newer than the plan in force changes nothing.
    pub fn apply(&mut self, now: Instant, plan: &Plan) {
        if plan.epoch <= self.epoch {
            return;
        }
        self.epoch = plan.epoch;
        self.retry_after = plan.retry_after;
        self.hot_hosts.clear();
        self.hot_hosts.extend(plan.hot_hosts.iter().take(HOT_SPOTS_LIMITED));
        if plan.evidence_from > self.sample.evidence_from {
            self.responses.outdate();
        }
        self.sample.evidence_from = plan.evidence_from;
        let share_milli = u64::from(plan.gate_shares_milli.get(self.sample.gate).copied().unwrap_or(0));
        let previous = core::mem::replace(&mut self.ceiling, Ceiling::Open);
        self.ceiling = match &plan.limit {
            Limit::Open => Ceiling::Open,
            Limit::All(rate) => {
                let kept = if let Ceiling::All(bucket) = previous { Some(bucket) } else { None };
                Ceiling::All(bucket_for(now, *rate, share_milli, kept))
            }
            Limit::HotSpots(spots) => {
                let mut old = if let Ceiling::HotSpots(buckets) = previous { buckets } else { Vec::new() };
                let new = spots.iter().take(HOT_SPOTS_LIMITED).map(|spot| {
                    let kept =
                        old.iter().position(|(key, _)| *key == spot.key).map(|at| old.swap_remove(at).1);
                    (spot.key, bucket_for(now, spot.rate, share_milli, kept))
                });
                Ceiling::HotSpots(new.collect())
            }
        };
    }

    /// Counts a request for this host that arrives at the door, before any decision.
    pub fn observe_offered(&mut self, host_key: u64) {
        self.hosts.hit(host_key, 1);
    }

    /// Number of times that a host had to make room for another one in the table of arrivals.
    #[must_use]
    pub fn hosts_replaced(&self) -> u64 {
        self.hosts.replaced()
    }

    /// Returns true if a crowd came to this host while another stage refuses.
    #[must_use]
    pub fn is_hot(&self, host_key: u64) -> bool {
        self.hot_hosts.contains(&host_key)
    }

    /// Checks if the ceiling lets a request of this priority pass; takes nothing.
    pub fn check(&mut self, now: Instant, host_key: u64, ceiling_priority: CeilingPriority) -> Verdict {
        let passes = match (self.ceiling.bucket_of(host_key), ceiling_priority) {
            (None, _) | (_, CeilingPriority::Exempt) => true,
            (Some(bucket), CeilingPriority::Spare) => bucket.has_token_above(now, bucket.burst() / 2),
            (Some(bucket), CeilingPriority::Credit { milli }) => {
                let most = bucket.burst().max(BURST_MIN);
                bucket.has_token(now, most * u64::from(milli.min(1_000)) / 1_000)
            }
        };
        match passes {
            true => Verdict::Admit,
            false => Verdict::Shed(Shed { reason: Reason::FlashCrowd, retry_after: self.retry_after }),
        }
    }

    /// Takes the token of a request that passed the check.
    pub fn commit(&mut self, host_key: u64, ceiling_priority: CeilingPriority) {
        if ceiling_priority != CeilingPriority::Exempt {
            self.ceiling.bucket_of(host_key).into_iter().for_each(TokenBucket::take);
        }
    }

    /// Hands over what was measured since the last drain, with what became of the requests meanwhile.
    pub fn drain(&mut self, now: Instant, flow: Flow, unique_offered: u64) -> Sample {
        let Sample { gate, evidence_from, .. } = self.sample;
        let next = Sample { gate, from: now, to: now, evidence_from, ..Sample::default() };
        let mut sample = core::mem::replace(&mut self.sample, next);
        sample.to = now;
        (sample.flow, sample.unique_offered) = (flow, unique_offered);
        sample.hosts = self.hosts.iter().map(|(key, hits)| HostCount { key, hits }).collect();
        sample.hosts.sort_unstable_by_key(|host| (core::cmp::Reverse(host.hits), host.key));
        self.hosts.clear();
        (sample.latencies, sample.rates, sample.responses_unclassed) = self.responses.drain();
        sample
    }

    /// A response finished without error and is fit to measure. Latencies under 10 ms, which users do not
    /// notice and the planner does not distinguish, all count as that.
    pub fn observe_response(&mut self, response: Response) {
        // The cast takes NaN and what is below zero to zero.
        let latency_us = ((f64::from(response.latency_s) * 1e6) as u64).max(UNNOTICED_US);
        let is_evidence = response.started >= self.sample.evidence_from;
        self.responses.add_latency(class_of(&response), latency_us, is_evidence);
        if let Some(rate_bytes_per_s) = response.rate_bytes_per_s {
            self.responses.add_rate(rate_bytes_per_s, is_evidence);
        }
    }

    /// A response to a request received at `started` had this rate; what its latency should be is not known
    /// here.
    pub fn observe_rate(&mut self, started: Instant, rate_bytes_per_s: f32) {
        self.responses.add_rate(rate_bytes_per_s, started >= self.sample.evidence_from);
    }

    /// A request enters what is judged.
    pub fn entered(&mut self) {
        self.sample.entered += 1;
    }

    /// A response enters its delivery, which alone is judged.
    pub fn handed_over(&mut self) {
        self.sample.entered += 1;
        self.sample.handed_over += 1;
    }

    /// The client of one that entered has its whole response.
    pub fn completed(&mut self) {
        self.sample.completed += 1;
    }

    /// One that entered ended otherwise.
    pub fn unfinished(&mut self) {
        self.sample.unfinished += 1;
    }
}

impl Ceiling {
    /// Token bucket that limits this request, if any.
    fn bucket_of(&mut self, host_key: u64) -> Option<&mut TokenBucket> {
        match self {
            Self::Open => None,
            Self::All(bucket) => Some(bucket),
            Self::HotSpots(spots) => {
                spots.iter_mut().find(|(key, _)| *key == host_key).map(|(_, bucket)| bucket)
            }
        }
    }
}

/// Requests that may come at once under a ceiling of this rate, before it is shared out among gates.
#[must_use]
pub fn burst(rate: Rate) -> u64 {
    (rate.as_milli() / 1_000 * BURST_MS / 1_000).max(BURST_MIN)
}

/// This gate's part of a rate, keeping the tokens of the bucket that limited the same thing before.
fn bucket_for(now: Instant, rate: Rate, share_milli: u64, kept: Option<TokenBucket>) -> TokenBucket {
    let part = Rate::from_milli(
        rate.as_milli() / 1_000 * share_milli + rate.as_milli() % 1_000 * share_milli / 1_000,
    );
    let burst = (burst(rate) * share_milli / 1_000).max(1);
    match kept {
        Some(mut bucket) => {
            bucket.set_rate(now, part, burst);
            bucket
        }
        None => TokenBucket::empty(now, part, burst),
    }
}
