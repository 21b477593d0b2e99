//! Who is let in: the very gates and planners of the gateway, driven as the gateway drives them.
//!
//! First the bound on requests in flight, then the policy's gate. Refusing takes no time and no processor of the
//! server: the gate stands on a machine of its own.

mod flash_crowd;
mod sentry;

pub use flash_crowd::FlashCrowdPolicy;
pub use sentry::{LimitTaken, SentryPolicy};

use super::slab::Id;
use flash_crowd::FlashCrowdStage;
use flashweir_admission::flash_crowd::{Explanation, GateRequest, Response};
use flashweir_admission::retry_after::AT_A_BOUND;
use flashweir_admission::sentry::{Arrived, Asked as SentryAsked, Ending, Permit, Released, Ticket};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_core::hash::mix;
use flashweir_core::{Duration, Hasher64, Instant, Rate, Reason, Rng, Shed, Verdict};
use sentry::SentryStage;

/// Which rules let people in.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Policy {
    /// None: everybody is admitted.
    #[default]
    None,
    /// NEWS, in any of its modes.
    FlashCrowd(FlashCrowdPolicy),
    /// The sentry, with one class.
    Sentry(SentryPolicy),
    /// A token bucket that was set by hand, as the papers' comparisons have it.
    StaticRate {
        /// The rate.
        rate: Rate,
        /// The most that are let in at once after a lull.
        burst: u64,
    },
}

/// Which limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedReason {
    /// A limit that the gateway has, too.
    Gateway(Reason),
    /// The rate of [`Policy::StaticRate`] is spent.
    StaticRate,
}

/// What the gate counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// Tries that reached the gate.
    pub received: u64,
    /// Let in.
    pub admitted: u64,
    /// Refused.
    pub shed: u64,
    /// Admitted ones whose time in the service is over, in whatever way.
    pub ended: u64,
    /// Refused by a gate that only watches, and let in.
    pub shed_in_shadow: u64,
    /// Waiting at the gate, now.
    pub held: u64,
    /// Waited at the gate until their clients left.
    pub left: u64,
}

/// A plan of the policy, as it explains itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanTaken {
    /// When it was made.
    pub at: Instant,
    /// Its inputs and the rule that fired.
    pub explanation: Explanation,
}

/// A request as the gate sees it: made by [`GateStage::classify`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) keys: GateRequest,
    pub(super) class: u16,
    pub(super) document: u32,
    /// The sentry's, of one it has admitted.
    pub(super) permit: Option<Permit>,
    host: u32,
}

/// What the gate makes of a try that arrives.
#[derive(Debug)]
pub(super) enum Decided {
    Admitted(Option<Permit>),
    Refused(Refusal),
    Held(Ticket),
    /// Held, and another one, which waited for it, is refused.
    HeldInsteadOf(Ticket, Id, Refusal),
}

/// What the gate makes of a try that was held.
#[derive(Debug)]
pub(super) enum ReleasedTry {
    Admitted(Id, Permit),
    Refused(Id, Refusal),
}

/// What a policy decided at its tick.
#[derive(Debug)]
pub(super) enum Ticked {
    FlashCrowd(PlanTaken),
    Sentry(LimitTaken),
}

/// A whole answer as the gateway measures it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    pub(super) bytes: u64,
    /// From the request's arrival to the acknowledgement's.
    pub(super) latency: Duration,
    /// None where there is no rate to measure: of small answers, and in a network that is but a delay.
    pub(super) rate_bytes_per_s: Option<f32>,
}

/// The gate with its policy.
#[derive(Debug)]
pub(super) struct GateStage {
    kind: Kind,
    most_in_flight: Option<u64>,
    hasher: Hasher64,
    counts: GateCounts,
}

#[derive(Debug)]
enum Kind {
    Open,
    FlashCrowd(Box<FlashCrowdStage>),
    Sentry(Box<SentryStage>),
    StaticRate(TokenBucket),
}

/// A refusal and when the client may come back, whole seconds, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: ShedReason,
    pub(super) retry_after_s: Option<u16>,
}

impl ShedReason {
    /// How many there are.
    pub const COUNT: usize = Reason::ALL.len() + 1;

    /// All of them, in the order of [`index`](Self::index).
    pub fn all() -> impl Iterator<Item = Self> {
        Reason::ALL.into_iter().map(Self::Gateway).chain([Self::StaticRate])
    }

