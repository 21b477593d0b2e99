//! Orders to the gate: the services, and how new connections beyond the ceiling are refused.

use std::net::SocketAddr;

use flashweir_core::{Duration, Reason};

use super::Page;
use super::abi;
use super::ceiling::Ceiling;
use super::tiers::Tiers;

/// A protected service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Listening addresses. An unspecified address (`0.0.0.0`, `::`) stands for every address of its family.
    pub endpoints: Vec<SocketAddr>,
    /// Clients speak TLS: where others get an answer, they get a reset, since they would not understand one.
    pub speaks_tls: bool,
    /// Response of [`ExcessTreatment::Answer`].
    pub page: Page,
}

/// Treatment of a new connection beyond the ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExcessTreatment {
    /// Nothing: it is let in, and counted.
    #[default]
    Pass,
    /// It is dropped without a word. The client sends again after 1, 3, 7 s: for sources judged abusive.
    Drop,
    /// It is reset: the client learns at once, and nothing else.
    Reset,
    /// It gets a whole HTTP response, a 503 with `Retry-After`, which no server ever sees.
    Answer,
}

/// One service's part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// The service, by its place, whose ceilings this one's connections are charged to, so that several share
    /// them; its own are then without effect. `None`: its own. What is done about a connection that does not
    /// fit, and how it is counted, stays this service's matter, and so does where the other's connections are
    /// charged.
    pub charged_to: Option<usize>,
    /// The ceilings on all clients but the preferred networks, by rank ([`super::KernelGate::rank`]).
    pub tiers: Tiers,
    /// The ceiling on preferred networks, counted by itself; `None` lets them all in.
    pub preferred: Option<Ceiling>,
    /// Treatment of the rest.
    pub refusal: ExcessTreatment,
    /// Decide and count, but let everything in.
    pub shadow: bool,
    /// Base of a refused client's `Retry-After`: it lies between this and twice this, by its address and
    /// port.
    pub retry_after: Duration,
    /// The limit that a refused client met; an answer names it.
    pub reason: Reason,
}

/// A plan that lets everything in.
impl Default for ServicePlan {
    fn default() -> Self {
        Self {
            charged_to: None,
            tiers: Tiers::OPEN,
            preferred: None,
            refusal: ExcessTreatment::default(),
            shadow: false,
            retry_after: Duration::ZERO,
            reason: Reason::FlashCrowd,
        }
    }
}

impl ServicePlan {
    /// As the kernel reads it, for the service at this place.
    pub(super) fn in_kernel(&self, index: usize, at_ns: u64, speaks_tls: bool) -> abi::Plan {
        let mode = match self.refusal {
            ExcessTreatment::Pass => abi::MODE_PASS,
            ExcessTreatment::Drop => abi::MODE_DROP,
            ExcessTreatment::Reset => abi::MODE_RESET,
            ExcessTreatment::Answer => abi::MODE_ANSWER,
        };
        let shadow = if self.shadow { abi::SERVICE_SHADOW } else { 0 };
        let tls = if speaks_tls { abi::SERVICE_TLS } else { 0 };
        abi::Plan {
            preferred: self.preferred.map_or(abi::Ceiling::default(), Ceiling::in_kernel),
            tiers: self.tiers.in_kernel(),
            at_ns,
            mode,
            flags: shadow | tls,
            // Lossless: both are places in a table of a few entries.
            charged_to: self.charged_to.unwrap_or(index) as u32,
            zero: 0,
        }
    }
}
