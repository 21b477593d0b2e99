//! Requests as the pipeline gets them, and its answers.

use super::StageName;
use super::shares::Charge;
use crate::fairness::{Cause, RequestSigns};
use crate::flash_crowd::CeilingPriority;
use crate::sentry::{self, Ending, Paused, Position, SentryRequest, VirtualDecision};
use flashweir_core::{Instant, Reason, Shed};

/// Names a service of one pipeline until its last request has ended; afterwards the key finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    pub(super) place: u32,
    /// Distinguishes the service from those that had its place before.
    pub(super) serial: u32,
}

/// Demand or none: a request is demand if a client sent it and it has not been counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// It arrives.
    #[default]
    First,
    /// It has arrived before and was refused, or gave its turn to another one, and asks once more. Its first
    /// count stands: it is neither demand nor, refused again, a refusal.
    Again,
    /// No client sent it: the shell wants a newer copy of what it has. It comes after what clients send.
    Refresh,
}

/// Properties of a request that the stages need: numbers only, made by the classifier.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest {
    /// Its service.
    pub service: ServiceKey,
    /// Its class: a place in the service's policy.
    pub class: u8,
    /// Priority of the class under a ceiling; the sentry is not asked about exempt ones.
    pub ceiling_priority: CeilingPriority,
    /// The client, where shares are divided among clients: a hash of network, address, header or cookie.
    pub client_key: u64,
    /// A hash of method and path: requests of one class cost about the same.
    pub url_class: u32,
    /// A hash of service and host: the hot spot.
    pub host_key: u64,
    /// A hash of client and target: recognises a retry.
    pub person_key: u64,
    /// The node that sent it was given a share of the origin and sends more than that: while requests wait,
    /// it is discarded first.
    pub is_beyond_sender_share: bool,
    /// From then on its caller cannot use an answer, where it says so.
    pub deadline: Option<Instant>,
    /// Form in which the service's candidate policy takes it, where there is one that counts it.
    pub candidate: Option<SentryRequest>,
    /// The door is closed to it, for this reason: the gateway stops, or its connection is one too many.
    pub closed: Option<Reason>,
    /// Signs of its client, for shares among clients by what they have in common.
    pub signs: RequestSigns,
    /// Demand to be counted, or none.
    pub asking: Asking,
}

impl AdmissionRequest {
    /// Returns true if its deadline is over.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Returns true if it is demand, and its refusal evidence.
    pub(super) fn is_counted(&self) -> bool {
        self.asking == Asking::First
    }

    pub(super) fn for_sentry(&self) -> SentryRequest {
        let Self { class, url_class, client_key, .. } = *self;
        let is_counted = self.is_counted();
        SentryRequest { class, url_class, client_key, position: Position::Usual, is_uncounted: !is_counted }
    }
}

/// Decision on a request that arrives.
#[derive(Debug)]
pub enum Arrival<T> {
    /// Send it to the origin. A stage in shadow may have refused it.
    Admitted(Permit, Option<ShadowRefusal>),
    /// It waits; [`Pipeline::next`](super::Pipeline::next) will say. Another one may have to go for it.
    Queued(Ticket, Option<(T, Refusal)>),
    /// Refuse it.
    Refused(Refusal),
}

/// Decision on a request that waited.
#[derive(Debug)]
pub enum Released<T> {
    /// Send it to the origin. A stage in shadow may have refused it.
    Admitted(T, Permit, Option<ShadowRefusal>),
    /// Refuse it.
    Refused(T, Refusal),
}

/// A refusal, and the stage that is charged with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// The stage.
    pub stage: StageName,
    /// Reason for the refusal, and time after which the client may come back.
    pub shed: Shed,
    /// The numbers behind it, where it is the sentry's.
    pub sentry: Option<SentryFigures>,
    /// The candidate policy's opinion of the same request.
    pub candidate: Option<CandidateOpinion>,
    /// Reason why it came after the others, where its client or what it has in common with others is over a
    /// fair share.
    pub demoted: Option<Cause>,
}

/// A refusal by a stage in shadow: it did not bind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowRefusal {
    /// The stage.
    pub stage: StageName,
    /// As the client would have got it.
    pub shed: Shed,
    /// The numbers behind it, where it is the sentry's.
    pub sentry: Option<SentryFigures>,
}

/// State of the sentry when it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentryFigures {
    /// Class of the request, by its place in the policy.
    pub class: u8,
    /// Requests at the origin, of all workers.
    pub in_flight: u32,
    /// Requests that wait at this worker.
    pub waiting: u32,
    /// Wait of the oldest of its class at this worker, microseconds; 0 if none of it waits.
    pub oldest_waiting_us: u32,
}

