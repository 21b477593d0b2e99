//! One service in one gateway that shares its limit: what is reported, and which part of the leader's plan is
//! carried out.

use super::{Epoch, ServiceBroadcast, ServiceReport, ShareHolder, ShareReport, SlotGate};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_admission::sentry::{BatchTest, ClassPlan, Decide, Explanation, LongRequests, Plan, Sample};
use flashweir_core::{Duration, Instant, Rate};

/// A gateway that starts admits one request at a time until it has heard of a share, for at most this long: a
/// leader answers the first report after [`SETTLING`](super::SETTLING) at the latest. Afterwards it acts by
/// its own plan, as if it were alone: it stays up.
pub const JOIN_WAIT: Duration = Duration::from_secs(2);

/// State of a gateway's share of the limit, and with it the plan by which the gateway acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareState {
    /// It has started and waits for its first share.
    Joining,
    /// It has a share that a leader renews.
    Sharing,
    /// The leader is silent: it keeps its last share.
    Holding,
    /// The leader has been silent for longer than [`HOLD`](super::HOLD): its share approaches an equal one.
    Equal,
    /// It has never heard of a leader: it acts by its own plan.
    Alone,
}

impl ShareState {
    /// The one spelling used in the log, metrics and `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Sharing => "sharing",
            Self::Holding => "holding",
            Self::Equal => "equal",
            Self::Alone => "alone",
        }
    }
}

/// Numbers for `/status` and the metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberFigures {
    /// State of its share.
    pub share_state: ShareState,
    /// The number of the last broadcast that was applied.
    pub epoch: Epoch,
    /// The service's limit, requests in flight; 0 before the first broadcast.
    pub limit: f64,
    /// The part of it that this gateway may use.
    pub share: f64,
    /// Gateways that the last broadcast has shares for.
    pub gateways: usize,
    /// Requests of other gateways at the origin, by the last broadcast.
    pub elsewhere: u32,
    /// Time since a broadcast was applied.
    pub silence: Option<Duration>,
}

/// One service in one gateway.
#[derive(Debug)]
pub struct ServiceMember {
    gateway: u64,
    /// Measurements of each gate since the last report.
    gates: Vec<Sample>,
    holder: ShareHolder,
    slots: SlotGate,
    began: Instant,
    applied_at: Option<Instant>,
    /// The newest broadcast, from the first that had a share for it on.
    last: Option<ServiceBroadcast>,
    /// Limit that is used while there is no share.
    own_limit: u32,
    /// Requests in flight here when the last report was made.
    in_flight: u32,
}

/// The leader is silent once this many reports have found it so.
const SILENT_AFTER: Duration = Duration::from_secs(1);

impl ServiceMember {
    /// Nothing was measured or heard yet; `gateway` names this gateway among all.
    #[must_use]
    pub fn new(now: Instant, gateway: u64, gates: usize) -> Self {
        Self {
            gateway,
            gates: vec![Sample::default(); gates],
            holder: ShareHolder::new(gateway),
            slots: SlotGate::default(),
            began: now,
            applied_at: None,
            last: None,
            own_limit: 1,
            in_flight: 0,
        }
    }

    /// Takes what a gate measured; of a gate that does not exist nothing.
    pub fn observe(&mut self, gate: usize, sample: &Sample) {
        if let Some(known) = self.gates.get_mut(gate) {
            known.append(sample);
            known.compact();
        }
    }

    /// The next report, of what was measured since the last one.
    pub fn report(&mut self, now: Instant) -> ServiceReport {
        let mut sample = Sample::default();
        for gate in &mut self.gates {
            sample.merge(gate);
            // A gate that does not report again still has what it had in flight.
            *gate = levels_of(gate);
        }
        sample.compact();
        self.in_flight = sample.in_flight;
        let share = match self.last {
            Some(_) => self.holder.share(now),
            None => f64::from(self.own_limit),
        };
        ServiceReport {
            share: ShareReport {
                gateway: self.gateway,
                applied: self.holder.applied(),
                share,
                offered: sample.offered,
                admitted: sample.admitted,
                in_flight: sample.in_flight.into(),
            },
            sample,
            limit: self.last.as_ref().map_or(0, |last| last.plan.limit),
            knee_milli: self.last.as_ref().map_or(0, |last| last.plan.knee_milli),
        }
    }

    /// Takes a broadcast; false, and nothing changed, if it is not newer than the last one. One of a leader
    /// that has not heard of this gateway yet has no share for it, and is no reason to admit nothing: the
    /// gateway goes on as before.
    pub fn apply(&mut self, now: Instant, broadcast: &ServiceBroadcast) -> bool {
        let is_new = self.holder.apply(now, &broadcast.shares);
        let has_share = broadcast.shares.share_of(self.gateway).is_some();
        if is_new && has_share {
            self.applied_at = Some(now);
        }
        if is_new && (has_share || self.last.is_some()) {
            self.last = Some(broadcast.clone());
        }
        is_new
    }

