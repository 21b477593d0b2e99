//! A candidate policy beside the live one: what it would have done with the very same requests.
//!
//! The candidate has its own gate, the same that the live policy has, with its own classes, counts and queue.
//! Every request arrives at both; what the candidate decides changes nothing. Only the ends of requests need
//! a rule, because most requests run once, for the live policy, and some do not run at all:
//!
//! | the live policy | a virtual place is free |
//! |---|---|
//! | lets it in, at about the same time | when the real request is over, with the candidate's number in flight |
//! | let it in, and it is over before the candidate's turn comes | after as long as the real one took, so corrected |
//! | makes it wait, or refuses it | after an estimate: what such requests take relative to those that run, at the pace of these (`pace`); its class's whole target where nothing is known |
//!
//! Why a gate and not a look at the live counts: these show what the *live* order of importance lets in. A
//! class that the candidate favours finds the live count always a little below its limit, and would be let in
//! without end.
//!
//! Limitations. The limit is the one the live policy learned: it is about the origin, and a candidate with
//! another target would move it. Refused clients would return at other times. A request that never ran is
//! taken to have been answered without error. Where several gates share a policy, a virtual place that is
//! free at one of them is noticed at another with its next request, or [`look`](CandidateGate::look); the
//! request that takes it counts as begun when the place was given back.
//!
//! Times are corrected to the candidate's number in flight: an origin with n in flight takes n over its knee
//! times as long as alone, so where the live policy has fewer there, the candidate's requests take longer.
//!
//! Cost: a decision of the gate and an entry in a table, O(log n) for each end; no allocation but what the
//! tables grow by, bounded by [`CANDIDATE_REQUESTS`].

use super::common::Common;
use super::gate::{Arrived, Released, SentryGate};
use super::hold::Ticket;
use super::in_flight::Permit;
use super::plan::Plan;
use super::policy::Policy;
use super::request::{Ending, SentryRequest};
use super::sample::Sample;
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use flashweir_core::limits::CANDIDATE_REQUESTS;
use flashweir_core::{Duration, Instant, Reason};
use slab::Slab;

/// One worker's gate of a candidate.
#[derive(Debug)]
pub struct CandidateGate {
    gate: SentryGate<usize>,
    requests: Slab<Request>,
    /// Requests to look at again, and when, the first on top. An extra look is harmless.
    due: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    compared: Vec<Compared>,
    /// Distinguishes a request from an earlier one in the same slot.
    serial: u64,
    /// Time of the last look at all requests, if nothing has changed since.
    looked_at: Option<Instant>,
}

/// Decision of the candidate on a request, as far as it has been taken. It has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualDecision {
    /// Let it in, at once or after it waited.
    Admit,
    /// Make it wait; it still does.
    Hold,
    /// Refuse it.
    Shed(Reason),
}

/// Outcomes of the requests of one class of the candidate under both policies. Offered, admitted and
/// completed under the candidate alone are in its gate's [`Sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Requests that both let in.
    pub both: u64,
    /// Requests that the live policy let in and the candidate would not have.
    pub only_live: u64,
    /// Requests that the candidate would have let in and the live policy did not.
    pub only_candidate: u64,
    /// Requests that neither let in.
    pub neither: u64,
    /// Requests that would have had to wait, then admitted or not.
    pub held: u64,
    /// Requests that would have been refused, in the order of [`Reason::ALL`].
    pub shed: [u64; Reason::ALL.len()],
    /// Answers under the live policy within the target that the candidate has for the request.
    pub live_good: u64,
}

/// One request, until both are done with it.
#[derive(Debug)]
struct Request {
    serial: u64,
    arrived: Instant,
    class: usize,
    /// Estimated time at the origin when alone, microseconds; 0 if unknown.
    cost_us: u32,
    live: Live,
    candidate: Candidate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    Undecided,
    Waits,
    /// With the slowness at its number in flight, see [`CandidateGate::slowness`].
    LetIn {
        since: Instant,
        slowness: u64,
    },
    Ended {
        at: Instant,
        took: Duration,
        slowness: u64,
        completed: bool,
    },
    NotLetIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    Waits(Ticket),
    LetIn {
        permit: Permit,
        since: Instant,
        /// Estimated time of its end.
        estimated: Instant,
        /// Its time at the origin over its time alone, thousandths.
        slowness: u64,
    },
    Ended,
    Refused(Reason),
    /// The client left while it would have waited.
    Left,
}