/// Opinion of the candidate policy on a request that was refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateOpinion {
    /// Its decision.
    pub decision: VirtualDecision,
    /// Class of the request, by its place in the candidate.
    pub class: u8,
    /// Virtual requests at the origin.
    pub in_flight: u32,
}

/// Names a request that waits; after it has gone, the ticket finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) service: ServiceKey,
    pub(super) ticket: sentry::Ticket,
    pub(super) position: Position,
}

impl Ticket {
    /// The service for which the request waits.
    #[must_use]
    pub fn service(&self) -> ServiceKey {
        self.service
    }

    /// Its position among those of its class.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }
}

/// End of an admitted request, at the origin or altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The response was whole and without error.
    Completed(OriginReport),
    /// It failed. Only the owner of the source learns from that.
    Failed(FailureSource),
    /// The client left. That says nothing of the origin, unless the origin had longer for the request than
    /// the target.
    Abandoned,
    /// It never took place: something else answered.
    Withdrawn,
}

/// Source of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureSource {
    /// The origin: it could not be reached, broke off, took too long, or answered with its own error.
    Origin,
    /// A bound of the gateway that was met after the request had been admitted.
    Gateway,
    /// The client: what it sent could not be read to the end.
    Client,
}

/// Report of an origin on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginReport {
    /// Time that the request took, microseconds.
    pub measured_us: Option<u32>,
}

impl RequestOutcome {
    /// As the sentry takes it.
    pub(super) fn at_origin(self) -> Ending {
        match self {
            Self::Completed(OriginReport { measured_us }) => {
                Ending { completed: true, withdrawn: false, measured_us }
            }
            Self::Failed(FailureSource::Origin) => Ending::default(),
            Self::Failed(FailureSource::Gateway | FailureSource::Client)
            | Self::Abandoned
            | Self::Withdrawn => Ending::WITHDRAWN,
        }
    }
}

/// An admitted request: the shares of all stages. Goes back to [`Pipeline::finish`](super::Pipeline::finish).
#[derive(Debug)]
#[must_use = "a permit is finished exactly once"]
pub struct Permit {
    pub(super) service: ServiceKey,
    pub(super) origin: Option<OriginShare>,
}

/// A whole response on its way to the client. Goes back to [`Pipeline::deliver`](super::Pipeline::deliver).
#[derive(Debug)]
#[must_use = "a delivery is ended exactly once"]
pub struct Delivery(pub(super) ());

/// The share at the origin: it ends when the origin is done, which may be long before the request's own end.
#[derive(Debug)]
#[must_use = "a share is ended exactly once"]
pub struct OriginShare {
    pub(super) service: ServiceKey,
    pub(super) slot: SlotShare,
    /// Charge to its client's share.
    pub(super) charge: Charge,
    /// Key of the request at the candidate policy.
    pub(super) candidate: Option<CandidateKey>,
}

#[derive(Debug)]
pub(super) enum SlotShare {
    /// The class is exempt, or there is no sentry.
    None,
    Taken(sentry::Permit),
    /// Left for others while the client is waited for.
    Paused(Paused),
}

/// Key of a request at a candidate policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CandidateKey {
    /// Number of the candidate, of those that the service has had.
    pub(super) candidate: u32,
    pub(super) key: usize,
    pub(super) class: u8,
}

impl OriginShare {
    /// The service that it is at.
    #[must_use]
    pub fn service(&self) -> ServiceKey {
        self.service
    }

    /// Returns true if others have its slot while its client is waited for.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        matches!(self.slot, SlotShare::Paused(_))
    }
}

impl Permit {
    /// The service that it is for.
    #[must_use]
    pub fn service(&self) -> ServiceKey {
        self.service
    }

    /// The share at the origin, to be ended by itself; none where there is none, or none any more.
    pub fn take_origin_share(&mut self) -> Option<OriginShare> {
        self.origin.take()
    }
}

/// A request that waits in the sentry's queue.
#[derive(Debug)]
pub(super) struct Waiter<T> {
    pub(super) kept: T,
    pub(super) request: AdmissionRequest,
    pub(super) is_retry: bool,
    pub(super) arrived: Instant,
    pub(super) candidate: Option<CandidateKey>,
    pub(super) shadow: Option<ShadowRefusal>,
    pub(super) position: Position,
    pub(super) demoted: Option<Cause>,
}
