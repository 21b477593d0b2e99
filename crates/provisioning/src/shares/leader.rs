//! The gateway that divides the limit.

use super::{Epoch, ShareBroadcast, ShareReport, water_filling};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use flashweir_core::limits::GATEWAYS;
use flashweir_core::{Duration, Instant};

/// A gateway that is silent for this long has left: thirty reports.
pub const MEMBER_SILENCE: Duration = Duration::from_secs(3);
/// A new leader listens for this long before its first broadcast, so that it knows who uses what: five
/// reports.
pub const SETTLING: Duration = Duration::from_millis(500);
/// Weights of what was known before each report. The slow mean decides, so that shares do not move with
/// chance: a slot that moves is idle for a report and a broadcast. Where the fast mean is far from it,
/// clients have moved, and the slow mean begins again from there.
const MEMORY: Smoothing = Smoothing { fast: 0.7, slow: 0.97 };
/// The fast mean is far from the slow one from this factor on, either way, and at least this many requests a
/// report.
const MOVED_FACTOR: f64 = 1.6;
const MOVED_MIN: f64 = 3.0;
/// Requests admitted per report below which a gateway's own ratio of requests in flight to admitted ones is
/// noise.
const ADMITTED_MIN: f64 = 0.5;
/// Broadcasts that may be on their way to a gateway at once; beyond it the oldest two count as one, with the
/// larger share.
const UNACKNOWLEDGED: usize = 16;

/// A report that is not counted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LeaderError {
    /// One gateway more than there may be.
    #[error("gateway {gateway}: {GATEWAYS} gateways share the limit already")]
    TooMany {
        /// Gateway that reported.
        gateway: u64,
    },
    /// A number that is none.
    #[error("gateway {gateway}: {what} must be 0 or more (is {value})")]
    Value {
        /// Gateway that reported.
        gateway: u64,
        /// Name of the number.
        what: &'static str,
        /// The reported value.
        value: f64,
    },
    /// The gateway claims a broadcast that this leader has not sent: another leads, or the report is forged.
    #[error("gateway {gateway}: acknowledges a broadcast that was never sent (term {}, number {})", .applied.term, .applied.sequence)]
    Unsent {
        /// Gateway that reported.
        gateway: u64,
        /// The broadcast that it claims to apply.
        applied: Epoch,
    },
}

/// Divides a limit among the gateways that report. Memory: some 400 bytes a gateway, [`GATEWAYS`] at most.
#[derive(Debug)]
pub struct ShareLeader {
    limit: f64,
    epoch: Epoch,
    began: Instant,
    members: BTreeMap<u64, Member>,
}

#[derive(Debug)]
struct Member {
    heard: Instant,
    in_flight: Smoothed,
    offered: Smoothed,
    admitted: Smoothed,
    /// The share that its reports acknowledge.
    acknowledged: f64,
    /// Shares that were sent to it since, by their number.
    sent: Vec<(Epoch, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Smoothing {
    fast: f64,
    slow: f64,
}

/// A count of each report, smoothed.
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    fast: f64,
    slow: f64,
}

impl Smoothed {
    fn new(count: u64) -> Self {
        Self { fast: count as f64, slow: count as f64 }
    }

    fn update(&mut self, count: u64) {
        let mean = |known: f64, memory: f64| memory * known + (1.0 - memory) * count as f64;
        (self.fast, self.slow) = (mean(self.fast, MEMORY.fast), mean(self.slow, MEMORY.slow));
        let (least, most) = (self.fast.min(self.slow), self.fast.max(self.slow));
        if most - least >= MOVED_MIN && most > MOVED_FACTOR * least {
            self.slow = self.fast;
        }
    }
}

impl Member {
    /// The most that it may be using.
    fn used_max(&self) -> f64 {
        self.sent.iter().map(|&(_, share)| share).fold(self.acknowledged, f64::max)
    }
}

impl ShareLeader {
    /// Begins to lead in this term, which is larger than that of every leader before.
    #[must_use]
    pub fn new(now: Instant, term: u64, limit: f64) -> Self {
        Self {
            limit: positive(limit),
            epoch: Epoch { term, sequence: 0 },
            began: now,
            members: BTreeMap::new(),
        }
    }