impl CandidateGate {
    /// Gate `index` of those that share `common`, which is not the live policy's; it follows `plan`, made for
    /// `policy`.
    #[must_use]
    pub fn new(common: Arc<Common>, index: usize, policy: &Policy, plan: &Plan) -> Self {
        Self {
            compared: vec![Compared::default(); plan.classes.len()],
            gate: SentryGate::new(common, index, policy, plan),
            requests: Slab::new(),
            due: BinaryHeap::new(),
            serial: 0,
            looked_at: None,
        }
    }

    /// Takes over a plan for the same policy.
    pub fn apply(&mut self, plan: &Plan) {
        self.gate.apply(plan);
        self.looked_at = None;
    }

    /// A request arrives, in its class of the candidate's. Each step of the live policy is to be reported by
    /// the key, to the end ([`live_ended`](Self::live_ended), [`live_refused`](Self::live_refused) or
    /// [`live_left`](Self::live_left)). `None`: too many are compared already.
    pub fn arrive(&mut self, now: Instant, asked: SentryRequest) -> Option<usize> {
        self.look(now);
        // An entry in `due` may outlive its request.
        if self.requests.len().max(self.due.len()) >= CANDIDATE_REQUESTS {
            return None;
        }
        let class = usize::from(asked.class).min(self.compared.len() - 1);
        let cost_us = self.gate.plan.costs.of(asked.url_class, class as u8);
        let key = self.requests.vacant_key();
        let (candidate, displaced) = match self.gate.arrive(now, asked, key) {
            Arrived::Admit(_, permit) => (self.let_in(now, permit, class, cost_us), None),
            Arrived::Held(ticket) => (Candidate::Waits(ticket), None),
            Arrived::HeldInsteadOf(ticket, other, shed) => {
                (Candidate::Waits(ticket), Some((other, shed.reason)))
            }
            Arrived::Shed(_, shed) => (Candidate::Refused(shed.reason), None),
        };
        match candidate {
            Candidate::Waits(_) => self.compared[class].held += 1,
            Candidate::Refused(reason) => self.compared[class].shed[reason as usize] += 1,
            Candidate::LetIn { .. } | Candidate::Ended | Candidate::Left => {}
        }
        self.serial += 1;
        let serial = self.serial;
        let request = Request { serial, arrived: now, class, cost_us, live: Live::Undecided, candidate };
        let held_as = self.requests.insert(request);
        debug_assert_eq!(held_as, key, "a vacant key is the next one used");
        if let Some((other, reason)) = displaced {
            self.refuse(other, reason);
        }
        Some(key)
    }

    /// Decision of the candidate on a request that the live policy is not done with.
    #[must_use]
    pub fn decision(&self, key: usize) -> VirtualDecision {
        match self.requests[key].candidate {
            Candidate::LetIn { .. } | Candidate::Ended => VirtualDecision::Admit,
            // A request whose client left has no decision.
            Candidate::Waits(_) | Candidate::Left => VirtualDecision::Hold,
            Candidate::Refused(reason) => VirtualDecision::Shed(reason),
        }
    }

    /// The live policy makes it wait.
    pub fn live_holds(&mut self, now: Instant, key: usize) {
        self.live_is(now, key, Live::Waits);
    }

    /// The live policy sends it to the origin.
    pub fn live_let_in(&mut self, now: Instant, key: usize) {
        let slowness = self.slowness(self.gate.common.add_live());
        self.live_is(now, key, Live::LetIn { since: now, slowness });
    }

    /// The live policy refused it, or something else did before it was sent. The key is spent.
    pub fn live_refused(&mut self, now: Instant, key: usize) {
        self.live_is(now, key, Live::NotLetIn);
    }

