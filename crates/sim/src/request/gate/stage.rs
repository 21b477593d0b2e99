//! The gate with its policy.

use super::asked::{Acknowledged, Asked, Decided, ReleasedTry, Ticked};
use super::counts::{GateCounts, Ledger};
use super::flash_crowd::FlashCrowdStage;
use super::reason::{Refusal, ShedReason};
use super::sentry::SentryStage;
use super::{LimitTaken, PlanTaken, Policy};
use crate::request::ClassModel;
use crate::request::slab::Id;
use flashweir_admission::flash_crowd::{GateRequest, Response};
use flashweir_admission::retry_after::AT_A_BOUND;
use flashweir_admission::sentry::{Ending, Ticket};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_core::hash::mix;
use flashweir_core::{Hasher64, Instant, Reason, Rng, Shed, Verdict};

/// The gate with its policy.
#[derive(Debug)]
pub(in crate::request) struct GateStage {
    kind: Kind,
    most_in_flight: Option<u64>,
    hasher: Hasher64,
    ledger: Ledger,
}

#[derive(Debug)]
enum Kind {
    Open,
    FlashCrowd(Box<FlashCrowdStage>),
    Sentry(Box<SentryStage>),
    StaticRate(TokenBucket),
}

impl GateStage {
    pub(in crate::request) fn new(
        policy: &Policy,
        classes: &[ClassModel],
        most_in_flight: Option<u64>,
        seed: u64,
    ) -> Self {
        let keys = Rng::new(seed).fork(GATE);
        let kind = match policy {
            Policy::None => Kind::Open,
            Policy::FlashCrowd(policy) => Kind::FlashCrowd(Box::new(FlashCrowdStage::new(policy, &keys))),
            Policy::Sentry(policy) => {
                let classes = classes.iter().map(|class| class.policy_class).collect();
                Kind::Sentry(Box::new(SentryStage::new(policy, classes, &keys)))
            }
            Policy::StaticRate { rate, burst } => {
                Kind::StaticRate(TokenBucket::full(Instant::ZERO, *rate, *burst))
            }
        };
        let mut key = keys.fork(0);
        let hasher = Hasher64::new(key.next_u64(), key.next_u64());
        Self { kind, most_in_flight, hasher, ledger: Ledger::new(classes.len()) }
    }

    /// The keys that the gateway's classifier would make of a request's head; none where no policy looks at them.
    pub(in crate::request) fn classify(&self, class: u16, host: u32, person: u64, document: u32) -> Asked {
        let mut keys = GateRequest { host_key: 0, person_key: 0 };
        if let Kind::FlashCrowd(_) = self.kind {
            let mut who = [0; 14];
            who[..8].copy_from_slice(&person.to_le_bytes());
            who[8..12].copy_from_slice(&document.to_le_bytes());
            who[12..].copy_from_slice(&class.to_le_bytes());
            keys.person_key = self.hasher.hash(&[&who]);
            keys.host_key = host_key(host);
        }
        // Persons are numbered within their class.
        let client_key = mix((u64::from(class) << 48) ^ person);
        Asked { keys, class, document, permit: None, host, client_key }
    }

    /// Decides one request.
    pub(in crate::request) fn decide(&mut self, now: Instant, attempt: Id, asked: &Asked) -> Decided {
        self.ledger.change(asked.class, |counts| counts.received += 1);
        let counts = self.ledger.all;
        let decided = if self.most_in_flight.is_some_and(|most| counts.in_flight() + counts.held >= most) {
            Decided::Refused(self.refuse_for_bound(now, asked))
        } else if let Kind::Sentry(stage) = &mut self.kind {
            let (decided, displaced) = stage.arrive(now, attempt, asked);
            if let Some(class) = displaced {
                self.ledger.change(class, |counts| {
                    counts.held -= 1;
                    counts.shed += 1;
                });
            }
            decided
        } else {
            self.ask_policy(now, asked).map_or_else(Decided::Refused, |()| Decided::Admitted(None))
        };
        self.ledger.change(asked.class, |counts| match decided {
            Decided::Admitted(_) => counts.admitted += 1,
            Decided::Refused(_) => counts.shed += 1,
            Decided::Held(_) | Decided::HeldInsteadOf(..) => counts.held += 1,
        });
        decided
    }