    /// Its place among all.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Gateway(reason) => reason as usize,
            Self::StaticRate => Reason::ALL.len(),
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway(reason) => reason.as_str(),
            Self::StaticRate => "static_rate",
        }
    }
}

impl Asked {
    /// The key that the classifier would make of method and path.
    fn url_class(&self) -> u32 {
        mix((u64::from(self.host) << 32) | u64::from(self.document)) as u32
    }
}

impl GateCounts {
    /// Received, and nobody decided: a bug if it is not zero.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.received.saturating_sub(self.admitted + self.shed + self.held + self.left)
    }

    /// Admitted and still in the service.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.admitted.saturating_sub(self.ended)
    }
}

impl GateStage {
    pub(super) fn new(policy: &Policy, most_in_flight: Option<u64>, seed: u64) -> Self {
        let keys = Rng::new(seed).fork(GATE);
        let kind = match policy {
            Policy::None => Kind::Open,
            Policy::FlashCrowd(policy) => Kind::FlashCrowd(Box::new(FlashCrowdStage::new(policy, &keys))),
            Policy::Sentry(policy) => Kind::Sentry(Box::new(SentryStage::new(policy, &keys))),
            Policy::StaticRate { rate, burst } => {
                Kind::StaticRate(TokenBucket::full(Instant::ZERO, *rate, *burst))
            }
        };
        let mut key = keys.fork(0);
        let hasher = Hasher64::new(key.next_u64(), key.next_u64());
        Self { kind, most_in_flight, hasher, counts: GateCounts::default() }
    }

    /// The keys that the gateway's classifier would make of a request's head; none where no policy looks at them.
    pub(super) fn classify(&self, class: u16, host: u32, person: u64, document: u32) -> Asked {
        let mut keys = GateRequest { host_key: 0, person_key: 0 };
        if let Kind::FlashCrowd(_) = self.kind {
            let mut who = [0; 14];
            who[..8].copy_from_slice(&person.to_le_bytes());
            who[8..12].copy_from_slice(&document.to_le_bytes());
            who[12..].copy_from_slice(&class.to_le_bytes());
            keys.person_key = self.hasher.hash(&[&who]);
            keys.host_key = host_key(host);
        }
        Asked { keys, class, document, permit: None, host }
    }

    /// Decides one request.
    pub(super) fn decide(&mut self, now: Instant, attempt: Id, asked: &Asked) -> Decided {
        self.counts.received += 1;
        let decided =
            if self.most_in_flight.is_some_and(|most| self.counts.in_flight() + self.counts.held >= most) {
                Decided::Refused(self.refuse_for_bound(now, asked))
            } else if let Kind::Sentry(stage) = &mut self.kind {
                let asked = SentryAsked { url_class: asked.url_class(), ..SentryAsked::default() };
                match stage.gate.arrive(now, asked, attempt) {
                    Arrived::Admit(_, permit) => Decided::Admitted(Some(permit)),
                    Arrived::Shed(_, shed) => Decided::Refused(stage.refusal(shed)),
                    Arrived::Held(ticket) => Decided::Held(ticket),
                    Arrived::HeldInsteadOf(ticket, other, shed) => {
                        Decided::HeldInsteadOf(ticket, other, stage.refusal(shed))
                    }
                }
            } else {
                self.ask_policy(now, asked).map_or_else(Decided::Refused, |()| Decided::Admitted(None))
            };
        match decided {
            Decided::Admitted(_) => self.counts.admitted += 1,
            Decided::Refused(_) => self.counts.shed += 1,
            Decided::Held(_) => self.counts.held += 1,
            // One more waits, and one less.
            Decided::HeldInsteadOf(..) => self.counts.shed += 1,
        }
        decided
    }

    /// The next of those who were held that waits no longer, if there is one.
    pub(super) fn release(&mut self, now: Instant) -> Option<ReleasedTry> {
        let Kind::Sentry(stage) = &mut self.kind else { return None };
        let released = stage.gate.next(now)?;
        self.counts.held -= 1;
        Some(match released {
            Released::Admit(attempt, permit) => {
                self.counts.admitted += 1;
                ReleasedTry::Admitted(attempt, permit)
            }
            Released::Shed(attempt, shed) => {
                self.counts.shed += 1;
                ReleasedTry::Refused(attempt, stage.refusal(shed))
            }
        })
    }