    /// Its client left while the live policy made it wait. The key is spent.
    pub fn live_left(&mut self, now: Instant, key: usize) {
        if let Candidate::Waits(ticket) = self.requests[key].candidate {
            self.gate.leave(now, ticket);
            self.looked_at = None;
            self.requests[key].candidate = Candidate::Left;
        }
        self.live_is(now, key, Live::NotLetIn);
    }

    /// The origin is done with one that the live policy let in. The key is spent.
    pub fn live_ended(&mut self, now: Instant, key: usize, completed: bool) {
        let Request { arrived, class, live, .. } = self.requests[key];
        let target = self.gate.plan.classes[class].target;
        let is_good = completed && now.saturating_since(arrived) <= target;
        self.compared[class].live_good += u64::from(is_good);
        let (since, slowness) = match live {
            Live::LetIn { since, slowness } => {
                self.gate.common.remove_live();
                (since, slowness)
            }
            _ => (now, ALONE),
        };
        let took = now.saturating_since(since);
        self.live_is(now, key, Live::Ended { at: now, took, slowness, completed });
    }

    /// Ends what is over by now, and gives its room to those who wait. To be called now and then where
    /// nothing else is.
    pub fn look(&mut self, now: Instant) {
        if self.looked_at == Some(now) {
            return;
        }
        while let Some(&Reverse((at, serial, key))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            if self.requests.get(key).is_some_and(|request| request.serial == serial) {
                self.end_if_over(at, key);
                self.release(at);
            }
        }
        self.release(now);
        self.looked_at = Some(now);
    }