    /// The next of those who were held that waits no longer, if there is one.
    pub(in crate::request) fn release(&mut self, now: Instant) -> Option<ReleasedTry> {
        let Kind::Sentry(stage) = &mut self.kind else { return None };
        let (released, class) = stage.release(now)?;
        self.ledger.change(class, |counts| {
            counts.held -= 1;
            match released {
                ReleasedTry::Admitted(..) => counts.admitted += 1,
                ReleasedTry::Refused(..) => counts.shed += 1,
            }
        });
        Some(released)
    }

    /// A worker that is to be called, and when: because somebody there will have waited too long, or because another
    /// one has told it of a plan or of room. To be asked until there is none.
    pub(in crate::request) fn next_call(&mut self, now: Instant) -> Option<(Instant, u16)> {
        let Kind::Sentry(stage) = &mut self.kind else { return None };
        stage.next_call(now)
    }

    /// A worker is called: [`release`](Self::release) is to be asked.
    pub(in crate::request) fn call(&mut self, now: Instant, worker: u16) {
        if let Kind::Sentry(stage) = &mut self.kind {
            stage.call(now, worker);
        }
    }

    /// The client of a try that is held has gone.
    pub(in crate::request) fn leave(&mut self, now: Instant, asked: &Asked, ticket: Ticket) {
        if let Kind::Sentry(stage) = &mut self.kind
            && stage.leave(now, asked, ticket)
        {
            self.ledger.change(asked.class, |counts| {
                counts.held -= 1;
                counts.left += 1;
            });
        }
    }

    /// An admitted request is over, and how.
    pub(in crate::request) fn ended(&mut self, now: Instant, asked: &Asked, ending: Ending) {
        self.ledger.change(asked.class, |counts| counts.ended += 1);
        match (&mut self.kind, asked.permit) {
            (Kind::FlashCrowd(stage), _) if ending.completed => stage.gate_for(&asked.keys).completed(),
            (Kind::Sentry(stage), Some(permit)) => stage.end(now, asked, permit, ending),
            _ => {}
        }
    }

    /// A whole answer to what was received at `started` reached its client.
    pub(in crate::request) fn observe(
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
    pub(in crate::request) fn next_tick_at(&self) -> Option<Instant> {
        match &self.kind {
            Kind::FlashCrowd(stage) => Some(stage.next_tick_at()),
            Kind::Sentry(stage) => Some(stage.next_tick_at()),
            Kind::Open | Kind::StaticRate(_) => None,
        }
    }

    /// Samples, plan, gates: what the gateway's planner task does. `lost_feedback` of the samples get lost.
    pub(in crate::request) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Option<Ticked> {
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

    pub(in crate::request) fn counts(&self) -> GateCounts {
        self.ledger.all
    }

    /// The same by class, in the scenario's order.
    pub(in crate::request) fn counts_by_class(&self) -> &[GateCounts] {
        &self.ledger.classes
    }

    /// What must hold of the policy's own state.
    pub(in crate::request) fn check(&self, now: Instant) -> Result<(), String> {
        let Kind::Sentry(stage) = &self.kind else { return Ok(()) };
        stage.check(now, &self.ledger.all)
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
                        self.ledger.change(asked.class, |counts| counts.shed_in_shadow += 1);
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
pub(in crate::request) fn host_key(host: u32) -> u64 {
    mix(u64::from(host) + 1)
}

/// Names the gate's fork of the seed: "gate" in ASCII.
const GATE: u64 = 0x6761_7465 << 32;