    /// The plan to carry out: this gateway's part of the leader's, or of `own` while it has heard of none.
    /// `in_flight` is the number of its requests at the origin now. Call it for each plan `own`; the result
    /// has that plan's number.
    pub fn plan(&mut self, now: Instant, own: &Plan, in_flight: u32) -> Plan {
        let Some(last) = &self.last else {
            let limit = if self.share_state(now) == ShareState::Joining { 1 } else { own.limit };
            self.own_limit = limit;
            let part = f64::from(limit) / f64::from(own.limit.max(1));
            return part_of(own, part, limit);
        };
        let share = self.holder.share(now);
        self.slots.account(now, in_flight, share);
        let whole = libm::floor(share) as u32;
        let slots = whole + u32::from(self.slots.admits(whole, share));
        let part = (share / f64::from(last.plan.limit.max(1))).min(1.0);
        Plan { epoch: own.epoch, ..part_of(&last.plan, part, slots) }
    }

    /// Requests at the origin and part of its knee, thousandths, that belong to other gateways.
    #[must_use]
    pub fn elsewhere(&self, now: Instant) -> (u32, u64) {
        let Some(last) = &self.last else { return (0, 0) };
        let part = self.holder.share(now) / f64::from(last.plan.limit.max(1));
        let knee_milli = last.plan.knee_milli as f64 * (1.0 - part.min(1.0));
        (last.in_flight.saturating_sub(self.in_flight), knee_milli as u64)
    }

    /// By which plan this gateway acts.
    #[must_use]
    pub fn share_state(&self, now: Instant) -> ShareState {
        match self.applied_at.map(|at| now.saturating_since(at)) {
            None if now.saturating_since(self.began) < JOIN_WAIT => ShareState::Joining,
            None => ShareState::Alone,
            Some(silence) if silence <= SILENT_AFTER => ShareState::Sharing,
            Some(silence) if silence <= super::HOLD => ShareState::Holding,
            Some(_) => ShareState::Equal,
        }
    }

    /// Numbers for people.
    #[must_use]
    pub fn figures(&self, now: Instant) -> MemberFigures {
        let shares = self.last.as_ref().map(|last| &last.shares);
        MemberFigures {
            share_state: self.share_state(now),
            epoch: self.holder.applied(),
            limit: shares.map_or(0.0, |shares| shares.limit),
            share: if shares.is_some() { self.holder.share(now) } else { f64::from(self.own_limit) },
            gateways: shares.map_or(0, |shares| shares.gateways as usize),
            elsewhere: self.elsewhere(now).0,
            silence: self.applied_at.map(|at| now.saturating_since(at)),
        }
    }
}

/// The levels of a gate that remain after its counts were reported: its requests in flight and queued.
fn levels_of(gate: &Sample) -> Sample {
    let mut levels = Sample {
        to: gate.to,
        from: gate.to,
        in_flight: gate.in_flight,
        held: gate.held,
        ..Sample::default()
    };
    levels.age_us = gate.age_us.clone();
    levels.classes.clone_from(&gate.classes);
    for class in &mut levels.classes {
        let (held, in_flight, oldest_held_us) = (class.held, class.in_flight, class.oldest_held_us);
        *class = flashweir_admission::sentry::ClassCounts {
            held,
            in_flight,
            oldest_held_us,
            ..Default::default()
        };
    }
    levels
}

/// A part of a plan for the whole service, with this number of slots.
fn part_of(plan: &Plan, part: f64, slots: u32) -> Plan {
    let class = |class: &ClassPlan| ClassPlan {
        limit: match class.limit.checked_sub(plan.limit) {
            // Room that is kept for more important classes.
            Some(reserved) => slots + round(f64::from(reserved) * part),
            None => round(f64::from(class.limit) * part).min(slots),
        },
        // One at least where the whole has some: a gateway that is short of slots for a moment queues.
        hold_len: libm::ceil(f64::from(class.hold_len) * part) as u32,
        standing_len: libm::ceil(f64::from(class.standing_len) * part) as u32,
        oldest_first_below: (f64::from(class.oldest_first_below) * part) as u32,
        guaranteed_rate: Rate::from_milli((class.guaranteed_rate.as_milli() as f64 * part) as u64),
        ..*class
    };
    let why = plan.explanation;
    Plan {
        epoch: plan.epoch,
        limit: slots,
        classes: plan.classes.iter().map(class).collect(),
        decide: match plan.decide {
            Decide::Batch(test) => Decide::Batch(BatchTest {
                servers_milli: ((test.servers_milli as f64 * part) as u64).max(1),
                ..test
            }),
            other => other,
        },
        knee_milli: (plan.knee_milli as f64 * part) as u64,
        long: LongRequests {
            // One at least: see `hold_len`.
            limit: plan.long.limit.map(|limit| libm::ceil(f64::from(limit) * part) as u32),
            ..plan.long.clone()
        },
        costs: Arc::clone(&plan.costs),
        price: plan.price,
        explanation: Explanation {
            in_flight: why.in_flight * part,
            completed_rps: why.completed_rps * part,
            knee: why.knee.map(|knee| knee * part),
            capacity_rps: why.capacity_rps * part,
            ..why
        },
    }
}

fn round(value: f64) -> u32 {
    libm::round(value) as u32
}