    /// Virtual requests in flight, from all gates together.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.gate.in_flight()
    }

    /// Requests that are compared now.
    #[must_use]
    pub fn compared_now(&self) -> usize {
        self.requests.len()
    }

    /// Hands over what the candidate's gate measured and what was compared since the last drain.
    pub fn drain(&mut self, now: Instant) -> (Sample, Vec<Compared>) {
        self.look(now);
        let classes = self.compared.len();
        let compared = core::mem::replace(&mut self.compared, vec![Compared::default(); classes]);
        (self.gate.drain(now), compared)
    }

    fn live_is(&mut self, now: Instant, key: usize, live: Live) {
        let was_decided = self.requests[key].live.is_let_in().is_some();
        self.requests[key].live = live;
        if !was_decided {
            self.count_agreement(key);
        }
        self.end_if_over(now, key);
        self.forget_if_over(key);
        self.look(now);
    }

    /// Lets go of a virtual place if its request would be over at `at`, or says when to look again.
    fn end_if_over(&mut self, at: Instant, key: usize) {
        let request = &mut self.requests[key];
        let Candidate::LetIn { permit, since, estimated, slowness } = request.candidate else { return };
        let ends = match request.live {
            // The live request will show the real time.
            Live::Undecided | Live::LetIn { .. } => return,
            Live::Waits | Live::NotLetIn => estimated,
            Live::Ended { at, took, slowness: live, .. } => {
                let ends = if since <= at { at } else { since + took };
                let difference = took.mul_f64(slowness.abs_diff(live) as f64 / live as f64);
                if slowness < live { ends - difference } else { ends + difference }
            }
        };
        if ends > at {
            self.due.push(Reverse((ends, request.serial, key)));
            return;
        }
        request.candidate = Candidate::Ended;
        self.looked_at = None;
        let completed = !matches!(request.live, Live::Ended { completed: false, .. });
        // Costs are learned only from requests that really ran: estimates must not feed themselves.
        let measured_us = (request.cost_us > 0).then_some(request.cost_us);
        self.gate.end(ends, permit, Ending { completed, measured_us, ..Ending::default() });
        self.gate.common.set_free_since(ends);
        self.forget_if_over(key);
    }

    /// Admits queued requests as far as there is room, and refuses those whose queue timeout is over.
    fn release(&mut self, now: Instant) {
        while let Some(released) = self.gate.next(now) {
            match released {
                Released::Admit(key, permit) => {
                    let Request { class, cost_us, arrived, .. } = self.requests[key];
                    // A place that was free at another gate would not have been idle until now.
                    let since = self.gate.common.take_free_since(now).max(arrived).min(now);
                    self.requests[key].candidate = self.let_in(since, permit, class, cost_us);
                    self.count_agreement(key);
                    self.end_if_over(now, key);
                }
                Released::Shed(key, shed) => self.refuse(key, shed.reason),
            }
        }
    }

    /// One that would have waited would have been refused.
    fn refuse(&mut self, key: usize, reason: Reason) {
        let request = &mut self.requests[key];
        request.candidate = Candidate::Refused(reason);
        self.compared[request.class].shed[reason as usize] += 1;
        self.count_agreement(key);
        self.forget_if_over(key);
    }

    fn let_in(&self, now: Instant, permit: Permit, class: usize, cost_us: u32) -> Candidate {
        let slowness = self.slowness(self.gate.in_flight());
        Candidate::LetIn {
            permit,
            since: now,
            estimated: now + self.estimate(class, cost_us, slowness),
            slowness,
        }
    }

    /// Estimated time at the origin of a request that is admitted now: its cost, and while there are more
    /// than the origin serves at once, each gets its share.
    fn estimate(&self, class: usize, cost_us: u32, slowness: u64) -> Duration {
        if cost_us == 0 {
            return self.gate.plan.classes[class].target;
        }
        Duration::from_micros(u64::from(cost_us).saturating_mul(slowness) / ALONE).min(ESTIMATE_MOST)
    }

    /// Time of a request at this number in flight over its time alone, thousandths.
    fn slowness(&self, in_flight: u32) -> u64 {
        let in_flight_milli = u64::from(in_flight).saturating_mul(1_000);
        in_flight_milli
            .saturating_mul(ALONE)
            .checked_div(self.gate.plan.knee_milli)
            .unwrap_or(ALONE)
            .max(ALONE)
    }

    /// Counts who let it in, with the later of the two decisions.
    fn count_agreement(&mut self, key: usize) {
        let request = &self.requests[key];
        let (Some(live), Some(candidate)) = (request.live.is_let_in(), request.candidate.is_let_in()) else {
            return;
        };
        let compared = &mut self.compared[request.class];
        *match (live, candidate) {
            (true, true) => &mut compared.both,
            (true, false) => &mut compared.only_live,
            (false, true) => &mut compared.only_candidate,
            (false, false) => &mut compared.neither,
        } += 1;
    }

    fn forget_if_over(&mut self, key: usize) {
        let is_over = self.requests.get(key).is_some_and(|request| {
            matches!(request.live, Live::Ended { .. } | Live::NotLetIn)
                && !matches!(request.candidate, Candidate::Waits(_) | Candidate::LetIn { .. })
        });
        if is_over {
            self.requests.remove(key);
        }
    }
}

impl Compared {
    /// Adds what another gate, or the same one later, compared.
    pub fn add(&mut self, other: &Self) {
        self.both += other.both;
        self.only_live += other.only_live;
        self.only_candidate += other.only_candidate;
        self.neither += other.neither;
        self.held += other.held;
        self.shed.iter_mut().zip(other.shed).for_each(|(mine, theirs)| *mine += theirs);
        self.live_good += other.live_good;
    }
}

impl Live {
    /// True if it was admitted, once that is decided.
    fn is_let_in(self) -> Option<bool> {
        match self {
            Self::Undecided | Self::Waits => None,
            Self::LetIn { .. } | Self::Ended { .. } => Some(true),
            Self::NotLetIn => Some(false),
        }
    }
}

impl Candidate {
    /// True if it would have been admitted, once that is decided.
    fn is_let_in(self) -> Option<bool> {
        match self {
            Self::Waits(_) => None,
            Self::LetIn { .. } | Self::Ended => Some(true),
            Self::Refused(_) | Self::Left => Some(false),
        }
    }
}

/// The slowness of a request that shares its origin with none.
const ALONE: u64 = 1_000;
/// No estimate keeps a virtual place longer: the longest target there is.
const ESTIMATE_MOST: Duration = Duration::from_secs(60);

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
