//! The gate: so many in flight, some wait, the rest is refused at once. Integers only.

use super::common::Common;
use super::hold::{Hold, Ticket};
use super::in_flight::{InFlight, Permit};
use super::plan::{ClassPlan, Plan};
use super::policy::Policy;
use super::sample::Sample;
use alloc::sync::Arc;
use flashweir_core::limits::REQUESTS_HELD;
use flashweir_core::{Instant, Reason, Shed};

/// The gate of one service; `T` is what the shell keeps of a request that waits.
#[derive(Debug)]
pub struct SentryGate<T> {
    common: Arc<Common>,
    /// Which of the service's gates this is.
    index: usize,
    plan: Plan,
    in_flight: InFlight,
    hold: Hold<(Asked, Instant, T)>,
}

/// What the gate needs to know of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Its class: a place in the policy's list.
    pub class: u8,
    /// A hash of method and path without the query.
    pub url_class: u32,
    /// Who asks, as far as fairness goes: a hash of API key, cookie or network.
    pub client_key: u64,
}

/// How an admitted request came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The origin answered to the end.
    pub completed: bool,
    /// What the origin says that it took, microseconds.
    pub measured_us: Option<u32>,
}

/// What becomes of a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// It waits; [`SentryGate::next`] will say.
    Held(Ticket),
    /// It waits in the place of one that is refused.
    HeldInsteadOf(Ticket, T, Shed),
    /// Refuse it at once.
    Shed(T, Shed),
}

/// What becomes of a request that waited.
#[derive(Debug, PartialEq, Eq)]
pub enum Released<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// Refuse it.
    Shed(T, Shed),
}

impl<T> SentryGate<T> {
    /// Gate `index` of those that share `common`; it follows `plan`, made for `policy`.
    #[must_use]
    pub fn new(common: Arc<Common>, index: usize, policy: &Policy, plan: &Plan) -> Self {
        Self {
            in_flight: InFlight::new(common.clone(), policy.target * AGES_REACH_TARGETS),
            common,
            index,
            plan: plan.clone(),
            hold: Hold::new(REQUESTS_HELD),
        }
    }

    /// Takes over a plan; the same plan twice changes nothing. [`next`](Self::next) is to be asked afterwards.
    pub fn apply(&mut self, plan: &Plan) {
        if plan.epoch != self.plan.epoch {
            self.plan.clone_from(plan);
        }
    }

    /// A request arrives. O(1).
    pub fn arrive(&mut self, now: Instant, asked: Asked, request: T) -> Arrived<T> {
        self.in_flight.sample().offered += 1;
        let class = self.class(&asked);
        if self.hold.is_empty()
            && let Some(permit) = self.in_flight.begin(now, class.limit, now, asked)
        {
            return Arrived::Admit(request, permit);
        }
        let displaced = if self.hold.len() < class.hold_len as usize {
            None
        } else if self.newest_first(now, &class) {
            self.hold.take_oldest()
        } else {
            return Arrived::Shed(request, self.shed(Reason::Capacity, &class));
        };
        let held = self.hold.push(now, (asked, now, request));
        self.set_waiting(now);
        match (held, displaced) {
            (Ok(ticket), None) => Arrived::Held(ticket),
            (Ok(ticket), Some((_, _, displaced))) => {
                Arrived::HeldInsteadOf(ticket, displaced, self.shed(Reason::Deadline, &class))
            }
            (Err((_, _, request)), _) => Arrived::Shed(request, self.shed(Reason::Capacity, &class)),
        }
    }

    /// Who goes next of those who wait, if somebody does. To be asked until there is none after every
    /// [`end`](Self::end), [`apply`](Self::apply), [`next_wake`](Self::next_wake) and when another gate says so. O(1).
    pub fn next(&mut self, now: Instant) -> Option<Released<T>> {
        let oldest = self.hold.oldest_since()?;
        let class = self.plan.classes[0];
        let released = if now.saturating_since(oldest) >= class.hold_for {
            let (_, _, request) = self.hold.take_oldest()?;
            Released::Shed(request, self.shed(Reason::Deadline, &class))
        } else {
            let newest_first = self.newest_first(now, &class);
            let mut permit = self.in_flight.begin(now, class.limit, oldest, Asked::default())?;
            let next = if newest_first { self.hold.take_newest() } else { self.hold.take_oldest() };
            let (asked, arrived, request) = next?;
            (permit.asked, permit.arrived) = (asked, arrived);
            Released::Admit(request, permit)
        };
        self.set_waiting(now);
        Some(released)
    }

    /// When [`next`](Self::next) is to be asked even if nothing else happens.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        self.hold.oldest_since().map(|since| since + self.plan.classes[0].hold_for)
    }

    /// An admitted request is over. Ask [`next`](Self::next) of this gate; if there is nobody (more), wake the gate
    /// that [`who_waits`](Self::who_waits) names.
    pub fn end(&mut self, now: Instant, permit: Permit, ending: Ending) {
        self.in_flight.end(now, permit, ending);
    }

    /// Another gate that may have somebody for the room that there is: its [`next`](Self::next) is to be asked.
    #[must_use]
    pub fn who_waits(&self) -> Option<usize> {
        let has_room = self.common.in_flight() < self.plan.limit;
        if has_room { self.common.who_waits(self.index) } else { None }
    }

    /// The client of one that waits has gone.
    pub fn leave(&mut self, now: Instant, ticket: Ticket) -> Option<T> {
        let left = self.hold.take(ticket);
        self.set_waiting(now);
        left.map(|(_, _, request)| request)
    }

    /// How many are in flight, from all gates together.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.common.in_flight()
    }

    /// How many wait here.
    #[must_use]
    pub fn held(&self) -> usize {
        self.hold.len()
    }

    /// Hands over what was measured since the last drain.
    pub fn drain(&mut self, now: Instant) -> Sample {
        // At most REQUESTS_HELD.
        let held = self.hold.len() as u32;
        let mut sample = self.in_flight.drain(now);
        sample.held = held;
        sample
    }

    fn class(&self, asked: &Asked) -> ClassPlan {
        self.plan.classes.get(usize::from(asked.class)).copied().unwrap_or(self.plan.classes[0])
    }

    fn shed(&mut self, reason: Reason, class: &ClassPlan) -> Shed {
        self.in_flight.sample().shed += 1;
        Shed { reason, retry_after: class.retry_after }
    }

    fn set_waiting(&mut self, now: Instant) {
        self.in_flight.set_waiting(now, !self.hold.is_empty());
        self.common.set_waiting(self.index, self.hold.len() as u32);
    }

    /// Once the queue is so old that whoever is at its head will hardly be answered in time, those who came last are
    /// served in time instead.
    fn newest_first(&self, now: Instant, class: &ClassPlan) -> bool {
        self.hold.oldest_since().is_some_and(|since| now.saturating_since(since) > class.newest_first_after)
    }
}

/// Ages of requests in flight are told up to so many targets: what takes longer is late, however late.
const AGES_REACH_TARGETS: u32 = 4;