    /// When the next of those who are held has waited too long.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let Kind::Sentry(stage) = &self.kind else { return None };
        stage.gate.next_wake()
    }

    /// The client of a try that is held has gone.
    pub(super) fn leave(&mut self, now: Instant, ticket: Ticket) {
        if let Kind::Sentry(stage) = &mut self.kind
            && stage.gate.leave(now, ticket).is_some()
        {
            self.counts.held -= 1;
            self.counts.left += 1;
        }
    }

    /// An admitted request is over, and how.
    pub(super) fn ended(&mut self, now: Instant, asked: &Asked, completed: bool) {
        self.counts.ended += 1;
        match (&mut self.kind, asked.permit) {
            (Kind::FlashCrowd(stage), _) if completed => stage.gate_for(&asked.keys).completed(),
            (Kind::Sentry(stage), Some(permit)) => {
                stage.gate.end(now, permit, Ending { completed, measured_us: None });
            }
            _ => {}
        }
    }

    /// A whole answer to what was received at `started` reached its client.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        asked: &Asked,
        started: Instant,
        answered: impl FnOnce() -> Acknowledged,
    ) {
        let Kind::FlashCrowd(stage) = &mut self.kind else { return };
        stage.observe(now, &asked.keys, || {
            let Acknowledged { bytes, latency, rate_bytes_per_s } = answered();
            Response {
                started,
                bytes,
                latency_s: latency.as_secs_f32(),
                rate_bytes_per_s,
                url_class: asked.url_class(),
            }
        });
    }

    /// When [`tick`](Self::tick) is next due.
    pub(super) fn next_tick_at(&self) -> Option<Instant> {
        match &self.kind {
            Kind::FlashCrowd(stage) => Some(stage.next_tick_at()),
            Kind::Sentry(stage) => Some(stage.next_tick_at()),
            Kind::Open | Kind::StaticRate(_) => None,
        }
    }

    /// Samples, plan, gates: what the gateway's planner task does. `lost_feedback` of the samples get lost.
    pub(super) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Option<Ticked> {
        match &mut self.kind {
            Kind::FlashCrowd(stage) => {
                let explanation = stage.tick(now, lost_feedback);
                Some(Ticked::FlashCrowd(PlanTaken { at: now, explanation }))
            }
            Kind::Sentry(stage) => {
                Some(Ticked::Sentry(LimitTaken { at: now, plan: stage.tick(now, lost_feedback) }))
            }
            Kind::Open | Kind::StaticRate(_) => None,
        }
    }

    pub(super) fn counts(&self) -> GateCounts {
        self.counts
    }

    fn refuse_for_bound(&mut self, now: Instant, asked: &Asked) -> Refusal {
        let reason = Reason::RequestsInFlight;
        let retry_after_s = match &mut self.kind {
            Kind::FlashCrowd(stage) => {
                let keys = &asked.keys;
                stage.count_unseen(now, keys);
                stage.told_s(Shed { reason, retry_after: AT_A_BOUND }, keys.person_key)
            }
            Kind::Open | Kind::Sentry(_) | Kind::StaticRate(_) => AT_A_BOUND.as_secs() as u16,
        };
        Refusal { reason: ShedReason::Gateway(reason), retry_after_s: Some(retry_after_s) }
    }

    fn ask_policy(&mut self, now: Instant, asked: &Asked) -> Result<(), Refusal> {
        match &mut self.kind {
            // The sentry is asked before.
            Kind::Open | Kind::Sentry(_) => Ok(()),
            Kind::StaticRate(bucket) => match bucket.admit(now) {
                true => Ok(()),
                false => Err(Refusal { reason: ShedReason::StaticRate, retry_after_s: None }),
            },
            Kind::FlashCrowd(stage) => {
                let keys = &asked.keys;
                match stage.admit(now, keys) {
                    Verdict::Admit => Ok(()),
                    Verdict::Shed(_) if stage.is_shadow() => {
                        stage.gate_for(keys).admitted_in_shadow(keys);
                        self.counts.shed_in_shadow += 1;
                        Ok(())
                    }
                    Verdict::Shed(shed) => {
                        let retry_after_s = Some(stage.told_s(shed, keys.person_key));
                        Err(Refusal { reason: ShedReason::Gateway(shed.reason), retry_after_s })
                    }
                }
            }
        }
    }
}

/// What a hot-spot is known by. Hosts are few and nobody in here chooses their names to collide: a mixer suffices.
pub(super) fn host_key(host: u32) -> u64 {
    mix(u64::from(host) + 1)
}

/// Names the gate's fork of the seed: "gate" in ASCII.
const GATE: u64 = 0x6761_7465 << 32;