    /// Changes the limit, from the next broadcast on. A number that is none counts as 0.
    pub fn set_limit(&mut self, limit: f64) {
        self.limit = positive(limit);
    }

    /// Gateways that report.
    #[must_use]
    pub fn gateways(&self) -> usize {
        self.members.len()
    }

    /// Takes a report. O(log gateways).
    ///
    /// # Errors
    /// [`LeaderError`]: the report is not counted.
    pub fn observe(&mut self, now: Instant, report: &ShareReport) -> Result<(), LeaderError> {
        let gateway = report.gateway;
        if !(report.share >= 0.0 && report.share.is_finite()) {
            return Err(LeaderError::Value { gateway, what: "share", value: report.share });
        }
        if report.applied > self.epoch {
            return Err(LeaderError::Unsent { gateway, applied: report.applied });
        }
        let is_full = self.members.len() >= GATEWAYS;
        let member = match self.members.get_mut(&gateway) {
            Some(member) => member,
            None if is_full => return Err(LeaderError::TooMany { gateway }),
            None => self.members.entry(gateway).or_insert(Member {
                heard: now,
                in_flight: Smoothed::new(report.in_flight),
                offered: Smoothed::new(report.offered),
                admitted: Smoothed::new(report.admitted),
                acknowledged: report.share,
                sent: Vec::new(),
            }),
        };
        member.heard = member.heard.max(now);
        for (known, counted) in [
            (&mut member.in_flight, report.in_flight),
            (&mut member.offered, report.offered),
            (&mut member.admitted, report.admitted),
        ] {
            known.update(counted);
        }
        member.sent.retain(|&(epoch, _)| epoch > report.applied);
        member.acknowledged = report.share;
        Ok(())
    }

    /// Requests that each gateway would have in flight if it refused nothing. One that admits next to nothing
    /// is like the others.
    fn demands(&self) -> Vec<f64> {
        let sum = |of: fn(&Member) -> f64| self.members.values().map(of).sum::<f64>();
        let admitted = sum(|member| member.admitted.slow);
        let per_request = if admitted > 0.0 { sum(|member| member.in_flight.slow) / admitted } else { 1.0 };
        let demand = |member: &Member| {
            let is_known = member.admitted.slow >= ADMITTED_MIN;
            let own = if is_known { member.in_flight.slow / member.admitted.slow } else { per_request };
            member.offered.slow * own
        };
        self.members.values().map(demand).collect()
    }

    /// The next broadcast; none while it settles, and while no gateway reports. O(gateways), ten times a
    /// second.
    pub fn broadcast(&mut self, now: Instant) -> Option<ShareBroadcast> {
        self.members.retain(|_, member| now.saturating_since(member.heard) <= MEMBER_SILENCE);
        if self.members.is_empty() || now.saturating_since(self.began) < SETTLING {
            return None;
        }
        self.epoch.sequence += 1;
        let demands = self.demands();
        let wanted = water_filling(self.limit, &demands);
        let used: f64 = self.members.values().map(Member::used_max).sum();
        // The part of the limit that no gateway may be using; a share that shrinks adds to it only when
        // acknowledged.
        let free = (self.limit - used).max(0.0);
        let growth: f64 = self
            .members
            .values()
            .zip(&wanted)
            .map(|(member, &wanted)| (wanted - member.used_max()).max(0.0))
            .sum();
        let part = if growth > free { free / growth } else { 1.0 };
        let mut shares = Vec::with_capacity(wanted.len());
        for ((&gateway, member), wanted) in self.members.iter_mut().zip(wanted) {
            let used = member.used_max();
            let share = if wanted > used { used + (wanted - used) * part } else { wanted };
            member.sent.push((self.epoch, share));
            if member.sent.len() > UNACKNOWLEDGED {
                let (_, oldest) = member.sent.remove(0);
                member.sent[0].1 = member.sent[0].1.max(oldest);
            }
            shares.push((gateway, share));
        }
        // At most GATEWAYS.
        let gateways = shares.len() as u32;
        Some(ShareBroadcast { epoch: self.epoch, limit: self.limit, gateways, shares })
    }
}

fn positive(limit: f64) -> f64 {
    if limit > 0.0 && limit.is_finite() { limit } else { 0.0 }
}
